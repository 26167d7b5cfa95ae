"""Sees to it that processes end: those that another one started, found by walking the tree of processes."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import watchfiles

PATIENCE = 20.0
"""Seconds after which a test gives up waiting; far more than anything here takes."""


def descendants(pid: int) -> dict[int, str]:
    """The processes that a process started, and those that they started, each with its command line."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found: dict[int, str] = {}
    young = [pid]
    while young:
        young = [child for child, parent in parents.items() if parent in young]
        for child in young:
            found[child] = _command(child)
    return {child: command for child, command in found.items() if command}


@contextmanager
def held(pids: dict[int, str]) -> Iterator[Callable[[], list[str]]]:
    """Hold on to processes; the function waits for their end and returns the commands of those that stay.

    A held process that has ended is never mistaken for another one that got its number.
    """
    with ExitStack() as stack:
        ends = {}
        for pid, command in pids.items():
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            stack.callback(os.close, fd)
            ends[fd] = command

        def staying() -> list[str]:
            deadline = time.monotonic() + PATIENCE
            poll = select.poll()
            for fd in ends:
                poll.register(fd, select.POLLIN)
            left = dict(ends)
            while left and (rest := deadline - time.monotonic()) > 0:
                for fd, _ in poll.poll(rest * 1000):
                    poll.unregister(fd)
                    del left[fd]
            return list(left.values())

        yield staying


def until(condition: Callable[[], bool], directory: Path) -> None:
    """Wait for a condition that hangs on the files of a directory."""
    deadline = time.monotonic() + PATIENCE
    watched = watchfiles.watch(directory, debounce=50, step=20, rust_timeout=100, yield_on_timeout=True)
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        next(watched)


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""
