"""The programs that serve a pool here: the real gateway and, where there is no real engine, simulated ones."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairpool_lab.errors import PortTaken
from fairpool_lab.processes import Program

SIMULATED_MODEL: Final = "sim"
"""What simulated engines serve for a pool that names no models."""

LOOPBACK: Final = "127.0.0.1"

ENGINE_SAYS: Final = re.compile(r"engine listening on (\S+)")
GATEWAY_SAYS: Final = re.compile(r"to tenants on (\S+), admin on (\S+)")


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a gateway listens, of its admin port on loopback only; 0: where the kernel chooses."""

    host: str
    tenants: int
    admin: int

    def see_that_they_are_free(self) -> None:
        """Say it better than the gateway would, for nobody sees its options.

        Raises:
            PortTaken: somebody listens there, or nobody can.
        """
        for option, host, port in (("--port", self.host, self.tenants), ("--admin-port", LOOPBACK, self.admin)):
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            try:
                socket.create_server((host, port), family=family).close()
            except OSError as error:
                # Python adds where it was, which is said here anyway; the resolver's errors, below 0, have other words.
                number = error.errno or 0
                why = os.strerror(number) if number > 0 else str(error.strerror).partition(" (")[0]
                raise PortTaken(
                    f"cannot listen on {host} port {port}: {why}. Give another with {option}; 0: the kernel chooses"
                ) from error


def engine(
    name: str, models: Sequence[str], output: Path, *arguments: str, heard: Callable[[str], None] | None = None
) -> Program:
    """A simulated engine."""
    named = [f"--model={model}" for model in models]  # a name may begin with a dash
    command = [sys.executable, "-m", "fairpool_lab.engine", *named, *arguments]
    return Program(name, command, ENGINE_SAYS, output, heard)


def gateway(
    name: str,
    config: Path,
    ports: Ports,
    output: Path,
    *arguments: str,
    module: str = "fairpool_gateway",
    drain_seconds: int = 5,
    heard: Callable[[str], None] | None = None,
) -> Program:
    """A gateway, which has so many seconds to finish what waits and runs at the end."""
    command = [
        *(sys.executable, "-m", module, "--config", str(config), "--no-in-pod"),
        *("--host", ports.host, "--port", str(ports.tenants)),
        *("--admin-host", LOOPBACK, "--admin-port", str(ports.admin)),
        *("--drain-seconds", str(drain_seconds)),
        *arguments,
    ]
    return Program(name, command, GATEWAY_SAYS, output, heard, stop_seconds=drain_seconds + 10.0)
