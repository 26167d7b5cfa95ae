"""What happens to the gateway's pod while tenants ask without a pause: moved, killed, replaced by an upgrade."""

import os
import signal

import pytest
from support.cluster.client import DEPLOYMENT, POD
from support.cluster.waiting import eventually, gone
from support.node.installation import TAG, upgrade
from support.node.load import load_on
from support.node.pools import OWNED, SLOTS

NEXT = "next"


@pytest.fixture
async def upgradable(node, kubectl):
    """The image has a second tag; the operator is back at the first one in the end."""
    node.tag(f"fairpool:{TAG}", f"fairpool:{NEXT}")
    yield
    await upgrade(kubectl)


async def evict(admin, pod):
    """Ask for a pod to be moved, as the draining of a node does."""
    metadata = {name: pod["metadata"][name] for name in ("name", "namespace")}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
    await admin.request("POST", path, eviction)


async def runs(pool, tag):
    """Wait until the gateway of this image is the only one."""
    image = f"fairpool:{tag}"

    def so(deployment):
        return deployment["spec"]["template"]["spec"]["containers"][0]["image"] == image

    await eventually(pool.admin, DEPLOYMENT, OWNED, pool.namespace, so, within=90)
    await pool.available()
    await pool.gateways(lambda found: len(found) == 1, within=120)


class TestTheGatewaysPod:
    async def test_that_is_evicted_serves_until_another_does_and_nothing_is_lost(self, serving, admin, tell):
        (pod,) = await serving.gateways()
        async with load_on(await serving.url(), serving.keys.values()) as load:
            await load.answers(20)
            await evict(admin, pod)
            await gone(admin, POD, pod["metadata"]["name"], serving.namespace, within=120)
            await load.answers(40)
        tell(f"the gateway's pod evicted: {load.account}")
        assert load.account.lost == []
        assert not load.account.refused

    async def test_that_is_killed_loses_what_it_had_and_is_soon_back(self, serving, node, tell):
        (pod,) = await serving.gateways()
        async with load_on(await serving.url(), serving.keys.values()) as load:
            await load.answers(20)
            os.kill(node.process(pod), signal.SIGKILL)
            await load.until(lambda account: bool(account.lost))
            await load.answers(40)
        tell(f"the gateway killed: {load.account}; lost for {load.account.losing_seconds:.1f} s")
        begun = [lost for lost in load.account.lost if " after 0 events" not in lost]
        assert len(begun) <= 2 * SLOTS
        assert all(lost.startswith(("ConnectError", "ReadError", "RemoteProtocolError")) for lost in load.account.lost)
        assert set(load.account.refused) <= {"503 no_endpoint"}


class TestAnUpgrade:
    async def test_of_the_gateway_before_the_operator_or_after_it_loses_nothing(
        self, serving, kubectl, upgradable, tell
    ):
        """First the gateway alone is the next one, then the operator too, then the gateway is the old one again."""
        async with load_on(await serving.url(), serving.keys.values()) as load:
            await load.answers(20)
            await upgrade(kubectl, gateway=NEXT)
            await runs(serving, NEXT)
            await load.answers(40)
            await upgrade(kubectl, operator=NEXT, gateway=NEXT)
            await load.answers(40)
            await upgrade(kubectl, operator=NEXT)
            await runs(serving, TAG)
            await load.answers(40)
        tell(f"the gateway's image changed twice, the operator's three times: {load.account}")
        assert load.account.lost == []
        assert not load.account.refused
