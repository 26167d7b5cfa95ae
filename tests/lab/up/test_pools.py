"""Pools beside each other: each has ports of its own, as the command line says, and a fault in one is everybody's."""

from __future__ import annotations

import asyncio
import re

import pytest
from support.config import pool_config
from support.up import START

from fairpool_lab.up import programs
from fairpool_lab.up.endpoints import Endpoints
from fairpool_lab.up.local import Local
from fairpool_lab.up.pools import Pools
from fairpool_lab.up.programs import LOOPBACK, Ports
from fairpool_lab.up.state import state
from fairpool_operator.view import PoolKey

NOWHERE = Ports("::nowhere", 8080, 9080)
"""Where nothing can listen, so that each pool says which port it would have had, and nothing is started."""


def wanted(*names: str) -> dict[PoolKey, Local]:
    keys = [PoolKey("default", name) for name in names]
    return {key: Local(key, place="here", config=pool_config(), endpoints=Endpoints(simulated=1)) for key in keys}


async def test_a_port_that_came_free_is_the_next_new_pools_and_all_others_keep_theirs(tmp_path):
    with state(tmp_path, print) as files:
        pools = Pools(files, NOWHERE, 0, lambda line: None)
        await pools.meet(wanted("a", "b", "c"), or_late=False)
        await pools.meet(wanted("b", "c"), or_late=False)
        while pools.late(PoolKey("default", "a")) is not None:
            await pools.one_came()
        there = wanted("b", "c", "d", "e")
        await pools.meet(there, or_late=False)
        said = {key.name: re.search(r"on ::nowhere port (\d+): ", str(pools.late(key))) for key in there}
        await pools.end()
    assert {name: found and found[1] for name, found in said.items()} == {
        "b": "8081",
        "c": "8082",
        "d": "8080",
        "e": "8083",
    }


async def test_a_fault_of_this_program_ends_everything_though_nobody_waits_for_the_pool(tmp_path, monkeypatch):
    def faulty(*_, **__):
        raise ZeroDivisionError

    async def serve() -> None:
        await pools.meet(wanted("a"), or_late=True)
        await asyncio.Event().wait()

    monkeypatch.setattr(programs, "gateway", faulty)
    with state(tmp_path, print) as files:
        pools = Pools(files, Ports(LOOPBACK, 0, 0), 0, print)
        with pytest.raises(ZeroDivisionError):
            async with asyncio.timeout(START):
                await pools.unless_one_fails(serve())
        await pools.end()
