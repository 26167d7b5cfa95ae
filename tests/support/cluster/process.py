"""A server of the control plane as a process: it can be killed, frozen and started again, and never outlives the tests.

The kernel kills it at the death of the thread that started it, whatever ends that one, so start it in the main thread.
All that it prints goes to a file, whose end is quoted when it fails.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from fairpool_lab import tied

PATIENCE: Final = 60.0
"""Seconds after which a test gives up on a server; more than ten times what any takes on a busy machine."""

_GRACE: Final = 10.0
_LOOK_AGAIN: Final = 0.05


class ServerFailed(Exception):
    """It ended by itself, or did not come up; quotes what it printed last."""


class Server:
    """One program with its arguments, run at most once at a time."""

    def __init__(self, name: str, command: tuple[str, ...], directory: Path) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process, which runs."""
        assert self._process is not None, f"{self.name} does not run"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Run it; its output is added to the log's."""
        assert not self.running, f"{self.name} runs already"
        tie = (sys.executable, "-I", "-S", tied.__file__, str(os.getpid()), signal.SIGKILL.name)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*tie, *self._command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def until(self, ready: Callable[[], bool]) -> None:
        """Wait until it is ready, by asking again and again.

        Raises:
            ServerFailed: it ended instead, or took too long.
        """
        deadline = time.monotonic() + PATIENCE
        with _held(self.pid) as end:
            while not ready():
                if end.poll(_LOOK_AGAIN * 1000):
                    raise ServerFailed(f"{self.name} ended{self._quoted()}")
                if time.monotonic() > deadline:
                    raise ServerFailed(f"{self.name} was not ready within {PATIENCE:g} s{self._quoted()}")

    def kill(self) -> None:
        """End it as a crash does; also when it is frozen."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end, and kill it if it does not."""
        self._end(signal.SIGTERM)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Have it do nothing, its connections open, until the block ends."""
        with frozen(self.pid):
            yield

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _quoted(self) -> str:
        last = self.log.read_text(errors="replace").splitlines()[-20:]
        return "; it printed last:\n" + "\n".join(last) if last else ", and printed nothing"


@contextlib.contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Stop any process with SIGSTOP, and let it go on when the block ends."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def _held(pid: int) -> Iterator[select.poll]:
    """Yields what tells, and can be waited for, that the process ended."""
    fd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        yield poll
    finally:
        os.close(fd)
