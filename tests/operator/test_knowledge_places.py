"""Named namespaces are listed each by itself: one is in no other's way, and nothing is decided too early."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from support.api_server import ApiServer, kubeconfig
from support.resources import fair_pool, metadata, secret, tenant_weight
from support.scripted_endpoint import PATIENCE, until

from fairpool_operator import knowledge as module
from fairpool_operator.cluster import SECRET, TENANT_WEIGHT, Cluster, connect
from fairpool_operator.knowledge import Knowledge
from fairpool_operator.metrics import Tally
from fairpool_operator.store import Store
from fairpool_operator.view import PoolKey

HERE, THERE = PoolKey("inference", "llama"), PoolKey("team", "llama")
ELSEWHERE = PoolKey("nobody-looks-here", "llama")


def pool_of(key):
    return {**fair_pool(), "metadata": metadata(key.name, key.namespace)}


class Places:
    """Knowledge of two namespaces, from a server that answers for each of them as it is told."""

    def __init__(self, server, cluster):
        self._server = server
        self.refusals = {}
        self.there = [pool_of(HERE), pool_of(THERE)]
        self.asked = []
        self.store = Store()
        self.tally = Tally()
        self.touched = set()
        self.knowledge = Knowledge(
            self.store, cluster, self.touched.update, self.tally, namespaces=["inference", "team"], every=3600.0
        )

    async def answer(self):
        while True:
            request = await self._server._asked.get()
            *_, namespace, plural = request.path.split("/")
            self.asked.append((namespace, plural))
            if status := self.refusals.get((namespace, plural), self.refusals.get(namespace)):
                await request.refuse(status, "no")
                continue
            found = [each for each in self.there if f"{each['kind'].lower()}s" == plural]
            await request.list(*(each for each in found if each["metadata"]["namespace"] == namespace))

    async def listed_again(self):
        """Have everything listed that can be; returns when the pool here was."""
        lists = self.tally.lists
        self.knowledge.doubt()
        await until(lambda: self.tally.lists > lists)

    @property
    def enough(self):
        """About which pools may be decided."""
        return {key for key in (HERE, THERE, ELSEWHERE) if self.knowledge.is_enough_for(key)}


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """What waits for a moment waits for a short one."""
    monkeypatch.setattr(module, "_SETTLE", 0.01)
    monkeypatch.setattr(module, "_FIRST_RETRY", 0.01)
    monkeypatch.setattr(module, "_LAST_RETRY", 0.04)


@pytest.fixture
async def places(tmp_path):
    async with ApiServer.serving() as server:
        cluster = Cluster(await connect(kubeconfig(tmp_path, server.url)), seconds=PATIENCE)
        places = Places(server, cluster)
        tasks = [asyncio.create_task(places.answer())]
        places.start = lambda: tasks.append(asyncio.create_task(places.knowledge.run()))
        try:
            yield places
        finally:
            for task in tasks:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait(tasks, timeout=PATIENCE)
            await cluster.aclose()


@pytest.fixture
async def known(places):
    """Both have been listed."""
    places.start()
    await until(lambda: places.tally.lists == 2)
    return places


class TestOnePlaceThatCannotBeListedAnyMore:
    @pytest.mark.parametrize("status", [403, 404, 503])
    async def test_stays_as_it_was_and_the_other_is_listed(self, known, status, caplog):
        known.refusals["team"] = status
        known.there = [tenant_weight()]
        await known.listed_again()
        await until(lambda: known.tally.failed_lists > 1)
        assert known.store.keys() == {HERE, THERE}
        assert known.store.counts() == (1, 1)
        assert known.enough == {HERE, THERE, ELSEWHERE}
        assert len([each for each in caplog.messages if "team" in each]) == 1

    async def test_is_listed_as_soon_as_it_can_be(self, known):
        known.refusals["team"] = 403
        known.there = []
        await known.listed_again()
        known.refusals.clear()
        await until(lambda: known.store.counts() == (0, 0))

    async def test_costs_one_request_a_try_and_the_other_none(self, known):
        known.refusals["team"] = 403
        await known.listed_again()
        del known.asked[:]
        await until(lambda: len(known.asked) == 3)
        assert known.asked == [("team", "secrets")] * 3


class TestAStart:
    async def test_goes_on_without_a_place_that_is_refused_for_a_while(self, places, caplog):
        places.refusals["team"] = 403
        places.start()
        await until(places.knowledge.synced.is_set)
        assert places.tally.failed_lists >= 3
        assert places.enough == {HERE, ELSEWHERE}
        assert "take the namespace from its arguments" in caplog.text

    async def test_waits_while_a_place_cannot_be_reached(self, places):
        places.refusals["team"] = 503
        places.start()
        await until(lambda: places.tally.failed_lists > 6)
        assert places.tally.lists == 1
        assert places.enough == set()
        places.refusals.clear()
        await until(lambda: places.enough == {HERE, THERE, ELSEWHERE})

    async def test_waits_again_for_a_place_that_was_refused_and_is_now_away(self, places):
        places.refusals = {"team": 403, "inference": 503}
        places.start()
        await until(lambda: places.knowledge._refused)
        places.refusals["team"] = 503
        await until(lambda: not places.knowledge._refused)
        del places.refusals["inference"]
        await until(lambda: places.tally.lists == 1)
        assert places.enough == set()

    @pytest.mark.parametrize("status", [401, 403, 404])
    async def test_waits_while_nothing_can_be_listed_at_all(self, places, status):
        places.refusals = {"team": status, "inference": status}
        places.start()
        await until(lambda: places.tally.failed_lists > 12)
        assert not places.knowledge.synced.is_set()

    async def test_decides_nothing_of_a_place_before_all_of_it_is_known(self, places):
        places.refusals["team", "fairpools"] = 403
        places.there.append({**tenant_weight(), "spec": {"poolRef": {"name": "llama", "namespace": "team"}}})
        places.start()
        await until(places.knowledge.synced.is_set)
        assert places.enough == {HERE, ELSEWHERE}
        places.touched.clear()
        places.refusals.clear()
        await until(lambda: THERE in places.enough)
        assert places.touched == {THERE}
        assert places.store.view(THERE).pool is not None


class TestAWatchInAPlaceThatWasNeverListed:
    async def test_is_not_taken_at_its_word_but_has_the_place_listed(self, places):
        key = [{"name": "k", "secretKeyRef": {"name": "search-key", "key": "api-key"}}]
        there = tenant_weight("search", "team", apiKeys=key)
        places.refusals["team"] = 403
        places.start()
        await until(places.knowledge.synced.is_set)
        places.knowledge.heard(TENANT_WEIGHT, "ADDED", there)
        assert places.store.view(HERE).weights == ()
        places.there += [there, {**secret("search-key", "team", api_key="k"), "kind": "Secret"}]
        places.refusals.clear()
        await until(lambda: places.store.view(HERE).weights)
        assert places.store.view(HERE).secrets.keys() == {("team", "search-key")}
        await until(lambda: THERE in places.enough)
        places.knowledge.heard(SECRET, "DELETED", places.there[-1])
        assert places.store.view(HERE).secrets == {}

    def test_what_is_referred_to_is_listed_before_what_refers_to_it(self):
        for everywhere in (True, False):
            *rest, weights, pools = [each.kind.name for each in module.followed(everywhere=everywhere)]
            assert (weights, pools) == ("TenantWeight", "FairPool")
            assert "Secret" in rest
