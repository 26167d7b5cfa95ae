"""Who is asked, and as whom: all that a client of the API server needs, in one value and in kubeconfig's form."""

from __future__ import annotations

import base64
import json
import ssl
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Access:
    """An address, the authority that signed its certificate, and a token."""

    url: str
    authority: bytes
    token: str

    def via(self, url: str) -> Access:
        """The same, but through a proxy that listens there."""
        return replace(self, url=url)

    def as_user(self, token: str) -> Access:
        """The same server, asked by somebody else."""
        return replace(self, token=token)

    def trust(self) -> ssl.SSLContext:
        """What a client needs to trust the server and nobody else."""
        return ssl.create_default_context(cadata=self.authority.decode())

    def kubeconfig(self, namespace: str = "default") -> dict[str, Any]:
        """The document that every client of Kubernetes reads."""
        authority = base64.b64encode(self.authority).decode()
        cluster = {"server": self.url, "certificate-authority-data": authority}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": "user", "user": {"token": self.token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "user", "namespace": namespace}}],
            "current-context": "tests",
        }

    def write(self, path: Path, namespace: str = "default") -> Path:
        """Put it into a file that only the user may read."""
        path.touch(mode=0o600)
        path.write_text(json.dumps(self.kubeconfig(namespace)))
        return path
