"""Which files resources are in, and what is in these: found again each time, while anybody may be editing them.

What always holds: what cannot be looked into is told, and never taken for empty; a file or a directory that goes away
meanwhile is no fault, but a reason to look again, for what was in it may be somewhere else by now; and of what nobody
named only files are waited for, so that a pipe in a directory holds up nothing, whenever it got there.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from fairpool_operator.errors import CannotStart
from fairpool_operator.manifests.documents import Document, Manifests, Problem
from fairpool_operator.manifests.texts import read_text

STDIN: Final = Path("-")

Contents = Mapping[Path, bytes | Problem]
"""What is in each file or, of files and directories that cannot be read, why not; in the order in which it is read."""

_SUFFIXES: Final = frozenset({".yaml", ".yml"})
_NONBLOCK: Final = getattr(os, "O_NONBLOCK", 0)
_LOOKS: Final = 10
"""How often at most: where something goes away in each of them, it is told as what cannot be read."""

_Gone = FileNotFoundError | NotADirectoryError


def read(paths: Sequence[Path]) -> Manifests:
    """Every resource in files, and in the `.yaml` and `.yml` files below directories; `-` is the standard input.

    Raises:
        CannotStart: there is no such file or directory, or it is one that cannot be looked into.
    """
    return read_contents(contents_of(paths))


def read_contents(contents: Contents) -> Manifests:
    """The same of what was in files at some time."""
    found = [each for file, content in contents.items() for each in _read_content(file, content)]
    return Manifests(
        tuple(contents),
        tuple(each for each in found if isinstance(each, Document)),
        tuple(each for each in found if isinstance(each, Problem)),
    )


def contents_of(paths: Sequence[Path]) -> Contents:
    """What is in the files that `read` looks into; raises what it raises."""
    typed = sys.stdin.buffer.read() if STDIN in paths else b""
    for _ in range(_LOOKS):
        look = _Look(paths, typed)
        if not look.something_went:
            break
    return look.contents


class _Look:
    """One look at everything; `something_went` tells whether what was there at its beginning was not at its end."""

    def __init__(self, paths: Sequence[Path], typed: bytes) -> None:
        self.something_went = False
        self._unread: dict[Path, Problem] = {}
        self._found: set[Path] = set()
        files = dict.fromkeys(file for path in paths for file in self._files(path))
        contents = {file: typed if file == STDIN else self._content(file) for file in files}
        self.contents: Contents = {file: content for file, content in contents.items() if content is not None}

    def _files(self, path: Path) -> Iterator[Path]:
        if path == STDIN:
            yield path
        elif _asked(path, path.is_dir):
            found = sorted(self._below(path))
            self._found.update(found)
            yield from found
        elif _asked(path, path.exists):
            yield path
        else:
            raise CannotStart(f"there is no file or directory {path}")

    def _below(self, root: Path) -> Iterator[Path]:
        """The files below a directory, and the directories that cannot be looked into."""
        errors: list[OSError] = []
        for directory, below, names in os.walk(root, onerror=errors.append):
            below[:] = [name for name in below if not name.startswith(".")]
            files = (Path(directory, name) for name in names if not name.startswith("."))
            yield from (file for file in files if file.suffix in _SUFFIXES and _is_read(file))
        for error in errors:
            path = Path(error.filename or root)
            if path == root:
                raise _not_looked_into(root, error)
            self._unread[path] = self._problem(path, error)
            yield path

    def _content(self, file: Path) -> bytes | Problem | None:
        """What is in a file; None if it is none any more and nobody named it."""
        if file in self._unread:
            return self._unread[file]
        try:
            content = _at_once(file) if file in self._found else file.read_bytes()
        except OSError as error:
            return self._problem(file, error)
        self.something_went |= content is None
        return content

    def _problem(self, path: Path, error: OSError) -> Problem:
        if isinstance(error, _Gone) and path.is_symlink():
            return Problem(path, 1, "is a link that leads nowhere: mend or remove it")
        self.something_went |= isinstance(error, _Gone)
        return Problem(path, 1, f"cannot be read: {error.strerror}")


def _is_read(file: Path) -> bool:
    """Whether it is a file, or nobody can say what it is; other things, such as a pipe, are passed over."""
    try:
        return file.is_file() or not file.exists()
    except OSError:
        return True


def _at_once(file: Path) -> bytes | None:
    """What is in a file; None of anything else, such as a pipe, whose opening could take for ever."""
    with open(file, "rb", opener=lambda path, flags: os.open(path, flags | _NONBLOCK)) as opened:
        return opened.read() if stat.S_ISREG(os.fstat(opened.fileno()).st_mode) else None


def _asked(path: Path, question: Callable[[], bool]) -> bool:
    try:
        return question()
    except OSError as error:
        raise _not_looked_into(path, error) from None


def _not_looked_into(path: Path, error: OSError) -> CannotStart:
    return CannotStart(f"{path} cannot be looked into: {error.strerror}")


def _read_content(file: Path, content: bytes | Problem) -> Iterator[Document | Problem]:
    if isinstance(content, Problem):
        yield content
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        yield Problem(file, line, "is not UTF-8: save the file in that encoding")
        return
    yield from read_text(text, file)
