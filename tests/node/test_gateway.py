"""What happens to the gateway's pod while tenants ask without a pause: moved, killed, replaced by an upgrade."""

import base64
import gzip
import os
import signal

import pytest
from support.cluster.client import DEPLOYMENT, POD
from support.cluster.waiting import eventually, gone
from support.node.asking import PATIENCE
from support.node.images import NEXT_RELEASE
from support.node.installation import TAG, upgrade
from support.node.load import load_on
from support.node.next_release import FIELD, OPTION
from support.node.pools import OWNED, SLOTS

NEXT = NEXT_RELEASE.removeprefix("fairpool:")


@pytest.fixture
async def upgradable(kubectl):
    """Two releases of both programs are on the node; the operator is the first again in the end."""
    yield
    await upgrade(kubectl)


async def evict(admin, pod):
    """Ask for a pod to be moved, as the draining of a node does."""
    metadata = {name: pod["metadata"][name] for name in ("name", "namespace")}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
    await admin.request("POST", path, eviction)


async def runs(pool, tag, *, option=False):
    """Wait until the gateway of this image is the only one, with that option of the next release or without."""

    def so(deployment):
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        return (container["image"], OPTION in container["args"]) == (f"fairpool:{tag}", option)

    await eventually(pool.admin, DEPLOYMENT, OWNED, pool.namespace, so, within=PATIENCE)
    await pool.available()
    (pod,) = await pool.gateways(lambda found: len(found) == 1)
    return pod


async def of_the_next_release(pool, kubectl, pod):
    """Whether the configuration has a field of the next release, and whether a gateway left out what that told it."""
    secret = await kubectl.json("secret", f"{OWNED}-config", "-n", pool.namespace)
    config = gzip.decompress(base64.b64decode(secret["data"]["config.json.gz"])).decode()
    log = await kubectl("logs", pod["metadata"]["name"], "-n", pool.namespace)
    left_out = ("left out, for this version does not know its value: --log-format", f"does not know it: {OPTION}")
    return FIELD in config, all(each in log for each in left_out)


class TestTheGatewaysPod:
    async def test_that_is_evicted_serves_until_another_does_and_nothing_is_lost(self, serving, admin, tell):
        (pod,) = await serving.gateways()
        async with load_on(await serving.url(), serving.keys.values()) as load:
            await load.answers(20)
            await evict(admin, pod)
            await gone(admin, POD, pod["metadata"]["name"], serving.namespace, within=PATIENCE)
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
    async def test_in_which_releases_meet_either_way_loses_nothing(self, serving, kubectl, upgradable, tell):
        """First the gateway alone is of the next release, then the operator too, then the operator alone."""
        async with load_on(await serving.url(), serving.keys.values()) as load:
            await load.answers(20)
            await upgrade(kubectl, gateway=NEXT)
            newer = await runs(serving, NEXT)
            assert await of_the_next_release(serving, kubectl, newer) == (False, False)
            await load.answers(40)
            await upgrade(kubectl, operator=NEXT, gateway=NEXT)
            both_newer = await runs(serving, NEXT, option=True)
            assert await of_the_next_release(serving, kubectl, both_newer) == (True, False)
            await load.answers(40)
            await upgrade(kubectl, operator=NEXT)
            older = await runs(serving, TAG, option=True)
            assert await of_the_next_release(serving, kubectl, older) == (True, True)
            await serving.apply(serving.tenant("search", 7))
            await serving.counts_by(search=7)
            await serving.ready()
            await load.answers(40)
        tell(f"releases mixed either way, the gateway replaced three times: {load.account}")
        assert load.account.lost == []
        assert not load.account.refused
