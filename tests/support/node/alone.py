"""Runs pytest where it may make a node of the machine: in network, mount and process namespaces that end with it.

`make test-cluster` runs this module. What needs the world outside comes first: the programs of Kubernetes and the
images are built, or found in the cache. Inside there is no network but what the tests make, and what they write where a
node keeps things (`PLACES`) is in memory. When pytest ends, or is killed, the kernel ends every process and mount.

Ctrl-C and SIGTERM reach this process only, which then has pytest end as Ctrl-C does: unshare heeds no signal, and
pytest is the first process of its namespace, which gets none that it has not asked for.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from support.built import BuildFailed, say
from support.cluster import build
from support.node import machine
from support.node.images import Images, images

from fairpool_lab import tied

PLACES: Final = ("/run", "/var/lib", "/var/log")
"""Where containerd, the kubelet and network plugins keep what they have."""

GRACE: Final = 60.0
"""Seconds that pytest has, once it was interrupted, to end what it made: a node takes a few."""
EXIT_INTERRUPTED: Final = 130

_INSIDE: Final = "FAIRPOOL_TESTS_ALONE"
_IMAGES: Final = "FAIRPOOL_TESTS_IMAGES"
_NAMESPACES: Final = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def inside() -> bool:
    """Whether this process is where it may make a node."""
    return os.environ.get(_INSIDE) == str(Path("/proc/self/ns/net").readlink())


def made_before() -> Images:
    """The images, made before this process was alone, for now nothing can be fetched."""
    return Images(*map(Path, os.environ[_IMAGES].split(os.pathsep)))


def main(arguments: Sequence[str]) -> int:
    """Have everything ready, and run pytest with these arguments; returns the exit status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        machine.check()
        build.kubernetes()
        os.environ[_IMAGES] = os.pathsep.join(map(str, images()))
        os.environ["PATH"] = machine.path()
        return run([str(Path(sys.executable).with_name("pytest")), *arguments])
    except (machine.MachineUnfit, BuildFailed) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def run(command: Sequence[str]) -> int:
    """Run a command alone; returns its exit status.

    Raises:
        KeyboardInterrupt: so it was, and everything has ended: the command by itself, for it was interrupted too, or
            killed after `GRACE` seconds, or at another interrupt.
    """
    mounts = " && ".join(f"mount -t tmpfs -o mode=755 node {place}" for place in PLACES)
    script = f'{mounts} && {_INSIDE}="$(readlink /proc/self/ns/net)" exec "$@"'
    tie = (sys.executable, "-I", "-S", tied.__file__, str(os.getpid()), signal.SIGKILL.name)
    unshare = (*tie, "unshare", *_NAMESPACES, "sh", "-c", script, "sh", *command)
    with subprocess.Popen(unshare, start_new_session=True) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            say("Interrupted: what the tests made is being ended; once more kills it")
            _end(process)
            raise


def _end(unshare: subprocess.Popen[bytes]) -> None:
    """Interrupt what unshare has started; kill it where that does not end it in time."""
    children = Path(f"/proc/{unshare.pid}/task/{unshare.pid}/children").read_text(encoding="ascii").split()
    started = [os.pidfd_open(int(child)) for child in children]
    with contextlib.suppress(KeyboardInterrupt):
        for each in started:
            signal.pidfd_send_signal(each, signal.SIGINT)
        select.select(started, [], [], GRACE if started else 0)
    unshare.kill()
    for each in started:
        select.select([each], [], [])
        os.close(each)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
