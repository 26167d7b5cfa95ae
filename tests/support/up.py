"""`fairpool up` as people run it, and the files that it is given."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import trustme
import yaml
from support.processes import descendants, held

from fairpool_lab.up.resources import Resources
from fairpool_operator.manifests import read
from fairpool_operator.view import PoolKey

FAIRPOOL = Path(sys.executable).with_name("fairpool")
START = 60.0
"""Seconds that a start may take: on a busy machine loading the code of every process takes ten."""
PROMISE = 1.0
"""Seconds within which an edit is in force."""


def pool(name: str = "llama", namespace: str | None = None, **spec: Any) -> dict[str, Any]:
    """A FairPool as a person writes it; its pods need no accelerator."""
    endpoints = {
        "selector": {"matchLabels": {"app": "engine"}},
        "targetPorts": [{"number": 8000}],
        "accelerators": {"policy": "Observe"},
    }
    return _resource("fairpool.dev/v1alpha1", "FairPool", name, namespace, spec={"endpoints": endpoints, **spec})


def weight(name: str, of: str = "llama", namespace: str | None = None, **spec: Any) -> dict[str, Any]:
    """A TenantWeight, with its key in Secret `keys`."""
    keys = [{"name": "first", "secretKeyRef": {"name": "keys", "key": name}}]
    return _resource(
        "fairpool.dev/v1alpha1",
        "TenantWeight",
        name,
        namespace,
        spec={"poolRef": {"name": of}, "apiKeys": keys, **spec},
    )


def secret(name: str = "keys", use: str = "true", namespace: str | None = None, **values: str) -> dict[str, Any]:
    """A Secret; `_` in the names of its keys stands for `-` or, twice, for `.`."""
    made = _resource("v1", "Secret", name, namespace, labels={"fairpool.dev/keys": use})
    return {**made, "stringData": {key.replace("__", ".").replace("_", "-"): text for key, text in values.items()}}


def certificate(leaf: trustme.LeafCert, name: str = "pair") -> dict[str, Any]:
    """The Secret of a gateway's certificate."""
    [chain] = leaf.cert_chain_pems
    return secret(name, use="tls", tls__crt=chain.bytes().decode(), tls__key=leaf.private_key_pem.bytes().decode())


def namespace(name: str, **labels: str) -> dict[str, Any]:
    """A Namespace."""
    return _resource("v1", "Namespace", name, None, labels=labels)


def eventually(condition: Callable[[], bool], within: float = START) -> None:
    """Wait for what no file and no line tells of."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        threading.Event().wait(0.02)


def write(path: Path, *resources: dict[str, Any]) -> Path:
    """Have these resources in a file, replaced as a whole."""
    new = path.with_suffix(".new")
    new.write_text(yaml.safe_dump_all(resources, sort_keys=False), encoding="utf-8")
    return new.replace(path)


def _resource(
    api_version: str, kind: str, name: str, namespace: str | None, labels: Any = None, **fields: Any
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {field: value for field, value in metadata.items() if value is not None},
        **fields,
    }


class Files:
    """A directory whose files are read again and again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.resources = Resources()

    def write(self, name: str, *resources) -> None:
        write(self.directory / f"{name}.yaml", *resources)

    def line_of(self, name: str, text: str) -> int:
        """The first line of a file that has this in it."""
        lines = (self.directory / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
        return next(number for number, line in enumerate(lines, 1) if text in line)

    def taken(self) -> list[str]:
        """What is said when they are read again."""
        problems = self.resources.take(read([self.directory]))
        return [f"{each.file.name}:{each.line}: {each.message}" for each in problems]

    def weights(self) -> dict[str, int | None]:
        """The TenantWeights in force, the oldest first."""
        view = self.resources.store().view(PoolKey("default", "llama"))
        return {each.tenant: each.spec.weight for each in sorted(view.weights, key=lambda each: each.metadata.age)}


class Up:
    """A running `fairpool up`. `said` holds the lines that it printed so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        self._more = threading.Condition()
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def says(self, pattern: str, within: float = START, after: int = 0) -> re.Match[str]:
        """Wait for a line in which this is found, of those after so many."""

        def found() -> re.Match[str] | None:
            return next((match for line in self.said[after:] if (match := re.search(pattern, line))), None)

        with self._more:
            self._more.wait_for(lambda: found() or not self._reading.is_alive(), within)
        match = found()
        assert match, f"it did not say {pattern!r}, but {self.said}"
        return match

    def url(self, pool: str = "default/llama") -> str:
        """Where tenants of a pool connect, with /v1."""
        return self.says(rf"^Pool {pool}, in \S+: (\S+)$")[1]

    def admin_url(self, pool: str = "default/llama") -> str:
        """Where a pool's admin port is."""
        self.url(pool)
        begun = next(n for n, line in enumerate(self.said) if line.startswith(f"Pool {pool}, "))
        return self.says(r"^  admin +(\S+):", after=begun)[1]

    def signal(self, number: int) -> None:
        """As the terminal does it: to the process, and to all that have its session."""
        os.killpg(self.process.pid, number)

    def ended(self) -> int:
        """Wait for its end; returns its exit status."""
        status = self.process.wait(START)
        self._reading.join(START)
        return status

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._more:
                self.said.append(line.rstrip("\n"))
                self._more.notify_all()
        with self._more:
            self._more.notify_all()


@contextmanager
def up(*arguments: str | Path, stdin: IO[bytes] | int = subprocess.DEVNULL) -> Iterator[Up]:
    """Run it, on ports that the kernel chooses, with further arguments; nothing that it started is left at the end."""
    process = subprocess.Popen(
        [FAIRPOOL, "up", "--port", "0", "--admin-port", "0", *map(str, arguments)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    running = Up(process)
    try:
        yield running
    finally:
        with held(descendants(process.pid)) as staying:
            if process.poll() is None:
                running.signal(signal.SIGTERM)
            running.ended()
            assert process.stdout is not None
            process.stdout.close()
            assert staying() == []
