"""Keeps a gateway in step with its configuration file, and with the credential that the file refers to.

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
from fairpool_gateway.config import PoolConfig
from fairpool_gateway.configwatch import follow
from fairpool_gateway.errors import ConfigInvalid

READ_EVERY = 2.0
"""Seconds between looks at the credential."""

log = logging.getLogger(__name__)


class Edits:
    """What happens to one gateway's configuration after the start."""

    def __init__(self, gateway: Gateway, path: Path) -> None:
        self._gateway = gateway
        self._path = path
        self._waits: PoolConfig | None = None

    async def follow(self, stop: asyncio.Event) -> None:
        """Follow the file and the credential until told to stop."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_credential(stop))
            await follow(
                self._path,
                applied=self._edited,
                refused=self._refuse,
                current=self._gateway.config,
                strict=True,
                stop=stop,
            )

    def _edited(self, config: PoolConfig) -> None:
        try:
            self._gateway.apply(config)
        except ConfigInvalid as problem:
            self._refuse(problem)
            self._waits = config
        else:
            self._waits = None
            log.info("an edit of %s is in force", self._path)

    def _refuse(self, problem: ConfigInvalid) -> None:
        self._waits = None
        self._gateway.refuse_config(problem)
        log.error("an edit of %s cannot be used, the last good configuration stays in force: %s", self._path, problem)

    async def _follow_credential(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), READ_EVERY)
            await self._look()

    async def _look(self) -> None:
        """Read the credential anew, for the edit that waits for it if there is one."""
        config = self._waits or self._gateway.config
        if config.endpoint_credential is None:
            return
        try:
            credential = await asyncio.to_thread(read_credential, config.endpoint_credential)
        except ConfigInvalid as problem:
            self._missing(config, problem)
            return
        if config is self._waits:
            self._edited(config)
        elif config is self._gateway.config:
            self._gateway.renew_credential(credential)

    def _missing(self, config: PoolConfig, problem: ConfigInvalid) -> None:
        if config is self._gateway.config and self._gateway.credential_problem is None:
            self._gateway.credential_problem = str(problem)
            log.error("the endpoints' credential cannot be read, the last one is still sent: %s", problem)
