"""What a benchmark takes of this machine: two cores, tools, ports, and the figures of processes.

What is measured has one core, all that surrounds it the other. A program is known by its session, which it begins and
which its workers stay in.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairpool_lab.errors import MachineLacks

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cores:
    """Which core is whose: `subject` of what is measured, `around` of the load and the endpoint."""

    subject: int
    around: int

    @classmethod
    def of_this_machine(cls) -> Cores:
        """The first two that this process may use."""
        allowed = sorted(os.sched_getaffinity(0))
        if len(allowed) < 2:
            raise MachineLacks("two cores are needed: one for what is measured, one for what surrounds it")
        return cls(*allowed[:2])


def pinned(core: int) -> list[str]:
    """What goes before a command that may use one core only."""
    return [str(tool("taskset", "util-linux")), "--cpu-list", str(core)]


def tool(name: str, package: str) -> Path:
    """A program of this machine, from a package of Debian."""
    places = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    found = shutil.which(name, path=places)
    if found is None:
        raise MachineLacks(f"there is no {name}: apt-get install {package}")
    return Path(found)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def cpu_seconds(session: int) -> float:
    """How long all processes of a session have worked so far."""
    return sum(int(fields[11]) + int(fields[12]) for _, fields in _processes(session)) / _TICKS


def memory(session: int) -> int:
    """Bytes of memory that they have; what several share is counted once."""
    return sum(_proportional(process) for process, _ in _processes(session))


def described() -> str:
    """The machine in a line."""
    model = "an unknown processor"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return (
        f"{model}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release()}, Python {platform.python_version()}"
    )


def _processes(session: int) -> Iterator[tuple[Path, list[str]]]:
    """The directory of each process of a session, and its figures behind the name, from its state on."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            yield stat.parent, fields


def _proportional(process: Path) -> int:
    try:
        text = (process / "smaps_rollup").read_text(encoding="utf-8")
    except OSError:
        return 0
    return int(text.partition("\nPss:")[2].split()[0]) << 10
