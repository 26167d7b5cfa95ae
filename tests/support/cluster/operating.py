"""The operator as a process of its own, as its pod starts it, with a token that gives it its own roles and no more."""

from __future__ import annotations

import asyncio
import base64
import gzip
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families
from support.cluster.access import Access
from support.cluster.accounts import token
from support.cluster.client import Client, Document
from support.cluster.process import Server

from fairpool_gateway.config import PoolConfig, load

ROOT = Path(__file__).parents[3]
ACCOUNT = "fairpool-operator"


def documents(*paths: str) -> Iterator[Document]:
    """What is in these files of the project."""
    for path in paths:
        yield from filter(None, yaml.safe_load_all((ROOT / path).read_text(encoding="utf-8")))


async def install_operator(admin: Client, access: Access, namespace: str, *, everywhere: bool = False) -> Access:
    """Give an account in this namespace the operator's roles, there or everywhere; returns its access."""
    for document in documents("manifests/base/roles.yaml", "manifests/base/bindings.yaml"):
        await admin.apply(_placed(document, namespace, everywhere=everywhere))
    return access.as_user(await token(admin, namespace, ACCOUNT))


async def bind_operator(admin: Client, namespace: str, other: str) -> None:
    """Give the operator's account of one namespace its roles in another."""
    for document in documents("manifests/base/bindings.yaml"):
        if document["kind"] == "ClusterRoleBinding":
            bound = _placed(document, namespace, everywhere=False)
            await admin.apply({**bound, "metadata": {**bound["metadata"], "namespace": other}})


def _placed(document: Document, namespace: str, *, everywhere: bool) -> Document:
    """A manifest as kustomize puts it into a namespace; one for the whole cluster gets a name of its own there."""
    placed: Document = {**document, "metadata": {**document["metadata"], "namespace": namespace}}
    if document["kind"] == "ClusterRole":
        placed["metadata"].pop("namespace")
    if document["kind"] == "ClusterRoleBinding":
        placed["metadata"] = {"name": f"{document['metadata']['name']}-{namespace}"}
        if not everywhere:
            placed |= {"kind": "RoleBinding", "metadata": {**placed["metadata"], "namespace": namespace}}
    if "subjects" in document:
        placed["subjects"] = [{**subject, "namespace": namespace} for subject in document["subjects"]]
    return placed


class Operator(Server):
    """An operator, which runs while it is needed; frozen, killed and started again like any server."""

    program: tuple[str, ...] = ("-m", "fairpool_operator")

    def __init__(self, access: Access, namespace: str, directory: Path, *arguments: str, identity: str) -> None:
        kubeconfig = access.write(directory / f"{identity}.kubeconfig", namespace)
        command = (
            *(sys.executable, *self.program, "run", "--gateway-image", "fairpool:test", "--port", "0"),
            *("--own-namespace", namespace, "--identity", identity, "--kubeconfig", str(kubeconfig)),
            *("--lease-seconds", "3", "--list-seconds", "2", *arguments),
        )
        super().__init__(identity, command, directory)
        self.health = ""

    @property
    def said(self) -> str:
        """Its log so far."""
        return self.log.read_text(errors="replace")

    def start(self) -> None:
        """Run it; returns when it serves its health."""
        before = len(self.said) if self.log.exists() else 0
        super().start()
        self.until(lambda: "health on http" in self.said[before:])
        self.health = re.findall(r"health on (\S+)", self.said)[-1]

    async def numbers(self) -> dict[str, float]:
        """Its metrics, by name without `fairpool_operator_`; labels' values follow after a dot."""
        async with httpx.AsyncClient(trust_env=False) as http:
            text = (await http.get(f"{self.health}/metrics")).text
        return {
            ".".join([sample.name.removeprefix("fairpool_operator_"), *sample.labels.values()]): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    async def reaches(self, condition: Callable[[dict[str, float]], bool], within: float = 30.0) -> dict[str, float]:
        """Wait until its numbers are as they should be; returns them."""
        async with asyncio.timeout(within):
            while not condition(numbers := await self.numbers()):  # noqa: ASYNC110 - there is nothing to watch
                await asyncio.sleep(0.05)
        return numbers

    async def listed_again(self, times: int = 2) -> dict[str, float]:
        """Wait until it has listed everything so often and has nothing left to do; returns its numbers."""
        lists = (await self.numbers())["lists_total"]
        return await self.reaches(
            lambda now: now["lists_total"] >= lists + times and now["waiting_pools"] == 0, within=20.0 + 5 * times
        )


def config_in(secret: Document) -> PoolConfig:
    """What the gateway reads in a pool's Secret."""
    text = gzip.decompress(base64.b64decode(secret["data"]["config.json.gz"])).decode()
    return load(text, source="the Secret", strict=True)
