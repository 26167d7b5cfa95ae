"""Programs that were started together and run until they are told to end, beside whoever started them.

What always holds: that one does not start is known to whoever waits for what it announces, and that one ends by itself
later to whoever is to be told of failures; nobody learns either twice.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from fairpool_lab.processes import Program, running

Failed = Callable[[Exception], None]
"""Told of what ended by itself or, where that is no LabError, of a fault of this program."""


class Started:
    """Programs that run until they are told to end."""

    def __init__(self, started: list[Program], failed: Failed) -> None:
        self._failed = failed
        self._over = asyncio.Event()
        self._said: asyncio.Future[list[re.Match[str]]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(started))

    async def said(self) -> list[re.Match[str]]:
        """What each announced.

        Raises:
            ProcessFailed: one did not start.
        """
        await asyncio.wait((self._task, self._said), return_when=asyncio.FIRST_COMPLETED)
        return self._said.result() if self._said.done() else self._task.result() or []

    @property
    def have_ended(self) -> bool:
        """Whether nothing of them runs any more."""
        return self._task.done()

    def tell(self) -> None:
        """Tell them to end, also while they start."""
        if not self._over.is_set() and not self._said.done():
            self._task.cancel()
        self._over.set()

    async def end(self) -> None:
        """Tell them to end, and wait for it."""
        self.tell()
        await asyncio.wait((self._task,))
        if not self._task.cancelled():
            self._task.exception()  # is nobody's, where the end came before it was known that they do not start

    def hurry(self) -> None:
        """Kill those that were told to end and have not."""
        self._task.cancel()

    async def _run(self, started: list[Program]) -> None:
        try:
            async with running(*started) as said:
                self._said.set_result(said)
                await self._over.wait()
        except Exception as problem:
            if not self._said.done():
                raise
            self._failed(problem)
