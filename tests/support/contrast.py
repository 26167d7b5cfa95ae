"""How well a colour stands out from another, as WCAG 2 defines it: graphics need 3, text 4.5."""

from __future__ import annotations


def contrast(one: str, other: str) -> float:
    """The ratio for two colours like #0072b2."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.040_45 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
