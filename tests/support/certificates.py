"""Certificates for tests: an authority, what it signs, and contexts that serve or trust it."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme

NAME = "engine.local"
"""What the certificates are for, unless the test says otherwise."""

LONG_AGO = datetime.now(UTC) - timedelta(days=2)


class Authority:
    """An authority whose certificate is in a file of the test's own directory."""

    def __init__(self, directory: Path, name: str = "ca") -> None:
        self._ca = trustme.CA()
        self.file = directory / f"{name}.pem"
        self.write()

    @property
    def pem(self) -> bytes:
        """Its certificate."""
        return self._ca.cert_pem.bytes()

    def write(self, path: Path | None = None) -> Path:
        """Put its certificate into a file, its own unless another is given."""
        path = path or self.file
        path.write_bytes(self.pem)
        return path

    def sign(self, *names: str, expired: bool = False) -> trustme.LeafCert:
        """A certificate with its key."""
        return self._ca.issue_cert(*(names or (NAME,)), not_after=LONG_AGO if expired else None)

    def serving(self, *names: str, **options: bool) -> ssl.SSLContext:
        """What a server needs to prove that it has these names."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.sign(*names, **options).configure_cert(context)
        return context

    def trust(self, context: ssl.SSLContext) -> ssl.SSLContext:
        """Have a context trust it too."""
        self._ca.configure_trust(context)
        return context

    def trusted(self) -> ssl.SSLContext:
        """What a client needs to trust it and nobody else."""
        return self.trust(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
