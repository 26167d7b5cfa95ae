"""Who may vouch for endpoints over TLS, and what to say when nobody does.

An endpoint of a pool has an address that no public authority would vouch for. So a pool names its own authorities, in
a file, and the name that certificates have to be for; nobody else is trusted, and nothing is ever taken unverified.

The file is looked at before each new connection, so that an authority may be replaced while the gateway runs, however
the file is written. What always holds: a file that cannot be used changes nothing if it once could. Connections that
stand already go on.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Final

from fairpool_gateway.errors import ConnectFailed
from fairpool_gateway.upstream.target import Target, Tls

log = logging.getLogger(__name__)

_EXPIRED: Final = 10
_FOR_ANOTHER_NAME: Final = frozenset({62, 64})
_NOT_VOUCHED_FOR: Final = frozenset({2, 18, 19, 20, 21})
"""What OpenSSL says of a certificate, by its codes."""


class Authorities:
    """Those of one client: what is in each file that its targets name."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}

    def context(self, tls: Tls) -> ssl.SSLContext:
        """What a new connection is made with.

        Raises:
            ConnectFailed: the file cannot be used, and never could.
        """
        file = self._files.get(tls.ca_file)
        if file is None:
            file = self._files[tls.ca_file] = _File(Path(tls.ca_file))
        return file.context()


class _File:
    """One file of authorities, and what was last good in it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content: bytes | None = None
        self._problem: str | None = None
        self._good: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        try:
            content = self._path.read_bytes()
        except OSError as error:
            self._content = None
            self._found(f"cannot be read: {error.strerror}")
        else:
            if content != self._content:
                self._content = content
                self._load()
        if self._good is None:
            raise ConnectFailed(f"endpointTls.caFile {self._problem}")
        return self._good

    def _load(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # An intermediate authority, or the endpoint's very certificate, may be all that the file holds.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_verify_locations(self._path)
        except OSError:
            self._found("holds no certificates in PEM, or something beside them")
        else:
            self._good = context
            self._found(None)

    def _found(self, problem: str | None) -> None:
        if problem is not None and problem != self._problem and self._good is not None:
            log.error("endpointTls.caFile %s %s; what it held before stays in force", self._path, problem)
        self._problem = problem


def in_words(error: ssl.SSLError, target: Target) -> str:
    """Why there is no TLS with an endpoint, and what to do."""
    if not isinstance(error, ssl.SSLCertVerificationError):
        return f"no TLS with {target}, does it serve https? ({error.reason or error})"
    match error.verify_code:
        case code if code in _NOT_VOUCHED_FOR:
            what_to_do = "was signed by nobody in endpointTls.caFile: put the authority that signed it there"
        case code if code in _FOR_ANOTHER_NAME:
            asked = target.tls and target.tls.server_name
            what_to_do = f"is not for {asked}: set endpointTls.serverName to a name that it is for"
        case code if code == _EXPIRED:
            what_to_do = "has expired: renew it"
        case _:
            what_to_do = f"cannot be trusted: {error.verify_message}"
    return f"the certificate of {target} {what_to_do}"
