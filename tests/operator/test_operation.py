"""The process: what it was not to write is not forgotten, but looked at as soon as it may be written."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from support.fake_time import on_fake_time
from support.resources import fair_pool

from fairpool_operator.errors import NotLeading, NotNow
from fairpool_operator.operation import _Operation
from fairpool_operator.options import Options
from fairpool_operator.view import PoolKey

OPTIONS = Options(
    gateway_image="registry.example/fairpool:1",
    own_namespace="inference",
    identity="me",
    namespaces=(),
    image_pull_policy=None,
    kubeconfig=None,
    host="127.0.0.1",
    port=0,
    lease_seconds=15.0,
    list_seconds=300.0,
    workers=1,
)
LLAMA, QWEN = PoolKey("inference", "llama"), PoolKey("inference", "qwen")
A_WHILE = 60.0


class Leadership:
    """Held when it is said to be."""

    held = True

    def guard(self):
        if not self.held:
            raise NotLeading("another leads")


class Looks:
    """Looks at pools, of which each is as it is wanted; notes which."""

    def __init__(self):
        self.at = []

    async def reconcile(self, key):
        self.at.append(key)


def looks(story):
    """Which pools are looked at, in that order, while a story happens to a process that knows two of them."""

    async def main():
        leadership, at_work = Leadership(), Looks()
        operation = _Operation(OPTIONS, None, None, leadership)
        operation._reconciler = at_work
        for key in (LLAMA, QWEN):
            operation._store.put("FairPool", fair_pool(key.name))
        operation._knowledge.synced.set()
        worker = asyncio.create_task(operation._work())
        await story(operation, leadership)
        await asyncio.sleep(A_WHILE)
        operation._queue.close()
        await worker
        return at_work.at

    return on_fake_time(main())


class TestAPoolThatIsEdited:
    def test_while_a_renewal_is_late_is_looked_at_when_that_succeeds(self):
        async def story(operation, leadership):
            leadership.held = False
            operation._look_at([LLAMA])
            await asyncio.sleep(A_WHILE)
            leadership.held = True
            operation._renewed(False)

        assert looks(story) == [LLAMA]

    def test_and_looked_at_is_not_looked_at_again_with_each_renewal(self):
        async def story(operation, leadership):
            operation._look_at([LLAMA])
            await asyncio.sleep(A_WHILE)
            operation._renewed(False)

        assert looks(story) == [LLAMA]


def test_a_pool_that_is_gone_is_forgotten_also_by_one_that_does_not_lead():
    async def story(operation, leadership):
        leadership.held = False
        operation._look_at([LLAMA])
        await asyncio.sleep(A_WHILE)
        operation._look_at(operation._store.remove("FairPool", fair_pool("llama")))
        await asyncio.sleep(A_WHILE)
        assert operation._owed == set()

    assert looks(story) == [LLAMA]


@pytest.mark.parametrize(("anew", "looked_at"), [(True, {LLAMA, QWEN}), (False, set())], ids=["anew", "still"])
def test_one_that_leads_anew_looks_at_every_pool(anew, looked_at):
    async def story(operation, leadership):
        operation._renewed(anew)

    assert set(looks(story)) == looked_at


def test_pools_that_hang_whenever_they_are_looked_at_keep_no_other_waiting():
    hangs = 30.0

    async def main():
        loop = asyncio.get_running_loop()
        looked_at = loop.create_future()

        class Hanging:
            async def reconcile(self, key):
                if key == QWEN:
                    return looked_at.set_result(loop.time())
                await asyncio.sleep(hangs)
                raise NotNow("PATCH: 504")

        operation = _Operation(replace(OPTIONS, workers=4), None, None, Leadership())
        operation._reconciler = Hanging()
        operation._knowledge.synced.set()
        workers = [asyncio.create_task(operation._work()) for _ in range(4)]
        operation._look_at(PoolKey("inference", f"hung-{number}") for number in range(20))
        await asyncio.sleep(20 * hangs)
        asked = loop.time()
        operation._look_at([QWEN])
        waited = await looked_at - asked
        operation._queue.close()
        await asyncio.gather(*workers)
        return waited

    assert on_fake_time(main()) < 1.0
