"""What comes and goes while tenants ask without a pause: pods, the API server, the pool itself."""

import asyncio
from contextlib import asynccontextmanager

import openai
import pytest
from support.cluster.client import DEPLOYMENT, FAIR_POOL, POD, ROLE, ROLE_BINDING, SECRET, SERVICE, SERVICE_ACCOUNT
from support.cluster.waiting import eventually, gone
from support.cluster.whole import OWNED, PROMPT, pool_of, tenant_with_key

from fairpool_lab.engine.batching import Limits

AT_ONCE = 3
"""Clients of each sort: those that want the answer whole, and those that stream it."""

STEADY = {"limits": Limits(step_base=0.005, step_per_sequence=0.000_1, prefill_tokens_per_second=1_000_000)}
"""Engines whose answers take long enough for something to happen to them."""


class Load:
    """Clients that ask again as soon as they are answered. What was lost is in `lost`, with how much had come."""

    def __init__(self, client):
        self.answered = 0
        self.lost = []
        self._client = client
        self._more = asyncio.Condition()

    async def answers(self, more):
        """Wait for so many answers from now on."""
        async with asyncio.timeout(60), self._more:
            until = self.answered + more
            await self._more.wait_for(lambda: self.answered >= until)

    async def whole(self):
        """Ask for whole answers, without end."""
        while True:
            await self._try(self._whole)

    async def streamed(self):
        """Ask for streams, without end."""
        while True:
            await self._try(self._streamed)

    async def _try(self, request):
        events = []
        try:
            await request(events)
        except openai.APIError as error:
            self.lost.append((len(events), error))
        else:
            async with self._more:
                self.answered += 1
                self._more.notify_all()

    async def _whole(self, events):
        answer = await self._client.chat.completions.create(**self._asked())
        assert answer.usage.completion_tokens

    async def _streamed(self, events):
        stream = await self._client.chat.completions.create(**self._asked(), stream=True)
        async for event in stream:
            events.append(event)
        assert events[-1].choices[0].finish_reason

    def _asked(self):
        return {"model": "sim", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 20}


@asynccontextmanager
async def load_on(gateway, key):
    """A steady load for the block, at whose end everything asked for is answered or lost."""
    async with gateway.as_tenant(key) as client:
        load = Load(client)
        tasks = [asyncio.create_task(each()) for each in (load.whole, load.streamed) for _ in range(AT_ONCE)]
        try:
            yield load
            assert not any(task.done() for task in tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def steady(running_gateway, kubectl, namespace, pods, key):
    """A gateway as `gateway` is, over engines whose answers take a while."""
    for name in ("gpu-0", "gpu-1"):
        await pods.serve(name, "sim", engine=STEADY)
    await kubectl.apply([pool_of(namespace, pods), *tenant_with_key(namespace, "search", key)])
    async with running_gateway() as gateway:
        await gateway.accepts(key)
        yield gateway


def reports(**figures):
    """Whether the pool's gateway reports this."""
    return lambda pool: figures.items() <= (pool["status"].get("gateway") or {}).items()


class TestPods:
    async def test_come_and_go_and_no_request_is_lost_that_need_not_be(self, steady, admin, namespace, pods, key):
        """A pod that ends in order loses nothing; one that dies only what it had begun to answer."""
        async with load_on(steady, key) as load:
            added = await pods.serve("gpu-2", "sim", engine=STEADY)
            async with asyncio.timeout(30):
                await added.until(lambda engine: engine.running > 0)
            await pods.start_deleting("gpu-0")
            await eventually(admin, FAIR_POOL, "llama", namespace, reports(endpointsTotal=2, endpointsReady=2))
            async with asyncio.timeout(30):
                await pods.engines["gpu-0"].until(lambda engine: engine.running == 0)
            await pods.finish_deleting("gpu-0")
            await pods.stop_engine("gpu-0")
            await load.answers(30)
            assert load.lost == []
            async with asyncio.timeout(30):
                await pods.engines["gpu-1"].until(lambda engine: engine.running > 0)
            pods.engines["gpu-1"].drop_connections()
            await pods.stop_engine("gpu-1")
            await load.answers(30)
            await pods.delete("gpu-1")
            await eventually(admin, FAIR_POOL, "llama", namespace, reports(endpointsTotal=1, endpointsReady=1))
            await load.answers(30)
            assert len(load.lost) <= AT_ONCE
            assert all(events > 0 for events, _ in load.lost), load.lost


class TestTheServer:
    async def test_is_killed_and_comes_back_and_no_request_is_lost(self, steady, control_plane, kubectl, key):
        async with load_on(steady, key) as load:
            await load.answers(10)
            control_plane.apiserver.kill()
            await load.answers(30)
            await control_plane.resume()
            await load.answers(30)
            await kubectl("patch", "tw", "search", "--type", "merge", "--patch", '{"spec": {"weight": 7}}')
            edit = await steady.decides("weight", lambda line: line["weight"] == 7)
            await steady.decides("dispatch", lambda line: line["seq"] > edit["seq"] and line["weight"] == 7)
            assert load.lost == []


class TestThePool:
    async def test_is_deleted_with_everything_and_its_gateway_serves_until_it_is_ended(
        self, controllers, running_gateway, admin, kubectl, namespace, pods, key
    ):
        await pods.serve("gpu-0", "sim", engine=STEADY)
        await kubectl.apply([pool_of(namespace, pods), *tenant_with_key(namespace, "search", key)])
        async with running_gateway(controllers=True) as gateway:
            await gateway.accepts(key)
            async with load_on(gateway, key) as load:
                await load.answers(10)
                await kubectl("delete", "fp", "llama")
                for kind in (SERVICE_ACCOUNT, ROLE, ROLE_BINDING, SERVICE, DEPLOYMENT):
                    await gone(admin, kind, OWNED, namespace)
                await gone(admin, SECRET, f"{OWNED}-config", namespace)
                await gone(admin, POD, gateway.name, namespace)
                await load.answers(30)
                assert load.lost == []
