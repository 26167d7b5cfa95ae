"""What a machine must have to be a node for the tests: root, and a few programs that Debian has packages of."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PROGRAMS: Final = {
    "buildah": "buildah",
    "containerd": "containerd",
    "ctr": "containerd",
    "ip": "iproute2",
    "mmdebstrap": "mmdebstrap",
    "mount": "mount",
    "nft": "nftables",
    "runc": "runc",
    "unshare": "util-linux",
}
"""Each with Debian's package of it."""

NETWORK_PLUGINS: Final = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
"""Where packages put them."""

_PLUGINS = ("bridge", "host-local", "loopback")


class MachineUnfit(Exception):
    """The tests cannot run here; says in a sentence what to do."""


def network_plugins() -> Path | None:
    """The directory that has those which the node needs."""
    found = (place for place in NETWORK_PLUGINS if all(os.access(place / name, os.X_OK) for name in _PLUGINS))
    return next(found, None)


def missing_packages() -> list[str]:
    """What to install, in Debian's names."""
    lacking = {package for program, package in PROGRAMS.items() if shutil.which(program, path=path()) is None}
    return sorted(lacking | ({"containernetworking-plugins"} if network_plugins() is None else set()))


def check() -> None:
    """See that everything is here.

    Raises:
        MachineUnfit: it is not.
    """
    if sys.platform != "linux":
        raise MachineUnfit("These tests make a node of this machine, and nodes run Linux.")
    if os.geteuid() != 0:
        raise MachineUnfit("These tests make a node of this machine, which takes root: sudo make test-cluster")
    if packages := missing_packages():
        raise MachineUnfit(install(packages))


def install(packages: Iterable[str]) -> str:
    """The sentence that says how."""
    return f"This machine lacks what a node needs: apt-get install --no-install-recommends {' '.join(packages)}"


def path() -> str:
    """Where programs are, those for root too."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
