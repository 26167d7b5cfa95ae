"""The files of one session: configurations, what a cluster would mount, keys to try with, and logs.

What always holds: nobody but the user can read them; a file is replaced as a whole; what came of a Secret is gone once
nobody needs it, at the end, or where that was a kill, at the next beginning in that place, and so is all of it if no
place was given; what cannot be removed is told of. Nothing is written or removed but in directories that were made
here, which a marker tells from all others.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote

from fairpool_lab.errors import OutputInvalid
from fairpool_operator.view import PoolKey

CONFIG: Final = "pool.json"
MARKER: Final = ".fairpool-up"
_MARKS: Final = (
    "fairpool up made this directory, and removes engine, engine-ca, keys and tls when it begins and ends.\n"
)
_MARKS_ONE_SESSION: Final = "fairpool up made this directory for one session, and removes it.\n"
_FOR_ONE_SESSION: Final = "fairpool-"
_FROM_SECRETS: Final = ("engine", "engine-ca", "keys", "tls")


@contextlib.contextmanager
def state(given: Path | None, say: Callable[[str], None]) -> Iterator[State]:
    """A place for the files of a session: the directory that was given, or one for this session only.

    Args:
        given: the directory, if any was.
        say: told of what came of Secrets and cannot be removed.

    Raises:
        OutputInvalid: nothing can be written there, or another session writes there.
    """
    try:
        if given is not None:
            given.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory = given or Path(tempfile.mkdtemp(prefix=_FOR_ONE_SESSION))
    except OSError as error:
        raise OutputInvalid(f"{given} is no directory that can be written to: {error.strerror}") from error
    kept = State(directory.resolve(), say)
    try:
        with _alone(directory):
            if given is None:
                _mark_for_one_session(directory)
                _remove_what_killed_sessions_left(directory.parent, say)
            kept.forget_secrets()
            try:
                yield kept
            finally:
                kept.forget_secrets()
    finally:
        if given is None:
            shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Have a directory for this session alone; the kernel gives it back however this ends."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise OutputInvalid(f"{directory} cannot be looked into: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            another = f"{directory} is another fairpool up's, which runs: give another directory with --state"
            raise OutputInvalid(another) from None
        except OSError as error:
            shared = f"{directory} cannot be had alone: {error.strerror}: give another directory with --state"
            raise OutputInvalid(shared) from error
        yield
    finally:
        os.close(descriptor)


def _mark_for_one_session(directory: Path) -> None:
    try:
        (directory / MARKER).write_text(_MARKS_ONE_SESSION, encoding="utf-8")
    except OSError as error:
        raise OutputInvalid(f"{directory} cannot be written to: {error.strerror}") from error


def _remove_what_killed_sessions_left(where: Path, say: Callable[[str], None]) -> None:
    """Remove directories for one session that nobody has any more; one is marked only while it is had."""
    for directory in where.glob(f"{_FOR_ONE_SESSION}*"):
        with contextlib.suppress(OutputInvalid):  # which is another's that runs
            if _is_own(directory):
                with _alone(directory):
                    State(directory, say).forget_secrets()
                    shutil.rmtree(directory, ignore_errors=True)


class State:
    """A directory, and in it one for each pool. `say` is told of what cannot be removed."""

    def __init__(self, directory: Path, say: Callable[[str], None]) -> None:
        self.directory = directory
        self._say = say
        self._pools: dict[PoolKey, PoolState] = {}

    def of(self, key: PoolKey) -> PoolState:
        """The files of one pool."""
        return self._pools.setdefault(key, PoolState(self.directory / f"{key.namespace}.{key.name}"))

    def forget_secrets(self) -> None:
        """Remove what came of Secrets, of pools of earlier sessions too."""
        found = {marker.parent for marker in self.directory.glob(f"*/{MARKER}")}
        for directory in sorted(found.union(pool.directory for pool in self._pools.values())):
            self._forget_secrets(PoolState(directory))

    def forget_secrets_of(self, key: PoolKey) -> None:
        """Remove what came of Secrets for a pool that has ended."""
        self._forget_secrets(self.of(key))

    def _forget_secrets(self, pool: PoolState) -> None:
        try:
            pool.forget_secrets()
        except OutputInvalid as problem:
            self._say(str(problem))


class PoolState:
    """The files of one pool."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def config(self) -> Path:
        """Where the gateway's configuration is."""
        return self.directory / CONFIG

    def path(self, name: str) -> Path:
        """Where a file of this name is, such as a log, its directory made.

        Raises:
            OutputInvalid: that cannot be made, or is there and was not made here.
        """
        path = self.directory / name
        try:
            if not os.path.lexists(self.directory):
                self._make()
            if is_usable := _is_own(self.directory) and not path.parent.is_symlink():
                path.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise OutputInvalid(f"{path.parent} cannot be made: {error.strerror}") from error
        if not is_usable:
            raise OutputInvalid(
                f"{path.parent} is there already, and no fairpool up of yours made it: "
                "move it away, or give another directory with --state"
            )
        return path

    def write(self, files: Mapping[str, bytes]) -> None:
        """Have these files, each new or as it was.

        Raises:
            OutputInvalid: one cannot be written.
        """
        for name, content in files.items():
            path = self.path(name)
            try:
                if not path.exists() or path.read_bytes() != content:
                    _replace(path, content)
            except OSError as error:
                raise OutputInvalid(f"{path} cannot be written: {error.strerror}") from error

    def forget_secrets(self, but: Collection[str] = ()) -> None:
        """Remove what came of Secrets, if this was made here, but for the files of these names.

        Raises:
            OutputInvalid: something cannot be removed; all else has been.
        """
        try:
            if not _is_own(self.directory):
                return
        except OSError as error:
            raise OutputInvalid(f"{self.directory} cannot be looked into: {error.strerror}") from error
        kept = {self.directory / name for name in but}
        problems = []
        for directory in (self.directory / name for name in _FROM_SECRETS):
            is_needed = any(path.parent == directory for path in kept) and not directory.is_symlink()
            for path in set(directory.glob("*")) - kept if is_needed else (directory,):
                try:
                    _remove(path)
                except OSError as error:
                    problems.append(f"{path} cannot be removed, and came of Secrets: {error.strerror or error}")
        if problems:
            raise OutputInvalid("; ".join(problems))

    def _make(self) -> None:
        """Make it, marked from the moment at which it is there; and what it is in, should that have been removed."""
        self.directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=self.directory.parent, prefix=f".{self.directory.name}."))
        try:
            (made / MARKER).write_text(_MARKS, encoding="utf-8")
            made.rename(self.directory)
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _remove(path: Path) -> None:
    """Remove a file or a directory, of which as much as can be, and nothing to which links lead."""
    with contextlib.suppress(FileNotFoundError):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)
            shutil.rmtree(path)  # says what could not be


def _is_own(directory: Path) -> bool:
    """Whether it was made here, by this session of the user's or an earlier one; a link was not."""
    try:
        found = directory.lstat()
    except FileNotFoundError:
        return False
    is_users = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return is_users and (directory / MARKER).is_file()


def key(tenant: str) -> str:
    """The name of the file of a tenant's key, which no other tenant's file has; its beginning can be read."""
    digest = sha256(tenant.encode()).hexdigest()
    return f"keys/{quote(tenant, safe='@')[:32]}-{digest[:16]}"


def headers(tenant: str) -> str:
    """The name of the file of the headers by which a tenant is known, as curl takes them."""
    return f"{key(tenant)}.headers"


def _replace(path: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
