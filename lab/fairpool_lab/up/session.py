"""One run of `fairpool up`: every pool of the files is served, as the files say at any moment, until it is ended.

What always holds: an edit that cannot be used changes nothing of what is served, and is told with its file and line;
everything that was started ends with the session, gateways first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from fairpool_lab.errors import LabError, NothingToServe
from fairpool_lab.up.endpoints import Given
from fairpool_lab.up.following import Followed
from fairpool_lab.up.local import Local, decide
from fairpool_lab.up.pool import Pool
from fairpool_lab.up.programs import Ports
from fairpool_lab.up.resources import Resources
from fairpool_lab.up.state import State, state
from fairpool_lab.up.summary import news, pool_lines, tenant_lines, trial_lines
from fairpool_operator.errors import CannotStart
from fairpool_operator.manifests import STDIN, Manifests, Problem, read
from fairpool_operator.view import PoolKey


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says.

    Attributes:
        paths: where the resources are.
        given: where endpoints are.
        namespace: that of resources that name none.
        host: where tenants connect.
        port: the first pool's; each further pool has the next. 0: the kernel chooses.
        admin_port: the same for admin ports.
        state: where files go; None: where they are gone in the end.
        drain_seconds: how long what waits and runs may take in the end.
    """

    paths: tuple[Path, ...]
    given: Given
    namespace: str = "default"
    host: str = "127.0.0.1"
    port: int = 8080
    admin_port: int = 9080
    state: Path | None = None
    drain_seconds: int = 30


class Session:
    """One run. `say` is given each line that is to be read."""

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self._options = options
        self._say = say
        self._given = options.given
        self._resources = Resources(options.namespace)
        self._pools: dict[PoolKey, Pool] = {}
        self._numbers: dict[PoolKey, int] = {}
        self._said: dict[PoolKey, list[str]] = {}
        self._told: tuple[Problem, ...] = ()
        self._leaving: dict[PoolKey, tuple[Pool, asyncio.Task[None]]] = {}
        self._failed = asyncio.Event()
        self._failure: LabError | None = None

    async def run(self) -> None:
        """Serve until cancelled.

        Raises:
            NothingToServe: no pool of the files can be served at the start.
            OptionInvalid: what was said of endpoints does not fit the pools.
            ProcessFailed: what was started did not start, or ended by itself.
            LabError: a port or a file is not to be had.
        """
        with state(self._options.state) as files:
            try:
                followed = Followed(self._options.paths)
                await self._or_failure(self._begin(files))
                await self._or_failure(self._go_on(files, followed))
            finally:
                await self._end()

    def hurry(self) -> None:
        """Wait no longer for what runs."""
        for pool in (*self._pools.values(), *(pool for pool, _ in self._leaving.values())):
            pool.hurry()

    async def _begin(self, files: State) -> None:
        try:
            manifests = await asyncio.to_thread(read, self._options.paths)
        except CannotStart as problem:
            raise NothingToServe(str(problem)) from None
        self._tell(self._resources.take(manifests))
        decided = self._decide()
        if not decided:
            named = ", ".join(map(str, self._options.paths))
            raise NothingToServe(f"there is no FairPool that can be used in {named}")
        self._given = self._given.settled(decided)
        decided = self._decide()
        await self._meet(decided, files)
        for key, local in decided.items():
            for line in self._said[key]:
                self._say(line)
            served = self._pools[key].served
            if served is not None:
                self._say("")
                for line in trial_lines(local, served, files.of(key).directory):
                    self._say(line)
            self._say("")
        if not any(pool.served for pool in self._pools.values()):
            raise NothingToServe("no pool can be served as it is: correct what is said above")
        following = "Edits of the files are followed. " if STDIN not in self._options.paths else ""
        self._say(f"{following}Ctrl-C ends everything, after what waits and runs.")

    async def _go_on(self, files: State, followed: Followed) -> None:
        """Follow edits. The standard input is read once only."""
        if STDIN in self._options.paths:
            await asyncio.Event().wait()
        while True:
            await followed.changed()
            try:
                manifests = await asyncio.to_thread(read, self._options.paths)
            except CannotStart as problem:
                self._say(f"{problem}: everything stays as it is")
                continue
            await self._edited(manifests, files)

    async def _edited(self, manifests: Manifests, files: State) -> None:
        self._tell(self._resources.take(manifests))
        before = dict(self._said)
        decided = self._decide()
        for key in self._pools.keys() - decided.keys():
            self._say(f"Pool {key} is gone; what it runs is finished.")
            self._let_go(key)
        await self._meet(decided, files)
        for key in decided:
            for line in news(before.get(key, ()), self._said[key]):
                self._say(line)

    def _decide(self) -> dict[PoolKey, Local]:
        """What is to be run of each pool that is there; tenants of others are told of."""
        store, now = self._resources.store(), datetime.now(UTC)
        decided = [decide(key, self._resources, store, self._given.of(key), now) for key in sorted(store.keys())]
        for local in decided:
            lines = [line for line in tenant_lines(local) if local.place is None]
            for line in news(self._said.get(local.key, ()), lines):
                self._say(line)
            if local.place is None:
                self._said[local.key] = lines
        return {local.key: local for local in decided if local.place is not None}

    async def _meet(self, decided: dict[PoolKey, Local], files: State) -> None:
        """Have pools as was decided, and know what is to be said of them."""
        for key, local in decided.items():
            if key not in self._pools:
                await self._gone(key)
                self._pools[key] = Pool(
                    files.of(key), self._ports(key), self._options.drain_seconds, self._say, self._fail
                )
            self._pools[key].want(local)
        for key, local in decided.items():
            await self._pools[key].settled()
            lines = [*pool_lines(local, self._pools[key].served, files.of(key).directory), *tenant_lines(local)]
            self._said[key] = lines

    def _ports(self, key: PoolKey) -> Ports:
        """The least that no other pool has, so that a pool's are the same in every session."""
        taken = set(self._numbers.values())
        self._numbers[key] = number = next(number for number in count() if number not in taken)
        of = [first + number if first else 0 for first in (self._options.port, self._options.admin_port)]
        return Ports(self._options.host, *of)

    def _let_go(self, key: PoolKey) -> None:
        pool = self._pools.pop(key)
        self._said.pop(key, None)
        self._leaving[key] = pool, asyncio.create_task(self._leave(key, pool))

    async def _leave(self, key: PoolKey, pool: Pool) -> None:
        await pool.end()
        del self._numbers[key], self._leaving[key]

    async def _gone(self, key: PoolKey) -> None:
        """Wait for the end of what served a pool of this name before."""
        if key in self._leaving:
            await self._leaving[key][1]

    def _tell(self, problems: Iterable[Problem]) -> None:
        """Tell of problems that were not there before."""
        problems = tuple(problems)
        for each in problems:
            if each not in self._told:
                self._say(f"{each.file}:{each.line}: {each.message}")
        self._told = problems

    def _fail(self, failure: LabError) -> None:
        self._failure = self._failure or failure
        self._failed.set()

    async def _or_failure(self, work: Coroutine[Any, Any, None]) -> None:
        """Work, unless something fails meanwhile."""
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

    async def _end(self) -> None:
        if any(pool.served for pool in self._pools.values()):
            self._say(f"Finishing what waits and runs, for {self._options.drain_seconds} s at most; once more ends it.")
        await asyncio.gather(
            *(pool.end() for pool in self._pools.values()), *(task for _, task in self._leaving.values())
        )
