"""The programs of `lab/load`: the load generator and the endpoint that costs nothing, in C.

Built on first use, once for each version of the sources, set of flags and kind of machine, in a second. What always
holds: nothing half-built is ever found in the cache, for a program is put there whole.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final, Literal

from fairpool_lab.bench.cache import cache_directory
from fairpool_lab.errors import MachineLacks, ProcessFailed

SOURCES: Final = Path(__file__).parents[2] / "load"
STANDARD: Final = ("-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wshadow", "-Wconversion")
FAST: Final = ("-O2",)

Name = Literal["load", "backend"]


def program(name: Name, flags: tuple[str, ...] = FAST) -> Path:
    """The program, built now if it is not there yet.

    Raises:
        MachineLacks: there is no C compiler.
        ProcessFailed: the compiler refused; quotes what it said.
    """
    return built(SOURCES / f"{name}.c", flags)


def built(source: Path, flags: tuple[str, ...] = FAST) -> Path:
    """The program of one source, which may include what is in `lab/load`."""
    there = cache_directory() / f"bench-{source.stem}-{_version(source, flags)}"
    if not there.exists():
        there.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=there.parent) as directory:
            compile_to(Path(directory) / source.stem, source, flags).rename(there)
    return there


def compile_to(made: Path, source: Path, flags: tuple[str, ...] = FAST) -> Path:
    """Make a program of one source, whatever is in the cache; returns it."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise MachineLacks("a C compiler is needed, there is no `cc`: apt-get install gcc libc6-dev")
    command = [compiler, *STANDARD, *flags, f"-I{SOURCES}", "-o", str(made), str(source), "-lm"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the project's own source
    if said.returncode:
        raise ProcessFailed(f"{source.name} cannot be compiled:\n{said.stderr}")
    return made


def _version(source: Path, flags: tuple[str, ...]) -> str:
    inputs = hashlib.sha256("\0".join((*flags, *STANDARD, platform.system(), platform.machine())).encode())
    for each in (source, *sorted(SOURCES.iterdir())):
        inputs.update(each.read_bytes())
    return inputs.hexdigest()[:16]
