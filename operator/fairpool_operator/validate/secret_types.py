"""What the API server asks of a Secret by its type, such as the two halves of a certificate of `kubernetes.io/tls`.

What always holds: of a type that is not here nothing is asked, and a value is in no text about it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fairpool_operator.validate.causes import Cause, Fault, Key, cause

_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
"""The keys of which all have to be there, if with nothing behind them."""
_IN_JSON: Final = frozenset({".dockercfg", ".dockerconfigjson"})
_USER: Final = ("username", "password")
_PRIVATE_KEY: Final = "ssh-privatekey"
_ACCOUNT: Final = "kubernetes.io/service-account.name"


def check_type(type_: str, annotations: Mapping[str, Any], values: Mapping[str, bytes]) -> Iterator[Cause]:
    """What a Secret of a type lacks; `values` are those that the server would keep."""
    for key in _KEYS.get(type_, ()):
        if key not in values:
            yield _required(key)
        elif key in _IN_JSON and not _is_object(values[key]):
            yield cause(("data", Key(key)), Fault.INVALID, "has to be an object in JSON")
    if type_ == "kubernetes.io/basic-auth" and not any(key in values for key in _USER):
        yield from map(_required, _USER)
    if type_ == "kubernetes.io/ssh-auth" and not values.get(_PRIVATE_KEY):
        yield _required(_PRIVATE_KEY)
    if type_ == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT):
        yield cause(("metadata", "annotations", Key(_ACCOUNT)), Fault.REQUIRED)


def _required(key: str) -> Cause:
    return cause(("data", Key(key)), Fault.REQUIRED)


def _is_object(value: bytes) -> bool:
    """Whether the server could read it as one, for which it takes null, too, and bytes that are no UTF-8."""
    text = value.decode(errors="replace")
    try:
        read = json.loads(text, parse_constant=_no_number, parse_float=_number, parse_int=_number)
    except (ValueError, RecursionError):
        return False
    return isinstance(read, dict | None)


def _number(text: str) -> float:
    number = float(text)
    return _no_number(text) if math.isinf(number) else number


def _no_number(_text: str) -> float:
    raise ValueError("a number that the server does not know")
