"""Peers from the registry of Python packages, each in an environment of its own in the user's cache.

They are no dependencies of the project, and never in its lock file. What always holds: an environment that was not
filled to its end is made anew.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from fairpool_lab.bench.cache import cache_directory
from fairpool_lab.errors import ProcessFailed

_LAST_LINES = 5


def environment_of(requirement: str) -> Path:
    """Where the environment of a requirement is, or would be: one for each version of it and of Python."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return cache_directory() / "peers" / f"{re.sub(r'[^A-Za-z0-9.]+', '-', requirement)}-python{version}"


def from_registry(requirement: str, name: str) -> Path:
    """A program of a package, installed now if it is not there yet; may take a minute or two.

    Raises:
        ProcessFailed: it cannot be installed; quotes why.
    """
    environment = environment_of(requirement)
    whole = environment / "whole"
    if not whole.exists():
        shutil.rmtree(environment, ignore_errors=True)
        _run(sys.executable, "-m", "venv", "--without-pip", str(environment))
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(environment))
        _run(*pip, "install", "--quiet", requirement)
        whole.touch()
    return environment / "bin" / name


def _run(*command: str) -> None:
    said = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - Python's own installers
    if said.returncode:
        last = "\n".join((said.stdout + said.stderr).splitlines()[-_LAST_LINES:])
        raise ProcessFailed(f"{' '.join(command[-3:])} failed:\n{last}")
