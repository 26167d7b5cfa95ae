"""An operator that is killed anywhere in a reconcile leaves nothing that the next one does not finish."""

import asyncio
import itertools

import pytest
from support.cluster.client import FAIR_POOL, SERVICE, TENANT_WEIGHT
from support.cluster.definitions import fair_pool, tenant_weight
from support.cluster.interrupting import Process, state_of
from support.cluster.resources import by_secret, digest

from fairpool_operator.cluster import FAIR_POOL as SAID_OF_POOL
from fairpool_operator.cluster import Cluster, connect
from fairpool_operator.reconcile import Reconciler

AT_ONCE = 6
TIGHT = {"networkPolicy": {}}


@pytest.fixture
async def cluster(control_plane, crds, tmp_path):
    cluster = Cluster(await connect(control_plane.access.write(tmp_path / "operator.kubeconfig")), seconds=60.0)
    yield cluster
    await cluster.aclose()


async def at_once(coroutines):
    """Run them all, a few at a time; returns what they return."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def run(coroutine):
        async with limit:
            return await coroutine

    return await asyncio.gather(*map(run, coroutines))


class Pools:
    """Pools of one namespace, all made and edited in the same way; the first one's operator is never killed."""

    def __init__(self, admin, cluster, namespace, make=Reconciler):
        self.admin = admin
        self.cluster = cluster
        self.namespace = namespace
        self.make = make
        self.names = []

    async def create(self, count):
        """Pools with a policy for their network, a tenant, and one whose Secret is missing."""
        added = [f"pool-{number:03d}" for number in range(len(self.names), len(self.names) + count)]
        self.names += added
        await at_once(map(self._create, added))
        return added

    async def _create(self, pool):
        of_pool = {"poolRef": {"name": pool}}
        keys = [{"name": "k", "digest": digest("search")}]
        await self.admin.create(fair_pool(self.namespace, pool, gateway=TIGHT))
        await self.admin.create(tenant_weight(self.namespace, f"{pool}-a", tenantName="a", apiKeys=keys, **of_pool))
        missing = {"tenantName": "b", "apiKeys": [by_secret("missing")]}
        await self.admin.create(tenant_weight(self.namespace, f"{pool}-b", **missing, **of_pool))

    async def edit(self):
        """Another weight, a pool without the policy, and a Service that somebody made impossible to apply."""
        await at_once(map(self._edit, self.names))

    async def _edit(self, pool):
        await self.admin.patch(TENANT_WEIGHT, f"{pool}-a", self.namespace, {"spec": {"weight": 7}})
        await self.admin.patch(
            FAIR_POOL, pool, self.namespace, {"spec": {"suspend": True, "gateway": {"networkPolicy": None}}}
        )
        ports = {"spec": {"ports": [{"name": "http", "port": 81, "targetPort": "http"}]}}
        await self.admin.patch(SERVICE, f"{pool}-fairpool", self.namespace, ports)

    async def killed(self, kills):
        """Each pool's operator dies at its call; returns how many calls each had made."""
        process = await self._begun()
        return await at_once(process.reconcile(pool, at, after=after) for pool, (at, after) in kills.items())

    async def resumed(self):
        """Another operator finishes all, and a third finds nothing to do."""
        process = await self._begun()
        await at_once(map(process.reconcile, self.names))
        third = await self._begun()
        before = self.cluster.writes
        await at_once(map(third.reconcile, self.names))
        assert self.cluster.writes == before
        return await state_of(self.admin, self.namespace, self.names)

    async def _begun(self):
        process = Process(self.cluster, self.namespace, self.make)
        await process.begin()
        return process


def assert_not_ahead(states):
    """No status speaks of a configuration that is not there."""
    for pool, state in states.items():
        [resource] = state["FairPool"]
        said = resource["status"].get("configHash")
        assert said in {None, "the newest hash"}, pool


def assert_all_alike(states):
    """Every pool ended as the first did."""
    undisturbed, *others = states.values()
    for pool, state in zip(list(states)[1:], others, strict=True):
        assert state == undisturbed, pool


async def assert_ends_alike(pools, every=1):
    """Kill an operator at every call of making a pool, before and after its effect, and finish with another."""
    [first] = await pools.create(1)
    [calls] = await pools.killed({first: (0, False)})
    points = list(itertools.product(range(1, calls + 1), (False, True)))[::every]
    kills = dict(zip(await pools.create(len(points)), points, strict=True))
    await pools.killed(kills)
    assert_not_ahead(await state_of(pools.admin, pools.namespace, kills))
    assert_all_alike(await pools.resumed())


class TestKilledAtAnyCall:
    async def test_of_making_or_changing_a_pool_the_next_one_ends_where_it_would_have(self, admin, cluster, namespace):
        pools = Pools(admin, cluster, namespace)
        await assert_ends_alike(pools)
        await pools.edit()
        first, *others = pools.names
        [calls] = await pools.killed({first: (0, False)})
        points = list(itertools.product(range(1, calls + 1), (False, True)))
        assert len(points) <= len(others)
        await pools.killed(dict(zip(others, points, strict=False)))
        assert_all_alike(await pools.resumed())


class Otherwise:
    """A writer that some calls go to; those that are not replaced go on to the true one."""

    def __init__(self, writer):
        self.writer = writer

    def __getattr__(self, name):
        return getattr(self.writer, name)


class Later(Otherwise):
    """Says what is about to be done, then does it."""

    def __init__(self, writer):
        super().__init__(writer)
        self.left = []

    async def write(self, change, key):
        self.left.append((change, key))

    async def say(self, kind, body):
        said = await self.writer.say(kind, body)
        while kind is SAID_OF_POOL and self.left:
            await self.writer.write(*self.left.pop(0))
        return said


def writing(otherwise):
    """Makes reconcilers that write otherwise."""

    def make(*arguments, **options):
        reconciler = Reconciler(*arguments, **options)
        reconciler._writer = otherwise(reconciler._writer)
        return reconciler

    return make


def remembering():
    """Writers that share a memory of what was begun, and believe it instead of looking."""
    begun = set()

    class Remembering(Otherwise):
        async def write(self, change, key):
            what = (key, change.kind)
            if what not in begun:
                begun.add(what)
                return await self.writer.write(change, key)
            return None

    return Remembering


class TestTheCheck:
    async def test_catches_a_status_that_runs_ahead(self, admin, cluster, namespace):
        pools = Pools(admin, cluster, namespace, writing(Later))
        with pytest.raises(AssertionError, match="pool-"):
            await assert_ends_alike(pools, every=5)

    async def test_catches_a_memory_that_is_believed(self, admin, cluster, namespace):
        pools = Pools(admin, cluster, namespace, writing(remembering()))
        with pytest.raises(AssertionError, match="pool-"):
            await assert_ends_alike(pools, every=5)
