"""How the store comes to know the cluster: by a list of everything, again after a while, and soon whenever in doubt."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from support.api_server import ApiServer, kubeconfig
from support.resources import fair_pool, tenant_weight
from support.scripted_endpoint import PATIENCE, until

from fairpool_operator import knowledge as module
from fairpool_operator.cluster import FAIR_POOL, TENANT_WEIGHT, Cluster, connect
from fairpool_operator.knowledge import Knowledge
from fairpool_operator.metrics import Tally
from fairpool_operator.store import Store
from fairpool_operator.view import PoolKey

NEVER = 3600.0
LLAMA = PoolKey("inference", "llama")
MANAGED = "app.kubernetes.io/managed-by=fairpool-operator"
LISTED = {
    "/apis/fairpool.dev/v1alpha1/fairpools": None,
    "/apis/fairpool.dev/v1alpha1/tenantweights": None,
    "/api/v1/secrets": "fairpool.dev/keys",
    "/api/v1/pods": "app.kubernetes.io/name=fairpool-gateway",
    "/api/v1/serviceaccounts": MANAGED,
    "/apis/rbac.authorization.k8s.io/v1/roles": MANAGED,
    "/apis/rbac.authorization.k8s.io/v1/rolebindings": MANAGED,
    "/api/v1/services": MANAGED,
    "/apis/networking.k8s.io/v1/networkpolicies": MANAGED,
    "/apis/apps/v1/deployments": MANAGED,
    "/api/v1/namespaces": None,
}


class Listing:
    """Knowledge that lists from a server, which the test answers."""

    def __init__(self, server, cluster, every):
        self.server = server
        self.store = Store()
        self.tally = Tally()
        self.touched = set()
        self.knowledge = Knowledge(self.store, cluster, self.touched.update, self.tally, every=every)

    async def answer(self, *objects, meanwhile=None):
        """Answer a list of everything; returns what was asked. `meanwhile` is done once the first kind was listed."""
        kinds = {f"/{each['apiVersion']}/{each['kind'].lower()}s": each for each in objects}
        asked = {}
        for number in range(len(LISTED)):
            request = await self.server.next()
            asked[request.path] = request.query.get("labelSelector")
            await request.list(*(each for path, each in kinds.items() if request.path.endswith(path)))
            if number == 0 and meanwhile is not None:
                await until(lambda: self.server.asked)
                meanwhile()
        return asked

    async def listed(self, times):
        """Wait until so many lists are done."""
        await until(lambda: self.tally.lists == times)


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """What waits for a moment waits for a short one."""
    monkeypatch.setattr(module, "_SETTLE", 0.01)
    monkeypatch.setattr(module, "_FIRST_RETRY", 0.01)


@contextlib.asynccontextmanager
async def listing_from(directory, every=NEVER):
    async with ApiServer.serving() as server:
        cluster = Cluster(await connect(kubeconfig(directory, server.url)), seconds=PATIENCE)
        listing = Listing(server, cluster, every)
        listing.task = asyncio.create_task(listing.knowledge.run())
        try:
            yield listing
        finally:
            listing.task.cancel()
            await asyncio.wait([listing.task], timeout=PATIENCE)
            await cluster.aclose()


@pytest.fixture
async def listing(tmp_path):
    async with listing_from(tmp_path) as listing:
        yield listing


class TestAList:
    async def test_asks_for_every_kind_by_its_labels_and_nothing_is_decided_before_all_are_had(self, listing):
        states = []
        asked = await listing.answer(fair_pool(), meanwhile=lambda: states.append(listing.knowledge.synced.is_set()))
        await listing.listed(1)
        assert asked == LISTED
        assert (states, listing.knowledge.synced.is_set()) == ([False], True)

    async def test_is_made_again_after_a_while_though_nothing_happened(self, tmp_path):
        async with listing_from(tmp_path, every=0.01) as listing:
            for _ in range(3):
                assert await listing.answer() == LISTED

    async def test_makes_good_what_no_watch_told_of(self, listing):
        await listing.answer(fair_pool())
        await listing.listed(1)
        listing.touched.clear()
        listing.knowledge.doubt()
        await listing.answer(tenant_weight())
        await listing.listed(2)
        assert listing.store.counts() == (0, 1)
        assert (listing.touched, listing.tally.corrections) == ({LLAMA}, 2)

    async def test_that_is_refused_is_tried_again(self, listing):
        await (await listing.server.next()).refuse(403, "forbidden")
        assert await listing.answer() == LISTED
        await listing.listed(1)


class TestDoubt:
    async def test_has_everything_listed_soon(self, listing):
        await listing.answer()
        await listing.listed(1)
        for times in (2, 3):
            listing.knowledge.doubt()
            assert await listing.answer() == LISTED
            await listing.listed(times)

    async def test_is_raised_by_a_watch_that_begins_anew(self, listing):
        await listing.answer()
        await listing.listed(1)
        listing.knowledge.heard(FAIR_POOL, None, fair_pool())
        assert listing.touched == {LLAMA}
        assert await listing.answer(fair_pool()) == LISTED

    async def test_is_not_raised_by_what_a_watch_tells_of_as_it_happens(self, listing):
        await listing.answer()
        await listing.listed(1)
        for happened in ("ADDED", "MODIFIED", "DELETED"):
            listing.knowledge.heard(TENANT_WEIGHT, happened, tenant_weight())
        assert not listing.knowledge._doubts[None].is_set()
        assert listing.store.counts() == (0, 0)

    async def test_of_several_watches_at_once_costs_one_list(self, listing):
        await listing.answer()
        await listing.listed(1)
        for _ in range(3):
            listing.knowledge.heard(FAIR_POOL, None, fair_pool())
        await listing.answer(fair_pool())
        await listing.listed(2)
        assert (listing.server.asked, listing.knowledge._doubts[None].is_set()) == (0, False)

    async def test_that_comes_as_the_process_ends_does_not_keep_it(self, listing):
        await listing.answer()
        await listing.listed(1)
        listing.knowledge.doubt()
        listing.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(listing.task, PATIENCE)

    async def test_that_comes_while_everything_is_being_listed_has_it_listed_once_more(self, listing):
        await listing.answer(meanwhile=listing.knowledge.doubt)
        assert await listing.answer() == LISTED
        await listing.listed(2)
