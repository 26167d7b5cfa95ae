"""How the page looks, on light and on dark paper, on a phone and on a wide screen, and in print.

Tenants are told apart by colour and by dash, in colours that are told apart with any colour vision (Okabe and Ito,
2008; two of them darker on white, for contrast). Nothing is fetched: no font, no script, no picture.
"""

from __future__ import annotations

from typing import Final

DASHES: Final = ("none", "9 3", "3 2", "9 3 2 3", "1.5 2", "14 4")
"""Of the lines of shown tenants, in the order of their colours."""

_LIGHT: Final = {
    "paper": "#ffffff",
    "ink": "#1f2328",
    "faint": "#59636e",
    "grid": "#e1e5ea",
    "pale": "#a9b1ba",
    "raised": "#f6f8fa",
    "tenant-0": "#bd8200",
    "tenant-1": "#0072b2",
    "tenant-2": "#00805f",
    "tenant-3": "#b8588f",
    "tenant-4": "#3b92c8",
    "tenant-5": "#d55e00",
}
_DARK: Final = {
    "paper": "#0d1117",
    "ink": "#e6edf3",
    "faint": "#9198a1",
    "grid": "#262c34",
    "pale": "#5b636d",
    "raised": "#161b22",
    "tenant-0": "#e69f00",
    "tenant-1": "#4c9be0",
    "tenant-2": "#12b886",
    "tenant-3": "#d98bb5",
    "tenant-4": "#7cc4ef",
    "tenant-5": "#f0803c",
}

_RULES: Final = """
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 100rem; padding: 1rem clamp(.8rem, 3vw, 2.5rem) 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; -webkit-text-size-adjust: 100%; }
h1 { font-size: clamp(1.4rem, 4vw, 2rem); line-height: 1.2; margin: .5rem 0 1rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .25rem; }
h3 { font-size: 1rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
p { max-width: 48rem; margin: .25rem 0 .75rem; }
p, figcaption, dt, .small, summary { color: var(--faint); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; }
dd { margin: 0; overflow-wrap: anywhere; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; margin: 1rem 0 0; padding: 0; }
a { color: inherit; }
.side-by-side { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 1.5rem; }
figure { margin: 0; min-width: 0; }
figcaption { font-size: .875rem; margin-top: .25rem; }
svg { display: block; width: 100%; max-width: 36rem; height: auto; }
svg text { font: 12.5px system-ui, sans-serif; fill: var(--ink); }
svg .label, svg .small { fill: var(--faint); }
.grid { stroke: var(--grid); }
.line, .moment, .bound { fill: none; stroke-width: 2; stroke-linejoin: round; }
.pale { stroke: var(--pale); stroke-width: .8; }
.all { stroke: var(--ink); stroke-width: 3; opacity: .85; }
.moment { stroke: var(--faint); stroke-width: 1; stroke-dasharray: 2 3; }
.gap { stroke: var(--tenant-1); }
.bound { stroke: var(--ink); stroke-width: 1.4; stroke-dasharray: 5 3; }
.beyond, .over { fill: var(--tenant-5); stroke: var(--tenant-5); }
.beyond { r: 3px; }
.short, .over { stroke-width: 3; }
.short { stroke: var(--tenant-1); }
.received { fill: var(--ink); }
.entitled { stroke: var(--tenant-0); stroke-width: 3.5; }
.area { stroke: none; }
.taken { fill: var(--tenant-2); opacity: .4; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0; margin: 0 0 .75rem;
  font-size: .875rem; }
.legend li { display: flex; align-items: center; gap: .4rem; max-width: 100%; overflow-wrap: anywhere; }
.legend svg { width: 32px; flex: none; }
.scroll { overflow-x: auto; margin: .5rem 0; }
.scroll:focus-visible { outline: 2px solid var(--tenant-1); }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .25rem 0; }
th, td { padding: .25rem .75rem; text-align: right; border-bottom: 1px solid var(--grid); white-space: nowrap; }
th:first-child { text-align: left; padding-left: 0; position: sticky; left: 0; background: var(--paper);
  max-width: min(40vw, 24rem); white-space: normal; overflow-wrap: anywhere; }
thead th { border-bottom: 2px solid var(--pale); vertical-align: bottom; }
details { margin: .75rem 0; }
summary { cursor: pointer; }
@media print { details { display: block; } figure { break-inside: avoid; } }
"""


def style() -> str:
    """The page's style sheet."""
    light, dark = (" ".join(f"--{name}: {value};" for name, value in theme.items()) for theme in (_LIGHT, _DARK))
    tenants = "\n".join(
        f".tenant-{place} {{ stroke: var(--tenant-{place}); stroke-dasharray: {dash}; }}"
        for place, dash in enumerate(DASHES)
    )
    themes = (
        f":root {{ color-scheme: light dark; {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    )
    return f"{themes}{_RULES}{tenants}\n"
