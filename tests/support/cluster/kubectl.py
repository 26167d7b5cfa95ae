"""kubectl as people type it: what it prints, or why it would not."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from support.cluster.programs import Command

Manifest = str | dict[str, Any] | list[dict[str, Any]]


class KubectlFailed(Exception):
    """It ended with another status than 0; says what it said."""


@dataclass(frozen=True)
class Kubectl:
    """`await kubectl("get", "pods", "-o", "wide")`, with a kubeconfig, and in its namespace unless told otherwise."""

    command: Command
    kubeconfig: Path
    home: Path

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Run it; returns what it printed.

        Raises:
            KubectlFailed: it refused, or the server did.
        """
        process = await asyncio.create_subprocess_exec(
            *self.command,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home)},
        )
        try:
            said, complained = await process.communicate(stdin.encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise KubectlFailed(complained.decode().strip())
        return said.decode()

    async def apply(self, manifest: Manifest, *arguments: str) -> str:
        """`kubectl apply -f -` of YAML as it is written, or of documents."""
        return await self("apply", "-f", "-", *arguments, stdin=_text(manifest))

    async def explain(self, field: str, *arguments: str) -> str:
        """`kubectl explain`, such as of `fairpool.spec.queue`."""
        return await self("explain", field, *arguments)

    async def table(self, *arguments: str) -> list[dict[str, str]]:
        """`kubectl get … -o wide` as people see it: its rows, by the words of its first line."""
        head, *rows = (await self("get", *arguments, "-o", "wide")).splitlines()
        columns = [(name, head.index(name)) for name in head.split()]
        ends = [start for _, start in columns[1:]] + [None]
        return [
            {name: row[start:end].strip() for (name, start), end in zip(columns, ends, strict=True)} for row in rows
        ]

    async def json(self, *arguments: str) -> Any:
        """`kubectl get … -o json`, read."""
        return json.loads(await self("get", *arguments, "-o", "json"))


def _text(manifest: Manifest) -> str:
    if isinstance(manifest, str):
        return manifest
    return yaml.safe_dump_all(manifest if isinstance(manifest, list) else [manifest])
