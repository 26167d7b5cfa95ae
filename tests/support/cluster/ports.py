"""Ports that stay a server's own while it is down, so that it comes back where its clients look for it."""

from __future__ import annotations

import socket


class Port:
    """A port of 127.0.0.1 that the kernel chose, held by a socket that does not listen.

    Nobody else gets the number meanwhile, but for servers that share ports (SO_REUSEPORT), as ours are told to.
    """

    def __init__(self) -> None:
        self._holder = socket.socket()
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._holder.bind(("127.0.0.1", 0))
        self.number: int = self._holder.getsockname()[1]

    def close(self) -> None:
        """Give it back."""
        self._holder.close()
