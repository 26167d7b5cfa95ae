"""Where an exchange goes, and how long silence is borne on the way."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """Where an endpoint listens. `host` is an address or a name; connections to equal targets are shared."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Timeouts:
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
