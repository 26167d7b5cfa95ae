"""Runs pytest where it may make a node of the machine: in network, mount and process namespaces that end with it.

`make test-cluster` runs this module. What needs the world outside comes first: the programs of Kubernetes and the
images are built, or found in the cache. Inside there is no network but what the tests make, and what they write where a
node keeps things (`PLACES`) is in memory. When pytest ends, or is killed, the kernel ends every process and mount.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from support.built import BuildFailed, say
from support.cluster import build
from support.node import machine
from support.node.images import Images, images

PLACES: Final = ("/run", "/var/lib", "/var/log")
"""Where containerd, the kubelet and network plugins keep what they have."""

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
    """Have everything ready, and become pytest with these arguments; returns an exit status only if that cannot be."""
    try:
        machine.check()
        build.kubernetes()
        made = images()
    except (machine.MachineUnfit, BuildFailed) as error:
        say(str(error))
        return 1
    return _become_pytest(arguments, made)


def _become_pytest(arguments: Sequence[str], made: Images) -> NoReturn:
    os.environ["PATH"] = machine.path()
    os.environ[_IMAGES] = os.pathsep.join(map(str, made))
    mounts = " && ".join(f"mount -t tmpfs -o mode=755 node {place}" for place in PLACES)
    script = f'{mounts} && {_INSIDE}="$(readlink /proc/self/ns/net)" exec "$@"'
    pytest = (str(Path(sys.executable).with_name("pytest")), *arguments)
    os.execvp("unshare", ["unshare", *_NAMESPACES, "sh", "-c", script, "sh", *pytest])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
