"""Secrets in which something may be wrong for their type: a value is not there, is empty, or is of no use."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st
from support.cluster.resources import key_secret

_TYPES: Final = st.sampled_from(
    [
        *(f"kubernetes.io/{each}" for each in ("basic-auth", "dockercfg", "dockerconfigjson", "ssh-auth", "tls")),
        *("kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token", "any/type", "Opaque", "", None),
    ]
)
_KEYS: Final = st.sampled_from(
    [".dockercfg", ".dockerconfigjson", "password", "ssh-privatekey", "tls.crt", "tls.key", "username", "a b"]
)
_TEXTS: Final = st.sampled_from(
    [
        *("", " ", "x", "{}", " {}\n", "{} {}", "{", "[]", "7", "null", "\ufeff{}", '{"auths": {}, "auths": []}'),
        *('{"a": 1e308}', '{"a": 1e309}', '{"a": -1e309}', '{"a": Infinity}', '{"a": 01}', '{"a": "\t"}', "{'a': 1}"),
        *('{"a": "\\ud800"}', f'{{"a": {"9" * 309}}}', f'{{"a": {"9" * 308}}}', '{"a": 1,}', None),
    ]
)
_BYTES: Final = st.sampled_from(["", "e30=", "e3\n0=", "eyJhIjogIv8ifQ==", "77u/e30=", "/v8=", None])
"""In base64: nothing, `{}` without and with what it needs, bytes that are no UTF-8 in an object, and marks of order."""
_ACCOUNTS: Final = st.sampled_from([None, {}, *({"kubernetes.io/service-account.name": name} for name in ("", "a"))])


@st.composite
def odd_secrets(draw: st.DrawFn) -> Any:
    """A Secret for FairPool that may be one of a type."""
    secret = key_secret("default", "search-key", "sk-1")
    secret["metadata"]["annotations"] = draw(_ACCOUNTS)
    more = {
        "type": draw(_TYPES),
        "data": draw(st.dictionaries(_KEYS, _BYTES, max_size=3)),
        "stringData": draw(st.dictionaries(_KEYS, _TEXTS, max_size=3)),
    }
    return {**secret, **more}
