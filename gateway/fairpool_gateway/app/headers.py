"""Which headers pass between a tenant and an endpoint, and which stop here.

A tenant's credential, hop-by-hop headers and whatever claims to be FairPool's own never reach an endpoint, not in the
query of the URL either; from an endpoint everything passes but hop-by-hop headers and FairPool's own, in order, with
repeats, byte for byte. Names are in lower case here, as ASGI has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from urllib.parse import unquote_to_bytes

RawHeaders = Sequence[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_CREDENTIALS = frozenset({b"authorization", b"x-api-key", b"api-key", b"cookie"})
"""A cookie is one too, where a proxy keeps its users' sessions in it, and no engine has a use for one."""

_OURS = frozenset({b"content-length", b"expect", b"host", b"x-request-id"})
_STOP_AT_REQUEST = _HOP_BY_HOP | _CREDENTIALS | _OURS
_BODILESS = frozenset({204, 304})
_OWN = b"x-fairpool-"
_SECRET_PARAMETER = re.compile(
    rb"(?:x-)?api[-_]?key|authorization|access[-_]token|x-fairpool-.*", re.IGNORECASE | re.DOTALL
)
_WORTH_SEARCHING = 8
"""Characters. A shorter credential, such as the `EMPTY` of many an example, is found as a whole value only."""

CLOSE = (b"connection", b"close")
"""Of an answer after which the connection ends."""

_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


def first(headers: RawHeaders, name: bytes) -> bytes | None:
    """The first value of a header, or None."""
    for key, value in headers:
        if key == name:
            return value
    return None


def for_endpoint(
    headers: RawHeaders, host: bytes, length: int, request_id: bytes, credential: bytes | None = None
) -> list[tuple[bytes, bytes]]:
    """The headers of the request as an endpoint gets it; always with a length, however the body came.

    `credential`: the endpoint's own, if it asks for one.
    """
    stopped = _and_nominated(_STOP_AT_REQUEST, headers)
    passed = [header for header in headers if header[0] not in stopped and not header[0].startswith(_OWN)]
    return [
        (b"host", host),
        *([] if credential is None else [(b"authorization", b"Bearer " + credential)]),
        *passed,
        (b"x-request-id", request_id),
        (b"content-length", b"%d" % length),
    ]


def query_for_endpoint(query: bytes, headers: RawHeaders) -> bytes:
    """The query of the URL as an endpoint gets it: every parameter as it came, but those that hold a credential.

    These are what clients call one, and whatever has the value of one that these headers hold.
    """
    if not query:
        return query
    secrets = set(_credentials(headers))
    return b"&".join(each for each in query.split(b"&") if not _tells(each, secrets))


def _tells(parameter: bytes, secrets: set[bytes]) -> bool:
    plain = unquote_to_bytes(parameter.replace(b"+", b" ")) if b"%" in parameter or b"+" in parameter else parameter
    name, _, value = plain.partition(b"=")
    return (
        value in secrets
        or _SECRET_PARAMETER.fullmatch(name) is not None
        or any(secret in plain for secret in secrets if len(secret) >= _WORTH_SEARCHING)
    )


def _credentials(headers: RawHeaders) -> Iterator[bytes]:
    for name, value in headers:
        if value and (name in _CREDENTIALS or name.startswith(_OWN)):
            yield value
            yield value.rpartition(b" ")[2]


def for_tenant(
    headers: RawHeaders, request_id: bytes, id_headers: tuple[bytes, ...] = (b"x-request-id",), *, status: int = 200
) -> list[tuple[bytes, bytes]]:
    """The headers of the answer as a tenant gets it; those that hold the id of its request are the gateway's.

    No endpoint can speak for the gateway, as by a reason for which it would have refused. The length of a body that an
    answer of this `status` does not have stops here as well.
    """
    stopped = _and_nominated(_stopped_at_tenant(id_headers, status in _BODILESS), headers)
    passed = [header for header in headers if header[0] not in stopped and not header[0].startswith(_OWN)]
    passed.extend([(name, request_id) for name in id_headers])
    return passed


@cache
def _stopped_at_tenant(id_headers: tuple[bytes, ...], bodiless: bool) -> frozenset[bytes]:
    return _HOP_BY_HOP.union(id_headers, [b"content-length"] if bodiless else [])


def request_id(headers: RawHeaders, made: str) -> bytes:
    """The tenant's `x-request-id` where it is printable and short, else the one that was made here."""
    given = first(headers, b"x-request-id")
    return given if given is not None and _REQUEST_ID.fullmatch(given) else made.encode()


def _and_nominated(names: frozenset[bytes], headers: RawHeaders) -> frozenset[bytes]:
    """These names, and the further hop-by-hop headers that `Connection` names."""
    for name, value in headers:
        if name == b"connection" and value.lower() not in {b"keep-alive", b"close"}:
            names = names.union(token.strip().lower() for token in value.split(b","))
    return names
