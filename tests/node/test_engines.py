"""What happens to engines while tenants ask without a pause: no request is lost that could be kept."""

import os
import signal
from dataclasses import replace

from support.cluster.client import POD
from support.cluster.process import frozen
from support.cluster.waiting import gone
from support.node import engines
from support.node.asking import PATIENCE, until
from support.node.load import load_on
from support.node.pools import SLOTS

HASTY = {
    "timeouts": {"firstByte": "4s", "firstByteUnary": "4s", "idle": "4s"},
    "probe": {"interval": "1s", "timeout": "1s"},
}
"""A pool that does not wait long for an engine that is silent."""


async def works(pod):
    """Wait until an engine computes something more."""
    before = await engines.tokens_of(pod)

    async def more():
        return await engines.tokens_of(pod) != before

    await until(more)


async def rests(pool, pod):
    """Wait until nothing is outstanding on an engine."""
    address = f"{pod['status']['podIP']}:{engines.PORT}"

    async def nothing():
        shown = (await pool.shown("debug/pool"))["endpoints"]
        return not any(each["in_flight"] for each in shown if each["address"] == address)

    await until(nothing)


class TestEngines:
    async def test_are_scaled_up_and_down_and_to_zero_and_back_and_nothing_is_lost(self, serving, tell):
        async with load_on(await serving.url(), serving.keys.values()) as load:
            await load.answers(20)
            for number in (3, 1, 0):
                await serving.scale(number)
                await serving.reports(endpointsReady=number)
                if number:
                    await load.answers(40)
            await serving.scale(2)
            await serving.reports(endpointsReady=2)
            await load.answers(40)
        tell(f"engines 2, 3, 1, 0, 2: {load.account}")
        assert load.account.lost == []
        assert not load.account.refused

    async def test_are_rolled_out_and_nothing_is_lost(self, serving, kubectl, tell):
        before = {pod["metadata"]["name"] for pod in await engines.running(serving.admin, serving.namespace)}
        async with load_on(await serving.url(), serving.keys.values()) as load:
            await load.answers(20)
            await kubectl("rollout", "restart", "deployment/engine", "-n", serving.namespace)
            await kubectl("rollout", "status", "deployment/engine", "-n", serving.namespace, "--timeout=120s")
            for name in before:
                await gone(serving.admin, POD, name, serving.namespace, within=PATIENCE)
            await load.answers(40)
        tell(f"engines rolled out: {load.account}")
        assert load.account.lost == []
        assert not load.account.refused


class TestAnEngine:
    async def test_that_is_killed_loses_only_what_it_had_begun_to_answer(self, serving, node, tell):
        one, _ = await engines.running(serving.admin, serving.namespace)
        async with load_on(await serving.url(), serving.keys.values()) as load:
            await load.answers(20)
            await works(one)
            os.kill(node.process(one), signal.SIGKILL)
            await load.answers(60)
            await serving.reports(endpointsReady=2)
            await works(one)
        tell(f"an engine killed: {load.account}")
        assert len(load.account.lost) <= SLOTS
        assert all(" after 0 events" not in lost for lost in load.account.lost), load.account.lost
        assert not load.account.refused

    async def test_that_is_drained_by_its_label_finishes_what_it_runs_and_gets_no_more(self, serving, kubectl, tell):
        one, _ = await engines.running(serving.admin, serving.namespace)
        label = ("label", "pod", one["metadata"]["name"], "-n", serving.namespace)
        async with load_on(await serving.url(), serving.keys.values()) as load:
            await works(one)
            await kubectl(*label, "fairpool.dev/drain=true")
            await serving.reports(endpointsReady=1)
            await rests(serving, one)
            before = await engines.tokens_of(one)
            await load.answers(40)
            assert await engines.tokens_of(one) == before
            await kubectl(*label, "fairpool.dev/drain-")
            await works(one)
        tell(f"an engine drained and back: {load.account}")
        assert load.account.lost == []
        assert not load.account.refused

    async def test_that_freezes_holds_up_only_what_it_runs(self, pool, node, tell):
        pool = replace(pool, spec=HASTY, keys={})
        await pool.apply(pool.documents(2))
        await pool.reports(endpointsReady=2)
        await pool.available()
        one, _ = await engines.running(pool.admin, pool.namespace)
        async with load_on(await pool.url(), pool.keys.values()) as load:
            await works(one)
            with frozen(node.process(one)):
                await load.answers(100)
            await works(one)
        tell(f"an engine frozen and back: {load.account}")
        ends = len(load.account.lost) + load.account.refused.total()
        assert ends <= 2 * SLOTS
        assert set(load.account.refused) <= {"504 upstream_timeout"}
        assert all(" after 0 events" not in lost for lost in load.account.lost), load.account.lost
