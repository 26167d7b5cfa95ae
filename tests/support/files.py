"""The ways in which files of a directory come to hold something else."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

Put = Callable[[Path, Mapping[str, bytes]], None]
"""Has files of a directory, which is made where it is missing, hold these contents."""


def in_place(directory: Path, contents: Mapping[str, bytes]) -> None:
    """As simple programs do."""
    directory.mkdir(exist_ok=True)
    for name, content in contents.items():
        (directory / name).write_bytes(content)


def by_renaming(directory: Path, contents: Mapping[str, bytes]) -> None:
    """As careful programs do: new files, each renamed over the old one."""
    directory.mkdir(exist_ok=True)
    for name, content in contents.items():
        (directory / "beside").write_bytes(content)
        (directory / "beside").rename(directory / name)


def by_swapping(directory: Path, contents: Mapping[str, bytes]) -> None:
    """As a kubelet does: a new directory, and the symlink `..data` replaced by one that leads to it."""
    directory.mkdir(exist_ok=True)
    data = directory / "..data"
    before = data.readlink() if data.is_symlink() else None
    version = Path(tempfile.mkdtemp(prefix="..", dir=directory))
    for name, content in contents.items():
        (version / name).write_bytes(content)
    (directory / "..data_tmp").symlink_to(version.name)
    (directory / "..data_tmp").rename(data)
    for name in contents:
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")
    if before is not None:
        shutil.rmtree(directory / before)


WAYS: Final[Mapping[str, Put]] = {
    "written in place": in_place,
    "renamed over": by_renaming,
    "swapped by a kubelet": by_swapping,
}
