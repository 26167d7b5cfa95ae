"""Kubernetes' amounts, such as 500m, 1.5Gi and 12e6, and addresses, as its functions in CEL understand them."""

from __future__ import annotations

import ipaddress
import re
from fractions import Fraction
from typing import Final

_FORM: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<digits>[0-9]*\.?[0-9]*)(?:(?P<suffix>[KMGTPE]i|[numkMGTPE]?)|[eE](?P<power>[+-]?[0-9]+))",
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MOST: Final = Fraction(2**63 - 1)
_LEAST: Final = Fraction(1, 10**9)


def quantity(text: str) -> Fraction:
    """An amount; what is smaller than a billionth is rounded up to one, and where there are no digits it is 0.

    Raises:
        ValueError: it is none.
    """
    found = _FORM.fullmatch(text)
    if found is None or not text or len(text) > 64 or abs(int(found["power"] or 0)) > 64:
        raise ValueError("not a quantity")
    suffix = found["suffix"] or ""
    amount = Fraction(f"0{found['digits']}".rstrip("."))
    if suffix in _BINARY:
        amount = min(amount * 2 ** _BINARY[suffix], _MOST)
    else:
        amount *= Fraction(10) ** (int(found["power"]) if found["power"] else _DECIMAL[suffix])
    rounded = -(-amount // _LEAST) * _LEAST
    return -rounded if found["sign"] == "-" else rounded


def is_ip(text: str) -> bool:
    """Whether it is an IP address; one without a zone, and no IPv4 address written as IPv6."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return address.version == 4 or (address.scope_id is None and address.ipv4_mapped is None)


def is_cidr(text: str) -> bool:
    """Whether it is a range of addresses; bits of the host may be set."""
    address, slash, bits = text.partition("/")
    if not (slash and is_ip(address) and re.fullmatch(r"0|[1-9][0-9]{0,2}", bits)):
        return False
    return int(bits) <= (32 if "." in address and ":" not in address else 128)
