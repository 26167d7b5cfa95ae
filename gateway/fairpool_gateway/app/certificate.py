"""The certificate that tenants see, replaced while the gateway runs.

Certificates are renewed by programs that write files, while requests run that last for minutes. So the files are read
again every second, and what is in them counts for handshakes from then on; connections that stand go on. What always
holds: certificate and key are taken together, and a pair that cannot be used changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fairpool_gateway.errors import CannotStart

READ_EVERY = 1.0
"""Seconds between looks at the files."""

_BEGINNING: Final = re.compile(rb"-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----")
_TRUSTED: Final = b"TRUSTED CERTIFICATE"
"""OpenSSL's own form, with what to trust it for; of those behind the first it passes over them in silence."""
_NOT_ITS_KEY: Final = "{key} is not the key of the certificate in {certificate}: give the two that were made together"
_TOO_SHORT: Final = "{certificate} is for a key that is too short, or signed by one: RSA needs 2048 bits, make it anew"
_REFUSALS: Final[Mapping[str | None, str]] = {
    "KEY_VALUES_MISMATCH": _NOT_ITS_KEY,
    "NO_CERTIFICATE_ASSIGNED": _NOT_ITS_KEY,  # which is what it says where not even the kinds of key are the same
    "UNKNOWN_CERTIFICATE_TYPE": "{key} or {certificate} is for a kind of key that TLS does not take: make both anew",
    "EE_KEY_TOO_SMALL": _TOO_SHORT,
    "CA_KEY_TOO_SMALL": _TOO_SHORT,
    "CA_MD_TOO_WEAK": "{certificate} is signed with a hash that is too weak: have it signed anew, with SHA-256",
}
"""What OpenSSL's words for a refused pair come to."""

log = logging.getLogger(__name__)


class Certificate:
    """A certificate with its chain, and its key, each in a file in PEM.

    Attributes:
        context: what a server listens with, for as long as it lives.
        problem: why what is in the files now is not in force, if it is not.

    Raises:
        CannotStart: what is in the files cannot be used.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self._seen = self._judged = (_content(certificate), _content(key))
        self._current = self._load()
        self.problem: str | None = None
        # The pair in force is chosen in each handshake: loading another one into a context that serves would leave it
        # with half a pair where the halves do not fit.
        self.context = self._current
        self.context.sni_callback = self._choose

    async def follow(self, stop: asyncio.Event) -> None:
        """Look at the files until told to stop."""
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), READ_EVERY)
            await asyncio.to_thread(self.look)

    def look(self) -> None:
        """Take what is in the files if it is new, and stayed since the last look: both may just be being written."""
        before, self._seen = self._seen, (_content(self._certificate), _content(self._key))
        if self._seen != before or self._seen == self._judged:
            return
        self._judged = self._seen
        self.problem = self._problem_of_taking_it()
        if self.problem is None:
            log.info("the certificate in %s is in force for new connections", self._certificate)
        else:
            log.error("the last good certificate stays in force: %s", self.problem)

    def _problem_of_taking_it(self) -> str | None:
        try:
            self._current = self._load()
        except CannotStart as problem:
            return str(problem)
        return None

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current

    def _load(self) -> ssl.SSLContext:
        certificate, key = self._seen
        if isinstance(certificate, str):
            raise CannotStart(f"{self._certificate} {certificate}")
        if isinstance(key, str):
            raise CannotStart(f"{self._key} {key}")
        if _TRUSTED in _BEGINNING.findall(certificate)[1:]:
            raise CannotStart(
                f"{self._certificate} holds a TRUSTED CERTIFICATE behind the first, which would not be sent: "
                "put there what openssl x509 -in FILE prints of it"
            )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(self._certificate, self._key, password=self._refuse_to_ask)
        except OSError as error:
            raise CannotStart(self._in_words(error, certificate, key)) from error
        return context

    def _refuse_to_ask(self) -> str:
        """For a password. OpenSSL would ask on the terminal, and wait."""
        raise CannotStart(f"{self._key} is encrypted: give it without a password")

    def _in_words(self, error: OSError, certificate: bytes, key: bytes) -> str:
        if not _BEGINNING.search(certificate):
            return f"{self._certificate} holds no certificate in PEM"
        if b"PRIVATE KEY-----" not in key:
            return f"{self._key} holds no private key in PEM"
        reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
        if reason in _REFUSALS:
            return _REFUSALS[reason].format(key=self._key, certificate=self._certificate)
        if not _is_whole(certificate):
            return f"{self._certificate} holds a certificate that is broken, or cut off"
        if reason is None:
            return f"{self._key} holds a private key that is broken, or cut off"
        return f"{self._certificate} with {self._key} cannot be used ({reason})"


def _is_whole(certificates: bytes) -> bool:
    """Whether each can be decoded, which OpenSSL does not tell of a pair that it refuses."""
    text = certificates.replace(_TRUSTED, b"CERTIFICATE").decode("ascii", "ignore")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except ssl.SSLError:
        return False
    return True


def _content(path: Path) -> bytes | str:
    """The bytes in a file, or why there are none."""
    try:
        return path.read_bytes()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
