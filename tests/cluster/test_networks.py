"""The bad networks and the lying server that other tests put between a program and the API server."""

import asyncio

import aiohttp
import pytest
from support.cluster.client import CONFIG_MAP, Refused, running_client
from support.cluster.lying_proxy import asking

WATCHES = asking("configmaps", "watch")


def config_map(namespace, name, **data):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.fixture
async def through(control_plane, network):
    """A client behind the network."""
    async with running_client(control_plane.access.via(network.url)) as client:
        yield client


@pytest.fixture
async def told(control_plane, liar):
    """A client that the liar tells."""
    async with running_client(control_plane.access.via(liar.url)) as client:
        yield client


async def silent(awaitable):
    """Whether nothing comes for a while; what is asked goes on."""
    task = asyncio.ensure_future(awaitable)
    return task, not (await asyncio.wait([task], timeout=0.3))[0]


class TestTheNetwork:
    async def test_what_it_stalled_arrives_when_it_resumes(self, through, network, admin, namespace):
        async with through.watch(CONFIG_MAP, namespace) as events:
            network.stall()
            await admin.create(config_map(namespace, "one"))
            event, was_silent = await silent(anext(events))
            assert was_silent
            network.resume()
            assert (await event)["object"]["metadata"]["name"] == "one"
        assert network.accepted == 1

    async def test_it_cuts_what_is_open_and_lets_new_connections_through(self, through, network, namespace):
        async with through.watch(CONFIG_MAP, namespace) as events:
            network.cut()
            with pytest.raises((aiohttp.ClientError, OSError)):
                await anext(events)
        assert await through.list(CONFIG_MAP, namespace) == []

    async def test_it_refuses_until_it_resumes(self, through, network, namespace):
        network.refuse()
        with pytest.raises((aiohttp.ClientError, OSError)):
            await through.list(CONFIG_MAP, namespace)
        network.resume()
        assert await through.list(CONFIG_MAP, namespace) == []

    async def test_it_can_be_slow(self, through, network, admin, namespace):
        await admin.create(config_map(namespace, "large", text="x" * 100_000))
        network.slow(bytes_per_second=200_000)
        reading, was_silent = await silent(through.get(CONFIG_MAP, "large", namespace))
        assert was_silent
        network.resume()
        assert len((await reading)["data"]["text"]) == 100_000


class TestTheLiar:
    async def test_it_tells_the_truth_until_told_to_lie(self, told, liar, namespace):
        made = await told.create(config_map(namespace, "one"))
        assert await told.get(CONFIG_MAP, "one", namespace) == made
        async with told.watch(CONFIG_MAP, namespace, made["metadata"]["resourceVersion"]) as events:
            await told.delete(CONFIG_MAP, "one", namespace)
            assert (await anext(events))["type"] == "DELETED"
        asked = [(each.verb, each.name) for each in liar.requests if each.resource == "configmaps"]
        assert asked == [("create", ""), ("get", "one"), ("watch", ""), ("delete", "one")]

    async def test_it_passes_refusals_on_as_they_are(self, told, namespace):
        with pytest.raises(Refused, match='configmaps "none" not found'):
            await told.get(CONFIG_MAP, "none", namespace)

    async def test_it_loses_events_of_a_watch_that_is_open(self, told, liar, admin, namespace):
        async with told.watch(CONFIG_MAP, namespace) as events:
            await admin.create(config_map(namespace, "one"))
            assert (await anext(events))["type"] == "ADDED"
            lie = liar.lose_type("configmaps", "DELETED")
            await admin.delete(CONFIG_MAP, "one", namespace)
            await admin.create(config_map(namespace, "two"))
            event = await anext(events)
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "two")
        assert lie.told == 1

    @pytest.mark.parametrize("status", [403, 410, 503])
    async def test_it_refuses_as_often_as_it_is_told(self, told, liar, namespace, status):
        lie = liar.refuse(asking("configmaps", "list"), status, times=1)
        with pytest.raises(Refused) as refused:
            await told.list(CONFIG_MAP, namespace)
        assert refused.value.status == status
        assert await told.list(CONFIG_MAP, namespace) == []
        assert lie.told == 1

    async def test_it_hangs_until_the_lie_ends(self, told, liar, namespace):
        lie = liar.hang(asking("configmaps", "list"))
        listing, was_silent = await silent(told.list(CONFIG_MAP, namespace))
        assert was_silent
        lie.end()
        assert await listing == []

    async def test_it_tells_an_open_watch_that_it_is_too_old(self, told, liar, admin, namespace):
        async with told.watch(CONFIG_MAP, namespace) as events:
            await admin.create(config_map(namespace, "one"))
            await anext(events)
            assert liar.watching(WATCHES) == liar.spoil_watches(WATCHES) == 1
            with pytest.raises(Refused) as refused:
                await anext(events)
        assert refused.value.status == 410

    async def test_it_breaks_off_when_the_server_does(self, told, network, namespace):
        async with told.watch(CONFIG_MAP, namespace) as events:
            network.cut()
            with pytest.raises((aiohttp.ClientError, OSError)):
                await anext(events)
        assert await told.list(CONFIG_MAP, namespace) == []
