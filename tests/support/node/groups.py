"""The control groups of the node's containers: all below containerd's, which weighs, and is left as it was found.

Without a weight of its own all pods together would get as much of a busy machine's processors as one process does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_MOUNTED: Final = Path("/sys/fs/cgroup")
_WEIGHTS: Final = {"cpu.shares": 16 * 1024, "cpu.weight": 1600}
"""Sixteen times that of a process, in the two versions' terms."""

_GRACE: Final = 10.0


@contextlib.contextmanager
def weighing() -> Iterator[None]:
    """The group, which is there, has its weight for the block, and then the one that it had."""
    weights = [group / name for group in _groups() for name in _WEIGHTS]
    before = {path: path.read_text() for path in weights if path.exists()}
    try:
        for path in before:
            path.write_text(str(_WEIGHTS[path.name]))
        yield
    finally:
        for path, weight in before.items():
            path.write_text(weight)


def end() -> None:
    """Kill what runs in the group, as far as this process sees it, and remove what is empty then.

    At the start of a node it removes what one left that was killed.
    """
    deadline = time.monotonic() + _GRACE
    while (pids := set(_pids())) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    for group in _groups():
        for directory, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):  # a containerd of the machine's uses it
                Path(directory).rmdir()


def _groups() -> Iterator[Path]:
    """The group in each hierarchy that there is, of either version."""
    return (found for found in (*_MOUNTED.glob("*/k8s.io"), _MOUNTED / "k8s.io") if found.is_dir())


def _pids() -> Iterator[int]:
    for group in _groups():
        for procs in group.rglob("cgroup.procs"):
            with contextlib.suppress(OSError):
                yield from (pid for line in procs.read_text().split() if (pid := int(line)) > 0)
