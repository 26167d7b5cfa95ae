"""Kubernetes' programs: the machine's own where the environment points at them, else those that the project builds.

As in the tests of other controllers, `KUBEBUILDER_ASSETS` names a directory of `etcd`, `kube-apiserver` and `kubectl`,
or `TEST_ASSET_ETCD`, `TEST_ASSET_KUBE_APISERVER` and `TEST_ASSET_KUBECTL` name them one by one. Nothing is built then.
`make kubernetes` runs this module, so that the build has happened before the tests begin.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.built import BuildFailed, say
from support.cluster import build

Command = tuple[str, ...]

_NEEDED: Final = ("etcd", "kube-apiserver", "kubectl")


@dataclass(frozen=True)
class Programs:
    """How to run each program: what its command begins with. `controller_manager` is None where there is none."""

    etcd: Command
    apiserver: Command
    kubectl: Command
    controller_manager: Command | None

    @classmethod
    def find(cls, environment: Mapping[str, str] = os.environ) -> Programs:
        """Those of this machine; may take the time of a build.

        Raises:
            BuildFailed: they had to be built, and could not.
        """
        return cls.given(environment) or cls.of(build.kubernetes())

    @classmethod
    def given(cls, environment: Mapping[str, str]) -> Programs | None:
        """Those that the environment points at, if these are all that are needed."""
        found = {name: path for name in (*_NEEDED, "kube-controller-manager") if (path := _asset(name, environment))}
        if not all(name in found for name in _NEEDED):
            return None
        etcd, apiserver, kubectl = ((found[name],) for name in _NEEDED)
        manager = found.get("kube-controller-manager")
        return cls(etcd, apiserver, kubectl, None if manager is None else (manager,))

    @classmethod
    def of(cls, binary: Path) -> Programs:
        """Those within the one file that the project builds."""
        etcd, apiserver, kubectl = ((str(binary), name) for name in _NEEDED)
        return cls(etcd, apiserver, kubectl, (str(binary), "kube-controller-manager"))

    def __str__(self) -> str:
        return self.apiserver[0]


def _asset(name: str, environment: Mapping[str, str]) -> str | None:
    variable = f"TEST_ASSET_{name.replace('-', '_').upper()}"
    directory = environment.get("KUBEBUILDER_ASSETS")
    candidates = (environment.get(variable), directory and Path(directory, name))
    return next((str(path) for path in candidates if path and os.access(path, os.X_OK)), None)


def main() -> int:
    """Have them ready, and say where they are; returns the exit status."""
    try:
        programs = Programs.find()
    except BuildFailed as error:
        say(str(error))
        return 1
    sys.stdout.write(f"Kubernetes for the tests: {programs}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
