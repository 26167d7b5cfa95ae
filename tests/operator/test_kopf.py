"""kopf, which is kept alive, told little and trusted with nothing: one that ends is started again, and that is told."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import kopf
import pytest
from aiohttp import web
from support.api_server import kubeconfig
from support.scripted_endpoint import PATIENCE, until

from fairpool_operator import handlers
from fairpool_operator.handlers import Watches
from fairpool_operator.knowledge import followed


@pytest.fixture
def at_once(monkeypatch):
    """A kopf that ended is started again without a pause."""
    monkeypatch.setattr(handlers, "_AGAIN_AFTER", 0.0)


@contextlib.asynccontextmanager
async def served(answer):
    """An API server that answers every request so; yields its address."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def following(watches, restarted):
    """The watches run, until the block ends."""
    task = asyncio.create_task(watches.run(restarted))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def watches_of(file):
    return Watches(followed(everywhere=False), lambda *_: None, kubeconfig=file, namespaces=["inference"])


class TestAKopfThatEnds:
    async def test_is_started_again_and_asks_again(self, at_once, tmp_path):
        asked = []

        async def refuse(request):
            asked.append(request.path)
            return web.json_response({"kind": "Status", "code": 401, "message": "the token has ended"}, status=401)

        before = asyncio.Queue()
        async with served(refuse) as url:
            watches = watches_of(kubeconfig(tmp_path, url))
            async with following(watches, lambda: before.put_nowait(len(asked))), asyncio.timeout(PATIENCE * 3):
                first = await before.get()
                await until(lambda: len(asked) > first)
        assert (first > 0, watches.restarts) == (True, 1)

    @pytest.mark.parametrize("problem", [None, RuntimeError("broken")], ids=["by itself", "by an error"])
    async def test_is_counted_and_told_of_each_time(self, at_once, monkeypatch, tmp_path, problem):
        async def operator(**_):
            if problem is not None:
                raise problem

        monkeypatch.setattr(kopf, "operator", operator)
        ended = asyncio.Queue()
        watches = watches_of(tmp_path / "nothing")
        async with following(watches, lambda: ended.put_nowait(watches.restarts)), asyncio.timeout(PATIENCE):
            assert [await ended.get() for _ in range(3)] == [1, 2, 3]


async def test_a_kopf_ends_with_its_watches_and_is_not_started_again(at_once, monkeypatch, tmp_path):
    flags, restarts = [], []

    async def operator(*, stop_flag, **_):
        flags.append(stop_flag)
        await asyncio.to_thread(stop_flag.wait)

    monkeypatch.setattr(kopf, "operator", operator)
    watches = watches_of(tmp_path / "nothing")
    async with following(watches, lambda: restarts.append(1)):
        await until(lambda: flags)
    assert [flag.is_set() for flag in flags] == [True]
    assert (watches.restarts, restarts) == (0, [])
    assert "kopf" not in {thread.name for thread in threading.enumerate()}


class TestKopf:
    @pytest.fixture
    async def settings(self, tmp_path):
        return watches_of(tmp_path / "nothing")._settings()

    async def test_asks_nobody_and_looks_for_nothing_but_what_it_is_told_of(self, settings):
        assert (settings.peering.standalone, settings.scanning.disabled) == (True, True)

    async def test_tells_no_events(self, settings):
        assert settings.posting.enabled is False

    async def test_ends_every_watch_after_a_while_should_the_server_not(self, settings):
        assert 0 < settings.watching.server_timeout < settings.watching.client_timeout < 600
        assert 0 < settings.watching.connect_timeout < settings.networking.request_timeout

    async def test_asks_a_server_that_is_away_every_few_seconds_before_it_ends(self, settings):
        pauses = list(settings.networking.error_backoffs)
        assert 0 < min(pauses) <= max(pauses) <= 5
        assert 30 < sum(pauses) < 120
