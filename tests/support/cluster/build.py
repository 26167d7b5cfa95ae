"""Builds the tests' Kubernetes from its Go modules, once per machine.

What was built stays in the user's cache under a key of all that it was built from, so that the same sources are never
built twice, by however many clones. Two builds never run at once: who comes second waits, and uses the first one's.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from support.built import BuildFailed, alone, cache_directory, say
from support.cluster.progress import Progress
from support.cluster.toolchain import Go, toolchain

SOURCES: Final = Path(__file__).parents[2] / "cluster" / "kubernetes"
_UNUSED_SECONDS: Final = 30 * 24 * 3600.0


def kubernetes(sources: Path = SOURCES, cache: Path | None = None) -> Path:
    """The built program, from the cache where it is there.

    Raises:
        BuildFailed: the compiler refused, or there is none.
    """
    cache = cache or cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    with alone(cache / "build.lock", "Kubernetes"):
        go = toolchain(sources, cache, say)
        version = release(sources)
        flags = _flags(version)
        program = cache / f"kubernetes-{version}-{_key(sources, flags, go)}" / "kubernetes"
        if not program.exists():
            _build(go, sources, flags, program, version)
            _forget_unused(cache)
        os.utime(program.parent)
    return program


def release(sources: Path = SOURCES) -> str:
    """The release of Kubernetes that the sources are built from, such as `v1.37.2`."""
    found = re.search(r"^\s*(?:require )?k8s\.io/kubernetes (v\S+)$", (sources / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise BuildFailed(f"{sources / 'go.mod'} does not require k8s.io/kubernetes")
    return found[1]


def _flags(version: str) -> list[str]:
    """Without the version, clients cannot read what the server says it is."""
    major, minor, *_ = version.removeprefix("v").split(".")
    told = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    linked = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in told.items())
    return ["-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {linked}"]


def _key(sources: Path, flags: list[str], go: Go) -> str:
    """Says all that the program depends on in a few digits."""
    digest = hashlib.sha256("\0".join([go.version, platform.machine(), *flags]).encode())
    for file in sorted([*sources.glob("*.go"), sources / "go.mod", sources / "go.sum"]):
        digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _build(go: Go, sources: Path, flags: list[str], program: Path, version: str) -> None:
    say(f"Building Kubernetes {version} for the tests with {go.version}, once per machine")
    say("  some 2,900 packages, 15 minutes on two cores; fewer where Go has compiled some of them before")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=program.parent.parent, prefix=".build-") as directory:
        built = Path(directory) / program.name
        command = [str(go.program), "build", "-v", *flags, "-o", str(built), "."]
        progress = Progress(sys.stderr)
        with subprocess.Popen(
            command, cwd=sources, env=go.environment(), stderr=subprocess.PIPE, text=True, errors="replace"
        ) as compiling:
            assert compiling.stderr is not None
            unread = [line for line in compiling.stderr if not progress.reads(line)]
        progress.end()
        if compiling.returncode:
            raise BuildFailed(f"Kubernetes {version} could not be built:\n{''.join(unread[-20:])}")
        program.parent.mkdir(exist_ok=True)
        built.rename(program)
    say(f"Built in {time.monotonic() - began:.0f} s")


def _forget_unused(cache: Path) -> None:
    """Remove what no clone has used for a month."""
    for home in cache.glob("kubernetes-*"):
        if time.time() - home.stat().st_mtime > _UNUSED_SECONDS:
            shutil.rmtree(home, ignore_errors=True)
