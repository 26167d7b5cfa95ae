"""Where an exchange goes, whom it trusts there, and how long silence is borne on the way."""

from __future__ import annotations

import msgspec


class Tls(msgspec.Struct, frozen=True):
    """How an endpoint proves who it is.

    Attributes:
        ca_file: the authorities that may vouch for it, in PEM, and no others; read again whenever it has changed.
        server_name: the name or address that its certificate has to be for, whatever address it has.
    """

    ca_file: str
    server_name: str


class Target(msgspec.Struct, frozen=True):
    """Where an endpoint listens. `host` is an address or a name; connections to equal targets are shared.

    Attributes:
        tls: over TLS, and how the endpoint proves who it is; None: over plain TCP.
    """

    host: str
    port: int
    tls: Tls | None = None

    @property
    def authority(self) -> str:
        """What requests call it in their Host header: over TLS the name that it proves, else its address."""
        return _authority(self.host if self.tls is None else self.tls.server_name, self.port)

    def __str__(self) -> str:
        return _authority(self.host, self.port)


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds of silence that end an exchange, `math.inf` for never. No limit on the whole: a stream may last.

    Attributes:
        connect: until the connection stands.
        first_byte: from the request being sent to the first byte of the body; headers do not count, for engines
            send those of a stream while the request still waits inside them.
        idle: between bytes once the body began, and while the endpoint takes none of a request that is streamed.
            Time in which a slow reader holds the endpoint back does not count.
    """

    connect: float
    first_byte: float
    idle: float


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
