"""A pool from end to end: what people apply, the gateway as the operator's Deployment describes it, tenants that ask.

No kubelet runs here. So the gateway's process is started as the Deployment's template says, with the command, the
arguments and the environment from there and a token of the ServiceAccount named there; only where it listens and how it
reaches the API server are this machine's. The pod is an object whose status is written as a kubelet would.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import re
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import openai
from support.cluster.access import Access
from support.cluster.accounts import token
from support.cluster.client import CONFIG_MAP, DEPLOYMENT, FAIR_POOL, POD, SECRET, TENANT_WEIGHT, Client, Document, Kind
from support.cluster.definitions import fair_pool, tenant_weight
from support.cluster.pods import LABELS, FakePods
from support.cluster.process import Server
from support.cluster.resources import by_secret, key_secret
from support.cluster.waiting import PATIENCE, eventually, eventually_all
from support.resources import rolled_out

POOL: Final = "llama"
OWNED: Final = "llama-fairpool"
PROMPT: Final = "a prompt that nobody else may see"

_HERE: Final = {"--host": "127.0.0.1", "--port": "0", "--admin-host": "127.0.0.1", "--admin-port": "0"}
_EVENT: Final = Kind("events.k8s.io/v1", "Event")
_LOOK_AGAIN: Final = 0.01


def pool_of(namespace: str, pods: FakePods, **spec: Any) -> Document:
    """The pool of these pods, as people write it."""
    endpoints = {"selector": {"matchLabels": dict(LABELS)}, "targetPorts": [{"number": pods.port}]}
    return fair_pool(namespace, POOL, endpoints=endpoints, **spec)


def tenant_with_key(namespace: str, name: str, key: str, **spec: Any) -> list[Document]:
    """A tenant, and the Secret with its key."""
    secret = f"{name}-key"
    return [key_secret(namespace, secret, key), tenant_weight(namespace, name, apiKeys=[by_secret(secret)], **spec)]


def new_key() -> str:
    """A key that is nobody's yet."""
    return f"sk-{secrets.token_hex(16)}"


class PoolGateway(Server):
    """The gateway's process. `url` is where tenants connect, once it listens."""

    def __init__(self, deployment: Document, pod: Document, access: Access, directory: Path) -> None:
        metadata = pod["metadata"]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        fields = {"metadata.name": metadata["name"], "metadata.uid": metadata["uid"]}
        environment = [
            f"{each['name']}={each.get('value') or fields[each['valueFrom']['fieldRef']['fieldPath']]}"
            for each in container["env"]
        ]
        (program,) = container["command"]
        self.decisions = directory / f"{metadata['name']}.decisions"
        more = (
            "--decision-log",
            str(self.decisions),
            "--kubeconfig",
            str(access.write(directory / "gateway.kubeconfig")),
        )
        command = (Path(sys.executable).with_name(program), *_placed_here(container["args"]), *more)
        super().__init__(metadata["name"], ("env", *environment, *map(str, command)), directory)
        self.url = ""

    @property
    def said(self) -> str:
        """Its log so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    async def listens(self) -> None:
        """Wait until tenants can connect."""
        async with asyncio.timeout(PATIENCE):
            while not (found := re.search(r"to tenants on (http://[\d.:]+)", self.said)):
                assert self.running, f"the gateway ended: {self.said}"
                await asyncio.sleep(_LOOK_AGAIN)
        self.url = found[1]

    def decided(self, event: str) -> list[Document]:
        """Its decisions of one kind so far."""
        lines = (json.loads(line) for line in self.decisions.read_bytes().split(b"\n")[:-1])
        return [line for line in lines if line["event"] == event]

    async def decides(self, event: str, condition: Callable[[Document], object]) -> Document:
        """Wait for such a decision."""
        async with asyncio.timeout(PATIENCE):
            while not (found := [line for line in self.decided(event) if condition(line)]):  # noqa: ASYNC110 - a log
                await asyncio.sleep(_LOOK_AGAIN)
        return found[0]

    def as_tenant(self, key: str) -> openai.AsyncOpenAI:
        """The official client, which asks once only: nothing that is lost is made good by asking again."""
        return openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=PATIENCE)

    async def answers(self, key: str) -> str:
        """Ask as the tenant with this key; returns the answer's text."""
        async with self.as_tenant(key) as client:
            return await ask(client)

    async def refuses(self, key: str, status: int) -> str | None:
        """Wait until the tenant with this key is refused so; returns the reason."""
        async with self.as_tenant(key) as client, asyncio.timeout(PATIENCE):
            while True:
                try:
                    await ask(client)
                except openai.APIStatusError as refused:
                    if refused.status_code != status:
                        raise
                    return refused.response.headers.get("x-fairpool-reason")

    async def accepts(self, key: str) -> None:
        """Wait until the tenant with this key is answered."""
        async with self.as_tenant(key) as client, asyncio.timeout(PATIENCE):
            while True:
                try:
                    await ask(client)
                except openai.APIStatusError:
                    await asyncio.sleep(_LOOK_AGAIN)
                else:
                    return


async def ask(client: openai.AsyncOpenAI, max_tokens: int = 4) -> str:
    """One request, answered whole."""
    answer = await client.chat.completions.create(
        model="sim", messages=[{"role": "user", "content": PROMPT}], max_tokens=max_tokens
    )
    text = answer.choices[0].message.content
    assert text
    return text


@asynccontextmanager
async def gateway_of_pool(
    admin: Client, access: Access, namespace: str, directory: Path, *, controllers: bool = False
) -> AsyncIterator[PoolGateway]:
    """The gateway of the namespace's pool, as soon as the operator has made its Deployment.

    Where controllers run they make its pod, and say of the Deployment that it is available.
    """
    deployment = await eventually(admin, DEPLOYMENT, OWNED, namespace, lambda _: True)
    if controllers:
        selector = ",".join(f"{key}={value}" for key, value in deployment["spec"]["selector"]["matchLabels"].items())
        (pod,) = (await eventually_all(admin, POD, namespace, bool, labelSelector=selector)).values()
    else:
        template = deployment["spec"]["template"]
        metadata = {"namespace": namespace, "name": f"{OWNED}-0", "labels": template["metadata"]["labels"]}
        pod = await admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
    account = pod["spec"]["serviceAccountName"]
    own = access.as_user(await token(admin, namespace, account))
    gateway = PoolGateway(deployment, pod, own, directory)
    gateway.start()
    try:
        await gateway.listens()
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await admin.patch(POD, pod["metadata"]["name"], namespace, {"status": ready}, "status")
        if not controllers:
            newest = await admin.get(DEPLOYMENT, OWNED, namespace)
            available = {**rolled_out(newest), "conditions": [{"type": "Available", "status": "True"}]}
            await admin.patch(DEPLOYMENT, OWNED, namespace, {"status": available}, "status")
        yield gateway
    finally:
        gateway.kill()
        print(gateway.said[-6000:])


async def places(values: Sequence[str], admin: Client, namespace: str, logs: Sequence[str]) -> set[str]:
    """Where any of these values is to be found: objects of the namespace, the processes' logs, all command lines."""
    found = set()
    for kind in (FAIR_POOL, TENANT_WEIGHT, _EVENT, CONFIG_MAP, DEPLOYMENT, POD, SECRET):
        for each in await admin.list(kind, namespace):
            data = each.get("data") or {} if kind == SECRET else {}
            texts = [json.dumps(each).encode(), *(_unpacked(base64.b64decode(value)) for value in data.values())]
            if _holds(texts, values):
                found.add(f"{kind.name} {each['metadata']['name']}")
    if _holds([log.encode() for log in logs], values):
        found.add("a log")
    if _holds(list(_command_lines()), values):
        found.add("a command line")
    return found


def _command_lines() -> list[bytes]:
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_bytes())
        except OSError:
            continue  # it ended meanwhile
    return lines


def _holds(texts: Sequence[bytes], values: Sequence[str]) -> bool:
    forms = [form for value in values for form in (value.encode(), base64.b64encode(value.encode()))]
    return any(form in text for text in texts for form in forms)


def _unpacked(data: bytes) -> bytes:
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def _placed_here(arguments: Sequence[str]) -> list[str]:
    """The arguments, but listening where only this machine reaches it, on ports that the kernel chooses."""
    before = ["", *arguments]
    return [_HERE.get(name, argument) for name, argument in zip(before, arguments, strict=False)]
