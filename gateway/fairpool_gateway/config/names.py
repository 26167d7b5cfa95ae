"""Names, digests and addresses: the texts of a configuration, each held to one rule that its message spells out.

What stands beside a digest or in an address may be a credential, so messages about these never repeat the value.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import BeforeValidator

from fairpool_gateway.config.shown import shown
from fairpool_gateway.sfq import OTHER

_DNS_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/@:-]{0,318}[A-Za-z0-9])?")
_NAME_IN_WORDS: Final = "at most 320 letters, digits and . _ - / @ : with a letter or digit at either end"
_DIGEST: Final = re.compile(r"sha256:[0-9a-fA-F]{64}")
_DIGEST_OF_NOTHING: Final = "sha256:" + hashlib.sha256(b"").hexdigest()
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9._-]{0,251}[a-z0-9])?")
_URL_IN_WORDS: Final = "http://HOST:PORT or https://HOST:PORT"
_DNS_NAME: Final = re.compile(
    r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?)*"
)
_PATH: Final = re.compile(r"/[!-~]{0,255}")

_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_QUALIFIED_NAME: Final = re.compile(
    r"((?=[^/]{1,253}/)[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
_PORT_NAME: Final = re.compile(r"(?=[a-z0-9-]*[a-z])[a-z0-9](-?[a-z0-9]){0,14}")

_HEADER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")

PROXY_CREDENTIAL_HEADER: Final = "x-fairpool-proxy-credential"
"""In which a trusted proxy sends its own credential."""

_HEADERS_WITH_A_MEANING: Final = frozenset({
    *("accept", "accept-encoding", "api-key", "authorization", "connection", "content-encoding", "content-length"),
    *("content-type", "cookie", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te"),
    *("trailer", "transfer-encoding", "upgrade", "x-api-key", "x-request-id", PROXY_CREDENTIAL_HEADER),
})  # fmt: skip

HOW_TO_DIGEST: Final = """'sha256:' and the 64 hex digits that `printf %s "$KEY" | sha256sum` prints"""


def text(rule: Callable[[str], str]) -> BeforeValidator:
    """Holds a text to `rule`; a number, a yes or a date that YAML saw in it is told apart."""

    def check(value: object) -> str:
        match value:
            case str():
                return rule(value)
            case int() | float():
                raise ValueError(f"must be text, not {shown(value)}: put it in quotes")
            case _:
                raise ValueError(f"must be text, not {shown(value)}")

    return BeforeValidator(check)


def _pool_name(value: str) -> str:
    if not _DNS_LABEL.fullmatch(value):
        raise ValueError(
            f"must be a DNS label (at most 63 of a-z, 0-9 and '-', no '-' at either end), not {shown(value)}"
        )
    return value


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError(f"must be {_NAME_IN_WORDS}, not {shown(value)}")
    return value


def _key_name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"must be {_NAME_IN_WORDS}, in quotes if it is a number")
    return value


def may_name_a_tenant(value: str) -> bool:
    """Whether a tenant may be called this; names that begin with `_` are the gateway's own."""
    return bool(_NAME.fullmatch(value))


def _tenant_name(value: str) -> str:
    if value == OTHER:
        raise ValueError(f"{OTHER} is reserved for the tenants beyond authentication.maxTenants; choose another name")
    return _name(value)


def _model_name(value: str) -> str:
    if not value or len(value) > 256 or not value.isprintable() or value != value.strip():
        raise ValueError(f"must be 1 to 256 printable characters with no space at either end, not {shown(value)}")
    return value


def _digest(value: object) -> str:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise ValueError(f"must be {HOW_TO_DIGEST}; a key itself never belongs here")
    digest = value.lower()
    if digest == _DIGEST_OF_NOTHING:
        raise ValueError("is the digest of an empty key: was the variable set when you made it?")
    return digest


def _endpoint_url(value: str) -> str:
    try:
        url = urlsplit(value)
        host, port = url.hostname or "", url.port
        is_ipv6 = ":" in host and bool(IPv6Address(host))
    except ValueError:
        raise ValueError(f"must be {_URL_IN_WORDS}") from None
    if url.username is not None or url.password is not None:
        raise ValueError(f"must be {_URL_IN_WORDS}, without a user name or a password")
    if url.scheme not in {"http", "https"} or not port or not (is_ipv6 or _HOST.fullmatch(host)):
        raise ValueError(f"must be {_URL_IN_WORDS}")
    if url.path not in ("", "/") or url.query or url.fragment:
        raise ValueError(f"must be {_URL_IN_WORDS}, without a path: each request brings its own")
    return f"{url.scheme}://[{host}]:{port}" if is_ipv6 else f"{url.scheme}://{host}:{port}"


def _server_name(value: str) -> str:
    name = value.lower()
    with contextlib.suppress(ValueError):
        return str(ip_address(name))
    if not _DNS_NAME.fullmatch(name):
        raise ValueError(f"must be a DNS name or an IP address that certificates are for, not {shown(value)}")
    return name


def _request_path(value: str) -> str:
    if not _PATH.fullmatch(value) or "#" in value:
        raise ValueError(f"must be a path such as /health, not {shown(value)}")
    return value


def _label_key(value: str) -> str:
    if not _QUALIFIED_NAME.fullmatch(value):
        raise ValueError(f"must be the key of a label, such as app or example.com/app, not {shown(value)}")
    return value


def _label_value(value: str) -> str:
    if not _LABEL_VALUE.fullmatch(value):
        raise ValueError(f"must be the value of a label, at most 63 letters, digits and . _ -, not {shown(value)}")
    return value


def _resource_name(value: str) -> str:
    if not _QUALIFIED_NAME.fullmatch(value):
        raise ValueError(f"must be the name of a resource, such as nvidia.com/gpu, not {shown(value)}")
    return value


def _port_name(value: str) -> str:
    if len(value) > 15 or not _PORT_NAME.fullmatch(value):
        raise ValueError(f"must be the name of a container's port, such as http, not {shown(value)}")
    return value


def _ca_file(value: str) -> str:
    if not value.startswith("/") or not value.isprintable():
        raise ValueError("must be the absolute path of a file of certificates in PEM, such as /etc/fairpool/ca.pem")
    return value


def _header_name(value: str) -> str:
    if not _HEADER.fullmatch(value):
        raise ValueError(f"must be the name of a header, such as x-tenant, not {shown(value)}")
    if value.lower() in _HEADERS_WITH_A_MEANING:
        raise ValueError(f"{value.lower()} means something else: choose another header, such as x-tenant")
    return value.lower()


def _absolute_path(value: object) -> str:
    if not isinstance(value, str) or not value.startswith("/") or not value.isprintable():
        raise ValueError("must be the absolute path of a file, such as /run/secrets/engine; no credential belongs here")
    return value


def _variable_name(value: object) -> str:
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
        raise ValueError("must be the name of a variable, such as ENGINE_KEY; no credential belongs here")
    return value


PoolName = Annotated[str, text(_pool_name)]
Name = Annotated[str, text(_name)]
KeyName = Annotated[str, BeforeValidator(_key_name)]
TenantName = Annotated[str, text(_tenant_name)]
ModelName = Annotated[str, text(_model_name)]
Digest = Annotated[str, BeforeValidator(_digest)]
EndpointUrl = Annotated[str, text(_endpoint_url)]
CaFile = Annotated[str, text(_ca_file)]
ServerName = Annotated[str, text(_server_name)]
RequestPath = Annotated[str, text(_request_path)]
HeaderName = Annotated[str, text(_header_name)]
LabelKey = Annotated[str, text(_label_key)]
LabelValue = Annotated[str, text(_label_value)]
ResourceName = Annotated[str, text(_resource_name)]
PortName = Annotated[str, text(_port_name)]
FilePath = Annotated[str, BeforeValidator(_absolute_path)]
VariableName = Annotated[str, BeforeValidator(_variable_name)]
