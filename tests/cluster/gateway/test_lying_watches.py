"""What a mirror of a real server's pods holds when the way there loses events, denies, hangs or falls silent."""

import asyncio
import contextlib

import pytest
from support.cluster.lying_proxy import asking
from support.scripted_endpoint import PATIENCE, until

from fairpool_gateway.cluster import Mirror, Resource
from fairpool_gateway.cluster.client import connect
from fairpool_gateway.discovery import Pod

OFTEN = 0.5
"""Seconds for which a watch is believed here."""


class Seen:
    """The pods that are known at the moment, by name, and a way to wait for them."""

    def __init__(self, mirror):
        self.now = None
        self.mirror = mirror

    def __call__(self, pods):
        self.now = {name: pod.metadata.uid for name, pod in pods.items()}

    async def are(self, *names):
        async with asyncio.timeout(PATIENCE * 2):
            await until(lambda: self.now is not None and set(self.now) == set(names))


@pytest.fixture
def mirrored(account, namespace, tmp_path):
    """A mirror of the namespace's pods over a way to the server: `async with mirrored(liar.url) as seen`."""

    @contextlib.asynccontextmanager
    async def mirrored(url, relist_seconds=OFTEN):
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
        access = (await account("gateway", rules=rules)).via(url)
        cluster = await connect(access.write(tmp_path / "kubeconfig", namespace))
        cluster._seconds = 2.0
        pods = Resource(f"/api/v1/namespaces/{namespace}/pods", {"labelSelector": "app=vllm"}, Pod)
        seen = Seen(None)
        seen.mirror = Mirror(cluster.source(pods), "pods", seen, relist_seconds=relist_seconds)
        following = asyncio.create_task(seen.mirror.follow())
        try:
            yield seen
        finally:
            following.cancel()
            await asyncio.wait([following])
            await cluster.aclose()

    return mirrored


async def test_a_dead_pod_does_not_survive_though_no_watch_ever_tells_of_its_end(pods, liar, mirrored):
    for name in ("lives", "dies"):
        await pods.add(name)
    liar.lose_type("pods", "DELETED")
    async with mirrored(liar.url) as seen:
        await seen.are("lives", "dies")
        await pods.delete("dies")
        await seen.are("lives")


async def test_of_a_pod_that_was_made_anew_unseen_only_the_new_one_is_known(pods, liar, mirrored):
    await pods.add("vllm-0")
    async with mirrored(liar.url) as seen:
        await seen.are("vllm-0")
        before = seen.now["vllm-0"]
        liar.lose_type("pods", "DELETED", "ADDED", "MODIFIED")
        await pods.delete("vllm-0")
        await pods.add("vllm-0")
        async with asyncio.timeout(PATIENCE):
            await until(lambda: seen.now.get("vllm-0", before) != before)


async def test_a_watch_that_is_told_to_be_too_old_is_begun_anew_long_before_it_is_due(pods, liar, mirrored):
    await pods.add("old")
    async with mirrored(liar.url, relist_seconds=3600) as seen:
        await until(lambda: liar.watching(asking("pods", "watch")))
        lie = liar.lose_type("pods")
        await pods.add("new")
        assert liar.spoil_watches(asking("pods", "watch")) == 1
        lie.end()
        await seen.are("old", "new")
        assert seen.mirror.problem is None


@pytest.mark.parametrize("verb", ["list", "watch"])
@pytest.mark.parametrize("how", ["hangs", "forbidden", "expired"])
async def test_whatever_is_denied_once_is_had_the_next_time(pods, liar, mirrored, verb, how):
    await pods.add("a")
    match how:
        case "hangs":
            liar.hang(asking("pods", verb), times=1)
        case "forbidden":
            liar.refuse(asking("pods", verb), 403, times=2)
        case "expired":
            liar.refuse(asking("pods", verb), 410, times=2)
    async with mirrored(liar.url) as seen:
        await seen.are("a")
        await until(lambda: seen.mirror.problem is None)
        await pods.add("b")
        await seen.are("a", "b")


async def test_lists_that_never_come_to_their_end_are_a_problem_and_what_was_seen_stays(pods, liar, mirrored):
    await pods.add("a")
    async with mirrored(liar.url) as seen:
        await seen.are("a")
        lie = liar.refuse(asking("pods", "list"), 410)
        await pods.add("b")
        async with asyncio.timeout(PATIENCE * 2):
            await until(lambda: "its lists are too old before they end" in (seen.mirror.problem or ""))
        lie.end()
        await seen.are("a", "b")
        await until(lambda: seen.mirror.problem is None)


async def test_a_network_that_stalls_delays_what_is_known_and_no_more(pods, network, mirrored):
    await pods.add("a")
    async with mirrored(network.url) as seen:
        await seen.are("a")
        network.stall()
        await pods.add("b")
        await until(lambda: seen.mirror.problem)
        network.resume()
        await seen.are("a", "b")
