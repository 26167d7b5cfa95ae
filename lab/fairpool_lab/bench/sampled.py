"""The gateway that tells where its processor time goes: which part of it was at work, looked at again and again.

The kernel sends a signal after each millisecond of processor time (`ITIMER_PROF`), or less often where its clock is
coarser, and Python looks then which function it is in. It does so between two steps of its own: a call of the system
counts for the function that made it. What the event loop does by itself, polling and reading sockets, ends with the
first step of the function that it calls next, and is told by that.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec
import uvloop

from fairpool_lab.bench.unhurried import serve

_SECONDS: Final = 0.001

LOOP: Final = "the event loop: polls and reads sockets, switches tasks"
WRITING: Final = "writing to sockets"

_PARTS: Final = {
    "uvicorn": "reading requests, framing answers",
    "fairpool_gateway.app.protocol": "reading requests, framing answers",
    "fairpool_gateway.app.connection": "reading requests, framing answers",
    "fairpool_gateway.app.answers": "reading requests, framing answers",
    "fairpool_gateway.writes": WRITING,
    "fairpool_gateway.identity": "whose request it is",
    "fairpool_gateway.app.body": "what it will cost: its body and the estimate",
    "fairpool_gateway.cost": "what it will cost: its body and the estimate",
    "fairpool_gateway.charging": "what it will cost: its body and the estimate",
    "fairpool_gateway.usage": "what it used",
    "fairpool_gateway.upstream": "the exchange with the endpoint",
    "fairpool_gateway.app.attempts": "the exchange with the endpoint",
    "fairpool_gateway.app": "the way between: headers, outcomes, events",
    "fairpool_gateway": "admission, order, placement and their figures",
}
"""The parts of the gateway, by the modules that they are made of; of several names that fit the longest counts."""


class Samples(msgspec.Struct, frozen=True):
    """How often each part was at work, within so many seconds of processor time."""

    counts: dict[str, int]
    seconds: float


class Sampler:
    """Counts how often each part was at work."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(self, _: int, frame: FrameType | None) -> None:
        """Look once."""
        self.counts[self._at_work(frame)] += 1

    def _at_work(self, frame: FrameType | None) -> str:
        """The part of the innermost function that belongs to one."""
        while frame is not None:
            code, outer = frame.f_code, frame.f_back
            part = _part_of(_module_of(frame), code.co_name)
            if part is not None:
                just_called = frame.f_lineno == code.co_firstlineno
                by_the_loop = outer is not None and _module_of(outer) == "asyncio.runners"
                return LOOP if just_called and by_the_loop else part
            frame = outer
        return LOOP


def _module_of(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name


@cache
def _part_of(module: str, function: str) -> str | None:
    if function == "write_out":
        return WRITING
    while module:
        if module in _PARTS:
            return _PARTS[module]
        module = module.rpartition(".")[0]
    return None


async def sample(endpoint: int) -> Samples:
    """Serve until SIGTERM."""
    sampler, ended = Sampler(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    serving = asyncio.create_task(serve(endpoint))
    signal.signal(signal.SIGPROF, sampler)
    signal.setitimer(signal.ITIMER_PROF, _SECONDS, _SECONDS)
    began = time.process_time()
    await ended.wait()
    signal.setitimer(signal.ITIMER_PROF, 0)
    serving.cancel()
    return Samples(sampler.counts, time.process_time() - began)


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(msgspec.json.encode(uvloop.run(sample(int(sys.argv[1])))))
