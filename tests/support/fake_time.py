"""An event loop on fake time: what takes minutes passes at once, and happens at the very moment that it is due."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def on_fake_time(main: Coroutine[Any, Any, T]) -> T:
    """Run something that does no I/O, from moment 0 on; it fails if everybody waits for what never comes."""
    with asyncio.Runner(loop_factory=_FakeTime) as runner:
        return runner.run(main)


class _Skipping(selectors.DefaultSelector):
    """Passes the time for which it would wait."""

    def __init__(self, skip: Callable[[float], None]) -> None:
        super().__init__()
        self._skip = skip

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everybody waits for what never comes")
        self._skip(max(0.0, timeout))
        return super().select(0)


class _FakeTime(asyncio.SelectorEventLoop):
    """Its clock moves only while nobody has anything to do."""

    def __init__(self) -> None:
        self._moment = 0.0
        super().__init__(_Skipping(self._pass))

    def time(self) -> float:
        return self._moment

    def _pass(self, seconds: float) -> None:
        self._moment += seconds
