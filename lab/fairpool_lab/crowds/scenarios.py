"""The crowds, each with what the gateway's configuration lets it cost.

A scenario gathers its crowd and is done when it stands. `allowed` is by how much the gateway's memory may grow for it:
the bytes that the configuration bounds, twice where they are copied as they grow, and a fixed price for each connection
and each request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fairpool_gateway.app.protocol import MAX_FIELDS, MAX_HEAD, MOST_BEHIND
from fairpool_gateway.config import PoolConfig
from fairpool_gateway.upstream.buffers import ALWAYS, MOST_IN_ALL
from fairpool_gateway.usage.whole import KEPT
from fairpool_lab.crowds.members import Crowd, Member, Words, connect
from fairpool_lab.crowds.stage import TENANTS, Stage, request

CONNECTION: Final = 16 << 10
"""Bytes that a connection may cost which holds nothing."""

REQUEST: Final = 16 << 10
"""Bytes that a request may cost, beside its connection and its body."""

ANSWER: Final = 4 * ALWAYS + 2 * KEPT
"""Bytes that an answer may cost which nobody takes: what always may wait and what came with it, and its end, that usage
is read from."""

_READ: Final = 256 << 10
"""What the gateway reads from a socket at most at a time."""

_PAUSE: Final = 0.1
"""Seconds between what is said without end: a flood would show the speed of this machine only."""

_UPLOADED: Final = 48 << 10
_MIB: Final = 1 << 20
_CHUNKED: Final = "transfer-encoding: chunked"
_QUESTION: Final = {"model": "sim", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 3}
_BODY: Final = json.dumps(_QUESTION).encode()

Gather = Callable[[Stage, int], Awaitable[Crowd]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One crowd.

    Attributes:
        name: what its members do.
        connections: how many they are.
        gather: makes the crowd on a stage; it stands once this has returned.
        allowed: by how many bytes the gateway's memory may grow, for so many members.
        fields: what the pool's configuration needs for it.
    """

    name: str
    connections: int
    gather: Gather
    allowed: Callable[[PoolConfig, int], int]
    fields: Mapping[str, Any] = field(default_factory=dict)


def _tenant(number: int) -> str:
    return f"crowd-{number % TENANTS}"


def _ask(*headers: str) -> Words:
    return lambda number: request(_tenant(number), _BODY, *headers)


async def _wait(stage: Stage, number: int) -> Crowd:
    crowd = await connect(stage.port, number, words=_ask("x-answer-after: 0.2"))
    await stage.until(lambda metrics: metrics["fairpool_arrivals_total"] >= number)
    return crowd


async def _never_read(stage: Stage, number: int) -> Crowd:
    before = await stage.metrics()
    crowd = await connect(stage.port, number, words=_ask(f"x-answer-bytes: {4 * _MIB}"), reads=False)
    await stage.until(lambda now: now["fairpool_dispatches_total"] >= before["fairpool_dispatches_total"] + number)
    return crowd


async def _read_slowly(stage: Stage, number: int) -> Crowd:
    before = await stage.metrics()
    crowd = await connect(stage.port, number, words=_ask("x-answer-events: 2000"), reads=False)
    await stage.until(lambda now: now["fairpool_dispatches_total"] >= before["fairpool_dispatches_total"] + number)

    async def read_in_turn() -> None:
        while True:
            for member in crowd:
                member.transport.resume_reading()
                await asyncio.sleep(0.001)
                member.transport.pause_reading()

    crowd.keep(read_in_turn())
    return crowd


async def _leave_bodies_unfinished(stage: Stage, number: int) -> Crowd:
    begun = b'{"model": "sim", "prompt": "'.ljust(_UPLOADED, b"x")
    length = f"content-length: {_MIB}"
    crowd = await connect(stage.port, number, words=lambda n: request(_tenant(n), begun, framing=length))
    await stage.until(lambda metrics: metrics["fairpool_held_bytes"] >= number * len(begun))
    return crowd


async def _say_nothing(stage: Stage, number: int) -> Crowd:
    return await connect(stage.port, number)


async def _say_half(stage: Stage, number: int) -> Crowd:
    """As much of a head as may be, in nearly as many fields as may be."""
    fields = [f"x-{each:04}: {'y' * 256}" for each in range(MAX_FIELDS - 4)]
    half = request("crowd-0", b"", *fields)[: MAX_HEAD - 1024]
    return await connect(stage.port, number, words=lambda _: half)


async def _send_large_bodies(stage: Stage, number: int) -> Crowd:
    """One tenant's: one after the other on each connection, as soon as each is answered."""
    content = "x" * (10 * 1000 * 1000)
    whole = request(
        "crowd-0", json.dumps({"model": "sim", "messages": [{"role": "user", "content": content}]}).encode()
    )
    crowd = await connect(stage.port, number)

    async def go_on(member: Member) -> None:
        while not member.lost.is_set():
            answered = member.size
            await member.send(whole)
            while member.size == answered and not member.lost.is_set():  # noqa: ASYNC110 - it only looks
                await asyncio.sleep(0.005)

    crowd.keep(*(go_on(member) for member in crowd))
    return crowd


def _go_on_without_end(begin: bytes, more: bytes) -> Gather:
    async def gather(stage: Stage, number: int) -> Crowd:
        crowd = await connect(stage.port, number, words=lambda _: begin)

        async def go_on(member: Member) -> None:
            while not member.lost.is_set():
                await member.send(more)
                await asyncio.sleep(_PAUSE)

        crowd.keep(*(go_on(member) for member in crowd))
        return crowd

    return gather


_IN_CHUNKS: Final = request("crowd-0", b"", framing=_CHUNKED)

_ALL: Final = (
    Scenario(
        "wait",
        10_000,
        _wait,
        lambda _, n: n * (CONNECTION + REQUEST),
        {"slots": {"perEndpoint": 8}, "queue": {"maxRequests": 10_240}},
    ),
    Scenario(
        "never read",
        1_000,
        _never_read,
        lambda _, n: MOST_IN_ALL + n * (CONNECTION + REQUEST + ANSWER),
        {"slots": {"perEndpoint": 2_100}},
    ),
    Scenario(
        "read slowly",
        1_000,
        _read_slowly,
        lambda _, n: MOST_IN_ALL + n * (CONNECTION + REQUEST + ANSWER),
        {"slots": {"perEndpoint": 2_100}},
    ),
    Scenario(
        "half a body",
        1_000,
        _leave_bodies_unfinished,
        lambda config, n: 2 * min(config.queue.max_bytes, n * _UPLOADED) + n * (CONNECTION + REQUEST),
    ),
    Scenario("nothing", 1_000, _say_nothing, lambda _, n: n * CONNECTION),
    Scenario("half a head", 1_000, _say_half, lambda _, n: n * (CONNECTION + 2 * MAX_HEAD)),
    Scenario(
        "endless head",
        1_000,
        _go_on_without_end(request("crowd-0", b"")[:-2], b"a:b\r\n" * 1000),
        lambda _, n: n * (CONNECTION + 2 * MAX_HEAD),
    ),
    Scenario(
        "10 MB bodies",
        8,
        _send_large_bodies,
        lambda config, _: 3 * config.queue.per_tenant.max_bytes,
    ),
    Scenario(
        "endless chunks",
        100,
        _go_on_without_end(_IN_CHUNKS, b"%x\r\n%b\r\n" % (1 << 14, b" " * (1 << 14))),
        lambda config, n: 2 * config.queue.per_tenant.max_bytes + n * (CONNECTION + REQUEST + _READ),
    ),
    Scenario(
        "endless extension",
        100,
        _go_on_without_end(_IN_CHUNKS + b"1;a=", b"b" * (1 << 14)),
        lambda _, n: n * (CONNECTION + REQUEST + _READ),
    ),
    Scenario(
        "endless trailers",
        100,
        _go_on_without_end(_IN_CHUNKS + b"0\r\n", b"a: b\r\n" * 2000),
        lambda _, n: n * (CONNECTION + REQUEST + _READ),
    ),
    Scenario(
        "endless requests",
        100,
        _go_on_without_end(b"", request("crowd-0", _BODY, "x-answer-after: 0.1") * MOST_BEHIND),
        lambda _, n: n * (CONNECTION + MOST_BEHIND * REQUEST + _READ),
    ),
)

SCENARIOS: Final = {scenario.name: scenario for scenario in _ALL}
