"""What is asked of each subject, and how: the same requests of the same seed for all."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from fairpool_lab.bench.subjects import FEW_SLOTS, MANY_TENANTS, TENANTS, key_of

WAITING: Final = 10_000
LARGE: Final = 1 << 20
_AFTER: Final = 1.5
_LENGTH = 950
"""Bytes of an ordinary prompt: the request has about 1 KB."""


class Kind(StrEnum):
    """What an answer is, and so what is to be looked at."""

    WHOLE = "whole"
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class Workload:
    """One of them.

    Attributes:
        name: its letter, and what tells it from others of that letter.
        title: what it is, for tables.
        arguments: of the load generator, beside those that every load gets.
        seconds: for which it is watched, after `warmup`.
        prompt: what the endpoint is told to do, as the prompt begins.
        tenants: how many ask, in turn.
        large: the part of requests that have 1 MB.
    """

    name: str
    title: str
    arguments: tuple[str, ...]
    seconds: float
    warmup: float = 0.5
    prompt: str = ""
    kind: Kind = Kind.WHOLE
    tenants: int = TENANTS
    large: float = 0.0

    @property
    def takes(self) -> float:
        """Seconds that are expected of it, with what is still on its way when it ends."""
        return self.warmup + self.seconds + _AFTER

    def rehearsed(self) -> Workload:
        """The same for a moment only, to see whether everything works."""
        return replace(self, warmup=min(self.warmup, 0.5), seconds=0.5)

    def command(self, directory: Path) -> list[str]:
        """What the load generator is told, but for where; writes the files that it reads to a directory."""
        body, keys = directory / f"{self.name}.json", directory / f"{self.tenants}.keys"
        body.write_text(self.body(), encoding="utf-8")
        keys.write_text("".join(f"{key_of(tenant)}\n" for tenant in range(self.tenants)), encoding="utf-8")
        command = [*self.arguments, "--seconds", str(self.seconds), "--warmup", str(self.warmup)]
        command += ["--body", str(body), "--keys", str(keys)]
        if self.large:
            large = directory / f"{self.name}.large.json"
            large.write_text(self.body(LARGE), encoding="utf-8")
            command += ["--large-body", str(large), "--large-share", str(self.large)]
        return command

    def body(self, length: int = _LENGTH) -> str:
        """One request, with a prompt of this length."""
        prompt = self.prompt + "fair " * ((length - len(self.prompt)) // 5)
        request = {"model": "sim", "messages": [{"role": "user", "content": prompt}], "max_tokens": 100}
        return json.dumps(request | ({"stream": True} if self.kind is Kind.STREAM else {}))


def _closed(connections: int, *, seconds: float) -> Workload:
    counted = "1 connection" if connections == 1 else f"{connections} connections"
    return Workload(f"a-{connections}", counted, ("closed", "--connections", str(connections)), seconds)


def _open(name: str, title: str, *, seconds: float, large: float = 0.0) -> Workload:
    arguments = ("open", "--rate", "2000", "--connections", "512", "--timeout", "10")
    return Workload(name, title, arguments, seconds, warmup=1.0, large=large)


def _streams(streams: int, rate: int, *, seconds: float) -> Workload:
    """All begin within a second, and are watched once all run."""
    events = int(rate * (seconds + 2))
    arguments = ("streams", "--connections", str(streams), "--ramp", "1", "--events", str(events), "--timeout", "15")
    return Workload(
        name=f"c-{streams}",
        title=f"{streams:,} streams of {rate} events/s",
        arguments=arguments,
        seconds=seconds,
        warmup=1.5,
        prompt=f"events={events} rate={rate} ",
        kind=Kind.STREAM,
    )


def _crowd(name: str, title: str, *, tenants: int, seconds: float) -> Workload:
    """They come over some seconds: what waits in the kernel to be accepted is not what is measured."""
    arguments = ("closed", "--connections", str(WAITING + FEW_SLOTS), "--ramp", "4", "--timeout", "60")
    return Workload(name, title, arguments, seconds, warmup=6.0, tenants=tenants)


ONE: Final = _closed(1, seconds=3)
SIXTY_FOUR: Final = _closed(64, seconds=4)
MANY: Final = _closed(256, seconds=4)
STEADY: Final = _open("b", "2,000 requests/s, open loop", seconds=5)
STREAMS: Final = _streams(200, 100, seconds=5)
MORE_STREAMS: Final = _streams(1_000, 20, seconds=5)
MIXED: Final = _open("d", "2,000 requests/s, 1 % of them with 1 MB; times of the others", seconds=5, large=0.01)
WAIT: Final = _crowd("e", f"{WAITING:,} requests wait while {FEW_SLOTS} run", tenants=TENANTS, seconds=6)
TENANTS_WAIT: Final = _crowd("f", f"{MANY_TENANTS:,} tenants backlogged", tenants=MANY_TENANTS, seconds=6)
CHURN: Final = Workload("g", "a connection for each request", ("closed", "--churn", "--connections", "64"), seconds=4)

ALL: Final = (ONE, SIXTY_FOUR, MANY, STEADY, STREAMS, MORE_STREAMS, MIXED, WAIT, TENANTS_WAIT, CHURN)
OF_TENANTS: Final = (WAIT, TENANTS_WAIT)
"""Those that say something of a gateway that orders tenants only."""
