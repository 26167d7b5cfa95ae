"""One run of `fairpool up`: the files are read, decided about, served and followed until it is ended.

What always holds: an edit that cannot be used changes nothing of what is served; each problem is told once, with its
file and line; everything that was started ends with the session.
"""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fairpool_lab.errors import NothingToServe
from fairpool_lab.up.endpoints import Given
from fairpool_lab.up.following import Followed
from fairpool_lab.up.local import Local, decide
from fairpool_lab.up.pools import Pools
from fairpool_lab.up.programs import Ports
from fairpool_lab.up.resources import Resources
from fairpool_lab.up.state import State, state
from fairpool_lab.up.summary import news, pool_lines, reasons, tenant_lines, trial_lines
from fairpool_operator.errors import CannotStart
from fairpool_operator.manifests import STDIN, Contents, Problem, contents_of, read_contents
from fairpool_operator.view import PoolKey


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says.

    Attributes:
        paths: where the resources are.
        given: where endpoints are.
        first: the ports of the first pool.
        namespace: that of resources that name none.
        state: where files go; None: where they are gone in the end.
        drain_seconds: how long what waits and runs may take in the end.
    """

    paths: tuple[Path, ...]
    given: Given
    first: Ports
    namespace: str
    state: Path | None
    drain_seconds: int

    @property
    def follows(self) -> bool:
        """Whether edits are followed. The standard input, a pipe and the like can be read once only."""
        return not any(path == STDIN or _is_read_once(path) for path in self.paths)


class Session:
    """One run. `say` is given each line that is to be read."""

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self._options = options
        self._follows = options.follows
        self._say = say
        self._given = options.given
        self._resources = Resources(options.namespace)
        self._pools: Pools | None = None
        self._decided: dict[PoolKey, Local] = {}
        self._lines: dict[PoolKey, list[str]] = {}
        self._reasons: dict[PoolKey, list[str]] = {}
        self._problems: tuple[Problem, ...] = ()

    async def run(self) -> None:
        """Serve until cancelled.

        Raises:
            NothingToServe: no pool of the files can be served at the start.
            OptionInvalid: what was said of endpoints does not fit the pools.
            ProcessFailed: what was started ended by itself.
            LabError: what no pool could be served for at the start, such as a port that is not to be had.
        """
        with state(self._options.state, self._say) as files:
            drain_seconds = self._options.drain_seconds
            self._pools = pools = Pools(files, self._options.first, drain_seconds, self._say)
            try:
                await pools.unless_one_fails(self._serve(pools, files))
            finally:
                if pools.run_something:
                    self._say(f"Finishing what waits and runs, for {drain_seconds} s at most; once more ends it.")
                await pools.end()

    def hurry(self) -> None:
        """Wait no longer for what runs."""
        if self._pools is not None:
            self._pools.hurry()

    async def _serve(self, pools: Pools, files: State) -> None:
        try:
            contents = await asyncio.to_thread(contents_of, self._options.paths)
            await self._begin(contents, pools, files)
        except CannotStart as problem:
            raise NothingToServe(str(problem)) from None
        followed = Followed(self._options.paths, contents) if self._follows else None
        edit: asyncio.Task[Contents] | None = None
        try:
            while True:
                if edit is None and followed is not None:
                    edit = asyncio.create_task(followed.changed())
                await self._until_something_changes(edit, pools)
                if edit is not None and edit.done():
                    edited, edit = edit, None
                    await self._take_edit(edited)
                await self._go_on(pools, files)
        finally:
            if edit is not None:
                edit.cancel()

    async def _until_something_changes(self, edit: asyncio.Task[Contents] | None, pools: Pools) -> None:
        """Wait for an edit, for the moment at which a key ends, or for a pool that was late."""
        moments = [local.changes_at for local in self._decided.values() if local.changes_at is not None]
        seconds = (min(moments) - datetime.now(UTC)).total_seconds() if moments else None
        came = asyncio.create_task(pools.one_came())
        waiting = [came] if edit is None else [came, edit]
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            came.cancel()

    async def _begin(self, contents: Contents, pools: Pools, files: State) -> None:
        await self._take(contents)
        if others := self._resources.others:
            self._say(f"{others} resource{'s' * (others > 1)} of other kinds, which are not looked at")
        there = [key for key, local in self._decide().items() if local.place is not None]
        if there:
            self._given = self._given.settled(there)
        await self._meet(self._decide(), pools, files, or_late=False)
        if pools.failure is not None and not pools.are_served:
            raise pools.failure
        for key, local in self._decided.items():
            self._say_all(self._lines[key])
            if (served := pools.served(key)) is not None:
                self._say_all(["", *trial_lines(local, served, files.of(key).directory)])
            self._say("")
        if not there:
            raise NothingToServe(f"there is no FairPool that can be used in {', '.join(map(str, self._options.paths))}")
        if not pools.are_served:
            raise NothingToServe("no pool can be served as it is: correct what is said above")
        follows = "Edits of the files are followed. " if self._follows else ""
        self._say(f"{follows}Ctrl-C ends everything, after what waits and runs.")

    async def _go_on(self, pools: Pools, files: State) -> None:
        before, decided = self._lines, self._decide()
        for key, local in sorted(self._decided.items()):
            is_gone = local.place is not None and (key not in decided or decided[key].place is None)
            if is_gone and (pools.served(key) is not None or pools.late(key) is not None):
                self._say(f"Pool {key} is gone; what it runs is being finished.")
        await self._meet(decided, pools, files, or_late=True)
        for key, lines in self._lines.items():
            self._say_all(news(before.get(key, ()), lines, self._reasons[key]))

    async def _take_edit(self, edit: asyncio.Task[Contents]) -> None:
        try:
            await self._take(edit.result())
        except CannotStart as problem:
            self._say(f"{problem}: everything stays as it is")

    async def _take(self, contents: Contents) -> None:
        """Have what is in the files in force, and tell of problems that were not there before."""
        manifests = await asyncio.to_thread(read_contents, contents)
        before, self._problems = self._problems, self._resources.take(manifests)
        self._say_all(f"{each.file}:{each.line}: {each.message}" for each in self._problems if each not in before)

    def _decide(self) -> dict[PoolKey, Local]:
        """What is to be run of each pool that is there, or that a tenant names."""
        store, now = self._resources.store(), datetime.now(UTC)
        return {key: decide(key, self._resources, store, self._given.of(key), now) for key in sorted(store.keys())}

    async def _meet(self, decided: dict[PoolKey, Local], pools: Pools, files: State, *, or_late: bool) -> None:
        """Have pools as was decided, or on their way, and know what is to be said of each."""
        self._decided = decided
        there = {key: local for key, local in decided.items() if local.place is not None}
        await pools.meet(there, or_late=or_late)
        self._lines, self._reasons = {}, {}
        for key, local in decided.items():
            served, late = pools.served(key), pools.late(key)
            self._reasons[key] = list(reasons(local, served, late))
            self._lines[key] = [*pool_lines(local, served, files.of(key).directory, late), *tenant_lines(local)]

    def _say_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._say(line)


def _is_read_once(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
