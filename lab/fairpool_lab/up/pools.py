"""Every pool that is served here: which there are, on which ports, and what becomes of all if one ends by itself.

What always holds: a pool keeps its ports for as long as it is there; one that leaves, ends to come back, or starts does
so while the others serve on and are edited; and what ends by itself ends everything, so that nobody takes half for the
whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from itertools import count
from typing import Any

from fairpool_lab.errors import LabError
from fairpool_lab.up.local import Local
from fairpool_lab.up.pool import FINISHES, Pool, Served
from fairpool_lab.up.programs import Ports
from fairpool_lab.up.state import State
from fairpool_operator.view import PoolKey


class Pools:
    """The pools of one session.

    Args:
        files: where their files go.
        first: the ports of the first pool; each further pool has the next ones.
        drain_seconds: how long what waits and runs may take at the end of one.
        say: told what a gateway warns of.
    """

    def __init__(self, files: State, first: Ports, drain_seconds: int, say: Callable[[str], None]) -> None:
        self._files = files
        self._first = first
        self._drain_seconds = drain_seconds
        self._say = say
        self._pools: dict[PoolKey, Pool] = {}
        self._numbers: dict[PoolKey, int] = {}
        self._leaving: dict[PoolKey, tuple[Pool, asyncio.Task[None]]] = {}
        self._came = asyncio.Event()
        self._failed = asyncio.Event()
        self._failure: Exception | None = None

    async def meet(self, wanted: Mapping[PoolKey, Local], *, or_late: bool) -> None:
        """Have these pools and no others; returns once they are as they are wanted or, if so asked, are late."""
        for key in self._pools.keys() - wanted.keys():
            pool = self._pools.pop(key)
            self._leaving[key] = pool, asyncio.create_task(self._leave(key, pool))
        for key in (each for each in wanted if each not in self._pools and each not in self._leaving):
            files, ports = self._files.of(key), self._ports(key)
            self._pools[key] = Pool(files, ports, self._drain_seconds, self._say, self._fail, self._came.set)
        there = [key for key in wanted if key in self._pools]
        for key in there:
            self._pools[key].want(wanted[key])
        for key in there:
            await self._pools[key].settled(or_late=or_late)

    async def one_came(self) -> None:
        """Wait until a pool that was late is as it is wanted, has failed, or is gone and can be had again."""
        await self._came.wait()
        self._came.clear()

    def late(self, key: PoolKey) -> str | None:
        """Why a pool is not as it is wanted; None where it is so."""
        if key in self._leaving:
            return FINISHES
        return self._pools[key].late if key in self._pools else None

    def served(self, key: PoolKey) -> Served | None:
        """Where a pool is served, if it is."""
        return self._pools[key].served if key in self._pools else None

    @property
    def are_served(self) -> bool:
        """Whether any is."""
        return any(pool.served for pool in self._pools.values())

    @property
    def failure(self) -> LabError | None:
        """What failed of one that cannot be as it is wanted."""
        return next((pool.failure for pool in self._pools.values() if pool.failure), None)

    @property
    def run_something(self) -> bool:
        """Whether there is anything to finish: a pool is served, or was, or is about to be."""
        return self.are_served or any(map(self.late, (*self._pools, *self._leaving)))

    async def unless_one_fails(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something to its end.

        Raises:
            LabError: what serves a pool ended by itself; the work was given up.
        """
        task, failed = asyncio.create_task(work), asyncio.create_task(self._failed.wait())
        try:
            await asyncio.wait((task, failed), return_when=asyncio.FIRST_COMPLETED)
            if self._failure is not None:
                raise self._failure
            task.result()
        finally:
            task.cancel()
            failed.cancel()
            await asyncio.wait((task, failed))

    async def end(self) -> None:
        """End all of them, after what waits and runs."""
        leaving = (task for _, task in self._leaving.values())
        await asyncio.gather(*(pool.end() for pool in self._pools.values()), *leaving)

    def hurry(self) -> None:
        """Wait no longer for what runs in those that end."""
        for pool in (*self._pools.values(), *(pool for pool, _ in self._leaving.values())):
            pool.hurry()

    def _ports(self, key: PoolKey) -> Ports:
        """The first that no other pool has, so that a pool's are the same in every session."""
        taken = set(self._numbers.values())
        self._numbers[key] = number = next(number for number in count() if number not in taken)
        tenants, admin = (first + number if first else 0 for first in (self._first.tenants, self._first.admin))
        return Ports(self._first.host, tenants, admin)

    async def _leave(self, key: PoolKey, pool: Pool) -> None:
        await pool.end()
        self._files.forget_secrets_of(key)
        del self._numbers[key], self._leaving[key]
        self._say(f"Pool {key} has ended.")
        self._came.set()

    def _fail(self, failure: Exception) -> None:
        self._failure = self._failure or failure
        self._failed.set()
