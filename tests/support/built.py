"""Programs that tests need and that take minutes to build: once per machine, outside of any clone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path


class BuildFailed(Exception):
    """A program could not be built; says what its tools said, or what to do."""


def cache_directory() -> Path:
    """Where the project keeps what it built: under XDG_CACHE_HOME, or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairpool"


def say(words: str) -> None:
    """Tell whoever waits for the build, at once."""
    sys.stderr.write(words + "\n")
    sys.stderr.flush()


@contextlib.contextmanager
def alone(path: Path, what: str) -> Iterator[None]:
    """Hold the lock at a path while building; the kernel lets it go should this process die."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"Somebody else builds {what} already: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
