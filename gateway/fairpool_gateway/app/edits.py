"""Keeps a gateway in step with its configuration, in a file or a Secret, and with the credential that it refers to.

An edit comes into force together with its credential: one without the other could show endpoints a credential that is
not theirs. An edit whose credential cannot be read is refused, and comes into force once it can. A credential that was
replaced is sent within a few seconds; while it cannot be read, the last one is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path

from fairpool_gateway.app.credential import read_credential
from fairpool_gateway.app.gateway import Gateway
from fairpool_gateway.app.kubernetes import Kubernetes
from fairpool_gateway.config import PoolConfig
from fairpool_gateway.configwatch import follow
from fairpool_gateway.errors import ConfigInvalid

READ_EVERY = 2.0
"""Seconds between looks at the credential."""

log = logging.getLogger(__name__)


async def follow_edits(gateway: Gateway, path: Path | None, kubernetes: Kubernetes | None, stop: asyncio.Event) -> None:
    """Keep a gateway in step with that file or, without one, with its Secret, until told to stop."""
    if path is not None:
        await Edits(gateway, str(path)).follow_file(path, stop)
    elif kubernetes is not None:
        await Edits(gateway, "the configuration").follow_secret(kubernetes, stop)


class Edits:
    """What happens to one gateway's configuration, which is found there, after the start."""

    def __init__(self, gateway: Gateway, where: str) -> None:
        self._gateway = gateway
        self._where = where
        self._waits: tuple[PoolConfig, str] | None = None

    async def follow_file(self, path: Path, stop: asyncio.Event) -> None:
        """Follow a file and the credential until told to stop."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_credential(stop))
            await follow(
                path,
                applied=self.edited,
                refused=self.refuse,
                current=self._gateway.config,
                strict=True,
                stop=stop,
            )

    async def follow_secret(self, kubernetes: Kubernetes, stop: asyncio.Event) -> None:
        """Follow the Secret and the credential until told to stop."""
        secret = kubernetes.config(self.edited, self.refuse, self._gateway.config_hash)
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(secret.follow()) if secret is not None else None
            await self._follow_credential(stop)
            if following is not None:
                following.cancel()

    def edited(self, config: PoolConfig, config_hash: str = "") -> None:
        """Put a configuration into force; `config_hash` is by what its author knows it."""
        try:
            self._gateway.apply(config)
        except ConfigInvalid as problem:
            self.refuse(problem)
            self._waits = config, config_hash
        else:
            self._waits = None
            self._gateway.config_hash = config_hash
            log.info("an edit of %s is in force", self._where)

    def refuse(self, problem: ConfigInvalid) -> None:
        """Keep the last good configuration."""
        self._waits = None
        self._gateway.refuse_config(problem)
        log.error("an edit of %s cannot be used, the last good configuration stays in force: %s", self._where, problem)

    async def _follow_credential(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), READ_EVERY)
            await self._look()

    async def _look(self) -> None:
        """Read the credential anew, for the edit that waits for it if there is one."""
        config = self._waits[0] if self._waits else self._gateway.config
        if config.endpoint_credential is None:
            return
        try:
            credential = await asyncio.to_thread(read_credential, config.endpoint_credential)
        except ConfigInvalid as problem:
            self._missing(config, problem)
            return
        if self._waits and config is self._waits[0]:
            self.edited(*self._waits)
        elif config is self._gateway.config:
            self._gateway.renew_credential(credential)

    def _missing(self, config: PoolConfig, problem: ConfigInvalid) -> None:
        if config is self._gateway.config and self._gateway.credential_problem is None:
            self._gateway.credential_problem = str(problem)
            log.error("the endpoints' credential cannot be read, the last one is still sent: %s", problem)
