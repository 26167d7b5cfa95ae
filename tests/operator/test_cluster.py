"""The API as the operator uses it: nothing is written by a process that leads no more, at the moment of sending."""

from __future__ import annotations

import asyncio
import json

import pytest
from support.api_server import ApiServer, kubeconfig
from support.certificates import Authority
from support.cluster.tcp_proxy import tcp_proxy
from support.scripted_endpoint import PATIENCE, until

from fairpool_operator.cluster import SECRET, Cluster, connect
from fairpool_operator.errors import (
    ClusterError,
    ClusterUnavailable,
    Conflict,
    Forbidden,
    NotLeading,
    NotNow,
    NotThere,
    RejectedByServer,
)

WANTED = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "inference"}}
WRITES = {
    "PATCH": lambda cluster: cluster.apply(SECRET, WANTED),
    "PATCH of a status": lambda cluster: cluster.apply(SECRET, WANTED, status=True),
    "PATCH by merging": lambda cluster: cluster.merge(SECRET, WANTED),
    "POST": lambda cluster: cluster.create(SECRET, WANTED),
    "PUT": lambda cluster: cluster.replace(SECRET, WANTED),
    "DELETE": lambda cluster: cluster.delete(SECRET, "inference", "a", "uid"),
}


class Leadership:
    """Held until it is not."""

    held = True

    def guard(self):
        if not self.held:
            raise NotLeading("another leads")


@pytest.fixture
def leadership():
    return Leadership()


@pytest.fixture
async def server():
    async with ApiServer.serving() as server:
        yield server


@pytest.fixture
async def cluster(server, leadership, tmp_path):
    cluster = Cluster(await connect(kubeconfig(tmp_path, server.url), guard=leadership.guard), seconds=PATIENCE)
    yield cluster
    await cluster.aclose()


async def reads(cluster, server):
    """Read something; nothing else was asked of the server before."""
    reading = asyncio.create_task(cluster.get(SECRET, "inference", "a"))
    asked = await server.next()
    await asked.answer(200, WANTED)
    assert await reading == WANTED
    assert (asked.method, server.asked) == ("GET", 0)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
class TestAWrite:
    async def test_is_sent_while_this_process_leads(self, cluster, server, write):
        writing = asyncio.create_task(write(cluster))
        asked = await server.next()
        await asked.answer(200, WANTED)
        await writing
        assert asked.method != "GET"

    async def test_is_not_sent_over_a_new_connection_once_it_does_not(self, cluster, server, leadership, write):
        leadership.held = False
        with pytest.raises(NotLeading):
            await write(cluster)
        await reads(cluster, server)

    async def test_is_not_sent_over_a_connection_that_was_had_already(self, cluster, server, leadership, write):
        await reads(cluster, server)
        leadership.held = False
        with pytest.raises(NotLeading):
            await write(cluster)
        await reads(cluster, server)

    async def test_is_not_sent_if_leadership_ends_while_the_connection_is_being_made(self, leadership, tmp_path, write):
        authority = Authority(tmp_path)
        async with ApiServer.serving(authority.serving("127.0.0.1")) as server, tcp_proxy(server.url) as network:
            file = kubeconfig(tmp_path, network.url, authority.pem)
            cluster = Cluster(await connect(file, guard=leadership.guard), seconds=PATIENCE)
            network.stall()
            writing = asyncio.create_task(write(cluster))
            await until(lambda: network.accepted)
            leadership.held = False
            network.resume()
            with pytest.raises(NotLeading):
                await writing
            await reads(cluster, server)
            await cluster.aclose()

    async def test_is_not_sent_if_leadership_ends_while_it_waits_for_a_connection(
        self, cluster, server, leadership, write
    ):
        cluster._client.rest_client.maxsize = 1
        reading = asyncio.create_task(cluster.get(SECRET, "inference", "a"))
        asked = await server.next()
        writing = asyncio.create_task(write(cluster))
        await until(lambda: cluster.writes)
        leadership.held = False
        await asked.answer(200, WANTED)
        await reading
        with pytest.raises(NotLeading):
            await writing
        await reads(cluster, server)


@pytest.mark.parametrize("status", [False, True], ids=["an object", "a status"])
async def test_what_is_applied_is_taken_back_from_whoever_took_it_over(cluster, server, status):
    applying = asyncio.create_task(cluster.apply(SECRET, WANTED, status=status))
    asked = await server.next()
    await asked.answer(200, WANTED)
    await applying
    assert asked.query.items() >= {"fieldManager": "fairpool-operator", "force": "true"}.items()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_the_server_is_given_less_time_than_its_answer_is_waited_for(cluster, server, write):
    writing = asyncio.create_task(write(cluster))
    asked = await server.next()
    await asked.answer(200, WANTED)
    await writing
    assert 0 < float(asked.query["timeout"].removesuffix("s")) < PATIENCE


@pytest.mark.parametrize("answer", [200, 404, 409], ids=["it is there", "it is gone", "another is there"])
async def test_what_is_removed_is_the_object_of_that_uid_and_no_other_of_its_name(cluster, server, answer):
    removing = asyncio.create_task(cluster.delete(SECRET, "inference", "a", "the-first"))
    asked = await server.next()
    assert json.loads(asked.body)["preconditions"] == {"uid": "the-first"}
    await asked.refuse(answer, "so it is")
    await removing


ONCE = [name for name in WRITES if name.startswith(("PATCH", "POST"))]
"""The others aiohttp sends again by itself when a connection breaks off."""


@pytest.mark.parametrize("write", [WRITES[name] for name in ONCE], ids=ONCE)
@pytest.mark.parametrize(("after", "error"), [(0.0, ClusterUnavailable), (0.8, NotNow)], ids=["at once", "in the end"])
async def test_a_connection_that_is_broken_off_as_the_servers_time_ends_is_an_answer(
    server, tmp_path, write, after, error
):
    cluster = Cluster(await connect(kubeconfig(tmp_path, server.url)), seconds=1.0)
    writing = asyncio.create_task(write(cluster))
    asked = await server.next()
    now = asyncio.get_running_loop().time
    due = now() + after
    await until(lambda: now() >= due)
    asked.peer.end()
    with pytest.raises(error) as told:
        await writing
    assert type(told.value) is error
    await cluster.aclose()


async def test_a_removal_that_is_broken_off_twice_is_an_answer_too(server, tmp_path):
    cluster = Cluster(await connect(kubeconfig(tmp_path, server.url)), seconds=2.0)
    removing = asyncio.create_task(cluster.delete(SECRET, "inference", "a", "uid"))
    now = asyncio.get_running_loop().time
    for _ in range(2):
        asked = await server.next()
        due = now() + float(asked.query["timeout"].removesuffix("s"))
        await until(lambda due=due: now() >= due)
        asked.peer.end()
    with pytest.raises(NotNow):
        await removing
    await cluster.aclose()


FAILURE = {"kind": "Status", "status": "Failure"}
POLICY = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: not today"
DENIAL = {**FAILURE, "message": 'admission webhook "a.example.com" denied the request: not today'}


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    [
        (500, {**FAILURE, "message": 'failed calling webhook "a.example.com"'}, NotNow),
        (504, {"status": "Failure", "message": "Timeout: request did not complete"}, NotNow),
        (500, {**FAILURE, "message": "etcdserver: request timed out"}, ClusterUnavailable),
        (503, {**FAILURE, "message": "apiserver is shutting down"}, ClusterUnavailable),
        (429, {**FAILURE, "message": "too many requests"}, ClusterUnavailable),
        (429, b"Too many requests, please try again later.", ClusterUnavailable),
        (500, {**FAILURE, "message": "rpc error: code = Unavailable"}, ClusterUnavailable),
        (401, {**FAILURE, "message": f'secrets "a" is forbidden: {POLICY}'}, RejectedByServer),
        (503, DENIAL, NotNow),
        (429, DENIAL, NotNow),
        (409, DENIAL, RejectedByServer),
        (404, DENIAL, RejectedByServer),
        (403, DENIAL, Forbidden),
        (409, {**FAILURE, "message": "the object has been modified"}, Conflict),
        (404, {**FAILURE, "message": "not found"}, NotThere),
        (502, b"<html>Bad Gateway</html>", ClusterUnavailable),
        (401, {**FAILURE, "message": "Unauthorized"}, ClusterUnavailable),
        (403, {**FAILURE, "message": "forbidden"}, Forbidden),
        (422, {**FAILURE, "message": "invalid"}, RejectedByServer),
    ],
)
async def test_an_answer_is_about_what_was_sent_or_about_the_server(cluster, server, status, answer, error):
    applying = asyncio.create_task(cluster.apply(SECRET, WANTED))
    await (await server.next()).answer(status, answer)
    with pytest.raises(ClusterError) as told:
        await applying
    assert type(told.value) is error


async def test_a_process_that_leads_again_writes_again(cluster, server, leadership):
    leadership.held = False
    for write in WRITES.values():
        with pytest.raises(NotLeading):
            await write(cluster)
    leadership.held = True
    for write in WRITES.values():
        writing = asyncio.create_task(write(cluster))
        await (await server.next()).answer(200, WANTED)
        await writing
