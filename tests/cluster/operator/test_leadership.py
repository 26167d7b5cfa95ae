"""Of two operators one writes: whether one ends, dies, freezes in the middle of something, or loses its network.

Two that know nothing of each other both write; they do not race, and say so.
"""

from support.cluster.client import DEPLOYMENT, FAIR_POOL, LEASE, SECRET, TENANT_WEIGHT
from support.cluster.definitions import fair_pool, tenant_weight
from support.cluster.namespaces import new_namespace
from support.cluster.operating import Operator, config_in, install_operator
from support.cluster.resources import condition, says
from support.cluster.waiting import eventually

from fairpool_operator.contests import AT_ONCE

CONFIG = "llama-fairpool-config"


def held_by(identity):
    return lambda lease: lease["spec"].get("holderIdentity") == identity


def weight_is(weight):
    return lambda secret: config_in(secret).weights() == {"search": weight}


async def pair(own_operators, admin, namespace):
    """Two operators, of which the first leads."""
    first = own_operators("first")
    await eventually(admin, LEASE, "fairpool-operator", namespace, held_by("first"))
    second = own_operators("second")
    await second.reaches(lambda now: now["synced"] == 1)
    await admin.create(fair_pool(namespace))
    await admin.create(tenant_weight(namespace, weight=1))
    await eventually(admin, SECRET, CONFIG, namespace, weight_is(1))
    return first, second


class TestTheOneThatLeads:
    async def test_writes_and_the_other_does_not(self, own_operators, admin, namespace):
        first, second = await pair(own_operators, admin, namespace)
        await second.listed_again()
        assert (await first.numbers())["leading"] == 1
        assert (await second.numbers())["leading"] == 0
        assert (await second.numbers())["reconciles_total.done"] == 0

    async def test_hands_over_when_it_is_asked_to_end(self, own_operators, admin, namespace):
        first, second = await pair(own_operators, admin, namespace)
        first.stop()
        lease = await admin.get(LEASE, "fairpool-operator", namespace)
        assert lease["spec"].get("holderIdentity") != "first"
        await admin.patch(TENANT_WEIGHT, "search", namespace, {"spec": {"weight": 2}})
        await eventually(admin, SECRET, CONFIG, namespace, weight_is(2))
        assert (await second.numbers())["leading"] == 1

    async def test_is_replaced_when_it_dies(self, own_operators, admin, namespace):
        first, second = await pair(own_operators, admin, namespace)
        first.kill()
        await admin.patch(TENANT_WEIGHT, "search", namespace, {"spec": {"weight": 2}})
        await eventually(admin, SECRET, CONFIG, namespace, weight_is(2))
        await eventually(admin, LEASE, "fairpool-operator", namespace, held_by("second"))
        assert (await second.numbers())["leading"] == 1

    async def test_writes_nothing_any_more_once_it_was_frozen_for_too_long(self, own_operators, admin, namespace):
        first, second = await pair(own_operators, admin, namespace)
        before = await first.listed_again()
        with first.frozen():
            # It is frozen with work before it: an edit that it has been told of and not acted upon.
            await admin.patch(TENANT_WEIGHT, "search", namespace, {"spec": {"weight": 2}})
            await eventually(admin, LEASE, "fairpool-operator", namespace, held_by("second"))
            await eventually(admin, SECRET, CONFIG, namespace, weight_is(2))
            await admin.delete(DEPLOYMENT, "llama-fairpool", namespace)
            await eventually(admin, DEPLOYMENT, "llama-fairpool", namespace, lambda _: True)
        after = await first.listed_again()
        assert after["leading"] == 0
        assert after["reconciles_total.done"] == before["reconciles_total.done"]
        await admin.patch(TENANT_WEIGHT, "search", namespace, {"spec": {"weight": 3}})
        await eventually(admin, SECRET, CONFIG, namespace, weight_is(3))
        assert (await first.numbers())["reconciles_total.done"] == before["reconciles_total.done"]
        assert (await second.numbers())["leading"] == 1

    async def test_stops_before_it_is_replaced_when_its_network_hangs(
        self, own_operators, own_access, network, admin, namespace
    ):
        first = own_operators("first", access=own_access.via(network.url))
        await eventually(admin, LEASE, "fairpool-operator", namespace, held_by("first"))
        network.stall()
        await first.reaches(lambda now: now["leading"] == 0)
        lease = await admin.get(LEASE, "fairpool-operator", namespace)
        assert lease["spec"]["holderIdentity"] == "first"
        network.resume()
        await first.reaches(lambda now: now["leading"] == 1)


class TestTrouble:
    async def test_of_the_network_is_ridden_out(self, own_operators, own_access, network, admin, namespace):
        operator = own_operators("operator", access=own_access.via(network.url))
        await admin.create(fair_pool(namespace))
        await admin.create(tenant_weight(namespace, weight=1))
        await eventually(admin, SECRET, CONFIG, namespace, weight_is(1))
        for weight, trouble, over in (
            (2, network.cut, network.resume),
            (3, network.refuse, network.resume),
            (4, network.stall, network.resume),
            (5, lambda: network.slow(200_000), network.resume),
        ):
            trouble()
            await admin.patch(TENANT_WEIGHT, "search", namespace, {"spec": {"weight": weight}})
            over()
            await eventually(admin, SECRET, CONFIG, namespace, weight_is(weight))
        assert operator.running

    async def test_of_the_api_server_is_ridden_out(self, own_operators, control_plane, admin, namespace):
        operator = own_operators()
        await admin.create(fair_pool(namespace))
        await admin.create(tenant_weight(namespace, weight=1))
        await eventually(admin, SECRET, CONFIG, namespace, weight_is(1))
        await control_plane.restart_apiserver()
        await admin.patch(TENANT_WEIGHT, "search", namespace, {"spec": {"weight": 2}})
        await eventually(admin, SECRET, CONFIG, namespace, weight_is(2))
        assert operator.running

    async def test_of_a_watch_that_missed_a_deletion_and_a_new_one_of_the_name_is_made_good(
        self, own_operators, own_access, network, control_plane, admin, namespace
    ):
        operator = own_operators("operator", access=own_access.via(network.url))
        await admin.create(fair_pool(namespace))
        for name in ("kept", "gone", "again"):
            await admin.create(tenant_weight(namespace, name, weight=1))
            await eventually(admin, TENANT_WEIGHT, name, namespace, says("Accepted", "True"))
        network.refuse()
        await admin.delete(TENANT_WEIGHT, "gone", namespace)
        await admin.delete(TENANT_WEIGHT, "again", namespace)
        await admin.create(tenant_weight(namespace, "again", weight=9))
        await control_plane.compact()
        network.resume()
        await eventually(
            admin, SECRET, CONFIG, namespace, lambda secret: config_in(secret).weights() == {"kept": 1, "again": 9}
        )
        assert operator.running

    async def test_of_a_liar_is_found_out_by_listing(self, own_operators, own_access, liar, admin, namespace):
        own_operators("operator", access=own_access.via(liar.url))
        await admin.create(fair_pool(namespace))
        await admin.create(tenant_weight(namespace, weight=1))
        await eventually(admin, SECRET, CONFIG, namespace, weight_is(1))
        liar.lose_type("tenantweights")
        await admin.patch(TENANT_WEIGHT, "search", namespace, {"spec": {"weight": 2}})
        await eventually(admin, SECRET, CONFIG, namespace, weight_is(2))
        await admin.delete(TENANT_WEIGHT, "search", namespace)
        await eventually(admin, SECRET, CONFIG, namespace, lambda secret: config_in(secret).weights() == {})


def says_so(pool):
    accepted = condition(pool, "Accepted")
    return accepted and "Deployment llama-fairpool: somebody else changes it" in accepted["message"]


class TestTwoThatKnowNothingOfEachOther:
    async def test_put_back_what_the_other_writes_ever_later_and_say_so(
        self, own_operators, admin, namespace, control_plane, tmp_path
    ):
        own_operators("first")
        async with new_namespace(admin, "elsewhere") as elsewhere:
            access = await install_operator(admin, control_plane.access, elsewhere, everywhere=True)
            other = Operator(access, elsewhere, tmp_path, "--gateway-image", "fairpool:other", identity="other")
            other.start()
            try:
                await other.reaches(lambda now: now["synced"] == 1)
                await admin.create(fair_pool(namespace))
                await eventually(admin, FAIR_POOL, "llama", namespace, says_so)
                found = await admin.get(DEPLOYMENT, "llama-fairpool", namespace)
                # Each of the two has put it back as often as it does without waiting, and hardly more.
                assert found["metadata"]["generation"] <= 2 * (AT_ONCE + 4)
            finally:
                other.kill()
