"""What is not taken just now is said later, and is in nobody's way: neither a status nor an Event, of whomever."""

from __future__ import annotations

import asyncio

import pytest
from support.compiling import LLAMA
from support.reconciling import Server, looking, looks_at
from support.resources import fair_pool, tenant_weight
from support.scripted_endpoint import PATIENCE

from fairpool_operator import saying
from fairpool_operator.errors import ClusterUnavailable, Forbidden, NotNow

POOL = {"name": "llama", "namespace": "inference"}
EVERYBODY = {"namespaces": {"from": "All"}}
AWAY = NotNow("PATCH: 504", "request did not complete within the allotted timeout")
MANY = 60


async def no_wait():
    """Events are answered at once."""


class Hanging(Server):
    """One that does not take some statuses, nor Events of some namespaces."""

    def __init__(self, *resources):
        super().__init__(*resources)
        self.hangs = lambda name: False
        self.mute = set()
        self.answer = AWAY
        self.before_events = no_wait

    async def create(self, kind, wanted):
        await self.before_events()
        if wanted["metadata"]["namespace"] in self.mute:
            self.sent.append(("create", kind.name, wanted["metadata"]["name"], None))
            raise self.answer
        return await super().create(kind, wanted)

    def _try(self, kind, verb, name):
        if verb == "status" and self.hangs(name):
            raise self.answer
        super()._try(kind, verb, name)

    def said(self):
        """The TenantWeights that have a status."""
        return {name for (kind, name), found in self.there.items() if kind == "TenantWeight" and found.get("status")}

    def told(self):
        """Of whom an Event was sent, the last time."""
        return [name.partition(".")[0] for _, kind, name, _ in self.sent if kind == "Event"]


@pytest.fixture
def server():
    return Hanging(fair_pool(allowedTenants=EVERYBODY))


@pytest.fixture
def look(server):
    look = looks_at(server)

    async def looks(*edits):
        try:
            return await look(*edits)
        except (Forbidden, NotNow):
            return list(server.sent)

    return looks


@pytest.fixture
def hurried(monkeypatch):
    """Whatever takes time has taken too much of it."""
    monkeypatch.setattr(saying, "_HURRY_SECONDS", -1.0)


@pytest.fixture
def at_the_end(hurried, monkeypatch):
    """There is no time left at all."""
    monkeypatch.setattr(saying, "_ENOUGH_SECONDS", -1.0)


def guests(*names, **spec):
    return [tenant_weight(name, namespace="guests", poolRef=POOL, **spec) for name in names]


async def due_at_once(server):
    """What the second look at many tenants has looked at again without waiting; the first has made the objects."""
    for number in range(MANY):
        server.keep(tenant_weight(f"t{number}"))
    _, reconciler = looking(server)
    due = []
    for _ in range(2):
        due.clear()
        with pytest.raises(NotNow):
            await reconciler.reconcile(LLAMA)
        reconciler._touched = due.extend
    return due


def tried(server, beginning):
    return [name for verb, _, name, _ in server.sent if verb == "status" and name.startswith(beginning)]


class TestStatusesThatAreNotTaken:
    async def test_are_tried_a_few_at_a_time_in_their_namespace_and_all_others_are_said(self, server, look, hurried):
        server.hangs = lambda name: name.startswith("hung")
        await look(*guests(*(f"hung-{n}" for n in range(MANY))), *(tenant_weight(f"t{n}") for n in range(MANY)))
        assert 1 <= len(tried(server, "hung")) <= 8
        assert server.said() == {f"t{number}" for number in range(MANY)}
        assert tried(server, "llama") == ["llama"]

    async def test_are_tried_a_few_at_a_time_where_each_is_in_a_namespace_of_its_own(self, server, look, at_the_end):
        server.hangs = lambda name: name.startswith("hung")
        of_many = [tenant_weight(f"hung-{number}", namespace=f"team-{number}", poolRef=POOL) for number in range(MANY)]
        await look(*of_many)
        assert 1 <= len(tried(server, "hung")) <= 8

    @pytest.mark.parametrize("answer", [AWAY, Forbidden("PATCH: 403", "no")], ids=["away", "forbidden"])
    @pytest.mark.parametrize("hanging", [1, 16, 30])
    async def test_are_tried_after_those_that_have_waited_longer(self, server, look, at_the_end, hanging, answer):
        server.answer = answer
        server.hangs = lambda name: name.startswith("a-")
        tenants = [f"a-{number:02}" for number in range(hanging)] + [f"t{number:02}" for number in range(MANY)]
        looks = 0
        await look(*guests(*tenants))
        while not {name for name in tenants if name.startswith("t")} <= server.said():
            looks += 1
            assert looks <= hanging + MANY
            await look()
        server.hangs = lambda name: False
        while server.said() != {*tenants}:
            looks += 1
            assert looks <= 2 * (hanging + MANY)
            await look()

    async def test_say_nothing_of_others_where_it_is_the_pools_own(self, server, look, hurried):
        server.hangs = lambda name: name == "llama"
        tenants = {f"t{number}" for number in range(MANY)}
        await look(*(tenant_weight(name) for name in tenants))
        assert server.said() == tenants

    async def test_have_others_said_soon_that_are_left(self, server, at_the_end):
        server.hangs = lambda name: name == "llama"
        assert await due_at_once(server) == [LLAMA]
        assert 0 < len(server.said()) < MANY

    async def test_are_no_reason_to_look_again_at_once_where_nothing_else_is(self, server, at_the_end):
        server.hangs = lambda name: True
        assert await due_at_once(server) == []

    async def test_are_forgotten_with_what_is_gone(self, server):
        server.hangs = lambda name: True
        gone = server.keep(tenant_weight("t"))
        store, reconciler = looking(server)
        with pytest.raises(NotNow):
            await reconciler.reconcile(LLAMA)
        for each in (gone, fair_pool()):
            store.remove(each["kind"], each)
        await reconciler.reconcile(LLAMA)
        assert reconciler._sayer._memories == {}

    async def test_keep_their_turn_where_the_server_is_away_for_one_of_them(self, server, look):
        tenants = [f"t{number:02}" for number in range(MANY)]
        edits = guests(*tenants)
        for _ in range(2):
            server.fails["status", "t00"] = ClusterUnavailable("PATCH: no answer")
            with pytest.raises(ClusterUnavailable):
                await look(*edits)
            edits = []
        assert {*tenants[1:]} <= server.said()


class TestEventsThatAreNotTaken:
    """Two TenantWeights of a namespace are for a tenant that an older one has."""

    TWICE = ("x", "y", "z")

    async def test_are_tried_once_in_their_namespace_and_those_of_others_are_told(self, server, look):
        server.mute = {"guests"}
        stranger = {"namespace": "others", "poolRef": POOL, "tenantName": "others/same"}
        others = [tenant_weight(name, **stranger) for name in ("o", "p")]
        await look(*guests(*self.TWICE, tenantName="guests/same"), *others)
        of_guests = [name for name in server.told() if name in self.TWICE]
        assert len(of_guests) == 1
        assert len([name for name in server.told() if name in {"o", "p"}]) >= 1
        await look()
        assert len([name for name in server.told() if name in self.TWICE]) == 1

    async def test_are_in_no_ones_way_where_they_have_a_storage_of_their_own_that_is_away(self, server, look):
        server.mute, server.answer = {"guests"}, ClusterUnavailable("POST: rpc error: code = Unavailable")
        await look(*guests(*self.TWICE, tenantName="guests/same"), tenant_weight("t"))
        assert server.said() == {*self.TWICE, "t"}
        server.mute = set()
        await look()
        assert len(server.told()) == len(self.TWICE) - 1

    async def test_do_not_keep_those_of_other_namespaces_waiting(self, server, look, at_the_end):
        server.mute = {"guests", "others"}
        others = [tenant_weight(n, namespace="others", poolRef=POOL, tenantName="others/same") for n in ("o", "p")]
        await look(*guests(*self.TWICE, tenantName="guests/same"), *others)
        server.mute = {"guests"}
        told = []
        for _ in range(2):
            await look()
            assert len(server.told()) == 1
            told += server.told()
        assert [name for name in told if name in {"o", "p"}]

    async def test_do_not_keep_a_status_waiting_when_they_are_tried_again(self, server, look):
        server.mute = {"guests"}
        await look(*guests(*self.TWICE, tenantName="guests/same"))
        said = asyncio.Event()
        server.before_events = said.wait
        server.watch = lambda found: said.set() if found["kind"] == "TenantWeight" and found["status"] else None
        async with asyncio.timeout(PATIENCE):
            await look(tenant_weight("t"))
        assert len([name for name in server.told() if name in self.TWICE]) == 1

    async def test_are_told_once_they_are_taken_and_not_again(self, server, look):
        server.mute = {"guests"}
        await look(*guests(*self.TWICE, tenantName="guests/same"))
        first = {name for (kind, name), found in server.there.items() if kind == "TenantWeight" if found.get("status")}
        assert first == {*self.TWICE}
        server.mute = set()
        await look()
        assert len(server.told()) == len(self.TWICE) - 1
        await look()
        assert server.told() == []

    async def test_are_not_told_any_more_once_they_are_not_true(self, server, look):
        server.mute = {"guests"}
        await look(*guests(*self.TWICE, tenantName="guests/same"))
        server.mute = set()
        newer = {"namespace": "guests", "poolRef": POOL, "meta": {"generation": 2}}
        await look(*(tenant_weight(name, **newer, tenantName=f"guests/{name}") for name in self.TWICE))
        assert server.told() == []

    async def test_are_told_of_the_newest_edition_alone(self, server, look):
        server.mute = {"guests"}
        await look(*guests(*self.TWICE, tenantName="guests/same"))
        server.mute = set()
        await look(*guests(*self.TWICE, tenantName="guests/other", meta={"generation": 2}))
        assert len(server.told()) == len(self.TWICE) - 1

    async def test_are_looked_at_again_unasked(self, server):
        server.mute = {"guests"}
        for each in guests(*self.TWICE, tenantName="guests/same"):
            server.keep(each)
        _, reconciler = looking(server)
        assert await reconciler.reconcile(LLAMA) == saying._UNTOLD_SECONDS

    async def test_are_told_also_where_the_look_ended_with_an_error(self, server, look):
        server.mute = {"guests"}
        server.fails["status", "t"] = ClusterUnavailable("PATCH: no answer")
        with pytest.raises(ClusterUnavailable):
            await look(*guests(*self.TWICE, tenantName="guests/same"), tenant_weight("t"))
        server.mute = set()
        told = []
        for _ in range(3):
            await look()
            told += server.told()
        assert len({*told}) == len(self.TWICE) - 1
