"""One engine as a whole: its model, its application and its listener, from start to end.

The listener is the engine's own rather than uvicorn's server, so that it can be closed while requests run on and
opened again on the same port, and so that stopping takes no longer than telling those who run.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
import time
from collections.abc import Callable
from email.utils import formatdate

from uvicorn import Config
from uvicorn.server import ServerState

from fairpool_lab.engine.app import EngineApp
from fairpool_lab.engine.faults import Fault, FaultBoard, Kind
from fairpool_lab.engine.runner import Runner
from fairpool_lab.engine.settings import EngineSettings
from fairpool_lab.engine.wire import WiredProtocol
from fairpool_lab.errors import SettingsInvalid

_BACKLOG = 2048


class Engine:
    """A simulated engine in the running event loop: `await start()`, then `url` answers, until `await stop()`."""

    def __init__(self, settings: EngineSettings) -> None:
        self.settings = settings
        self.port = settings.port
        self.runner = Runner(
            settings.limits,
            settings.language,
            speed=settings.speed,
            tokens_per_event=settings.tokens_per_event,
            max_queued=settings.max_num_queued_reqs,
        )
        self._faults = FaultBoard()
        self._state = ServerState()
        self._config = Config(
            EngineApp(settings, self.runner, self._faults, self.set_fault),
            http=WiredProtocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            headers=[("vary", "Origin")],
            timeout_keep_alive=settings.keep_alive,
        )
        self._config.load()
        self._loop = asyncio.get_running_loop()
        self._listener: asyncio.Server | None = None
        self._held: socket.socket | None = None
        self._dating: asyncio.TimerHandle | None = None
        self._reopening: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://{self.settings.host}:{self.port}"

    @property
    def running(self) -> int:
        """How many sequences run."""
        return self.runner.batcher.running_count

    @property
    def waiting(self) -> int:
        """How many wait inside."""
        return self.runner.batcher.waiting_count

    def tokens(self) -> dict[str, dict[str, int]]:
        """By label, what it has computed so far: `/debug/tokens`."""
        return self.runner.tokens()

    async def until(self, condition: Callable[[Engine], bool]) -> None:
        """Wait until the engine is in some state, as in `until(lambda engine: engine.running == 2)`."""
        await self.runner.until(lambda: condition(self))

    async def start(self) -> None:
        """Listen.

        Raises:
            SettingsInvalid: the address cannot be had.
        """
        try:
            self._hold()
        except OSError as error:
            raise SettingsInvalid(f"cannot listen on {self.settings.host}:{self.port}: {error.strerror}") from None
        self._date()
        await self._listen()
        if self.settings.fault is not None:
            await self.set_fault(self.settings.fault)

    async def stop(self, grace: float = 1.0) -> None:
        """End all requests with what they have (`finish_reason` abort), and all connections within `grace` seconds."""
        await self._forget_reopening()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._held is not None:
            self._held.close()
            self._held = None
        self.runner.abort_all()
        self.runner.close()
        if self._dating is not None:
            self._dating.cancel()
        connections = self._connections()
        for connection in connections:
            if connection.wire.hanging:
                connection.wire.drop()
            else:
                connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                for connection in connections:
                    await connection.wire.lost()
        self.drop_connections()
        for connection in connections:
            await connection.wire.lost()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks)

    def drop_connections(self) -> None:
        """Reset all connections, as the machine of a dead engine does."""
        for connection in self._connections():
            connection.wire.drop()

    async def set_fault(self, fault: Fault | None, times: int | None = None, everywhere: bool = False) -> None:
        """Let requests go wrong from now on; see `faults`. Replaces what was set before; None ends it.

        For `refuse` and `slow`, which concern the engine as a whole, `times` and `everywhere` mean nothing.
        """
        self._faults.set(None)
        self.runner.slow_down(1)
        await self._forget_reopening()
        await self._listen()
        if fault is None:
            return
        if fault.kind is Kind.REFUSE:
            self._refuse()
            if fault.argument is not None:
                self._reopening = asyncio.create_task(self._reopen(fault.argument))
        elif fault.kind is Kind.SLOW:
            self.runner.slow_down(fault.argument or 1)
        else:
            self._faults.set(fault, times=times, everywhere=everywhere)

    def _connections(self) -> list[WiredProtocol]:
        return [connection for connection in self._state.connections if isinstance(connection, WiredProtocol)]

    def _protocol(self) -> WiredProtocol:
        return WiredProtocol(self._config, self._state, {}, self._loop)

    def _hold(self) -> None:
        """Take the port without listening: whoever connects is refused."""
        family = socket.AF_INET6 if ":" in self.settings.host else socket.AF_INET
        held = socket.socket(family, socket.SOCK_STREAM)
        try:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind((self.settings.host, self.port))
        except OSError:
            held.close()
            raise
        self.port = held.getsockname()[1]
        self._held = held

    async def _listen(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._listener = await self._loop.create_server(self._protocol, sock=held, backlog=_BACKLOG)

    def _refuse(self) -> None:
        """Listen no longer, but keep the port; idle connections end, requests go on."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self._hold()
            for connection in self._connections():
                connection.shutdown()

    async def _reopen(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._listen()

    async def _forget_reopening(self) -> None:
        if self._reopening is not None:
            self._reopening.cancel()
            await asyncio.wait((self._reopening,))
            self._reopening = None

    def _date(self) -> None:
        """Keep the `date` header current."""
        date = formatdate(time.time(), usegmt=True).encode()
        self._state.default_headers = [(b"date", date), *self._config.encoded_headers]
        self._dating = self._loop.call_later(1.0, self._date)


async def run(settings: EngineSettings) -> None:
    """Run an engine until SIGTERM or SIGINT; its first line on stdout says where it listens."""
    engine = Engine(settings)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    await engine.start()
    sys.stdout.write(f"engine listening on {engine.url}\n")
    sys.stdout.flush()
    await ended.wait()
    await engine.stop()
