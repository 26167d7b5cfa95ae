"""What the gateway makes of an API server that is slow, silent, or wrong."""

import asyncio
import contextlib

import pytest
from support.api_server import ApiServer
from support.fake_time import on_fake_time
from support.pods import pod_document
from support.scripted_endpoint import until

from fairpool_gateway.cluster import Change, Mirror, Resource
from fairpool_gateway.cluster.client import ClusterSource, connect
from fairpool_gateway.discovery import Pod
from fairpool_gateway.errors import CannotStart, ClusterError, ClusterExpired

PODS = Resource("/api/v1/namespaces/inference/pods", {"labelSelector": "app in (a,b)"}, Pod)


@pytest.fixture
async def api(tmp_path):
    async with ApiServer.listening(tmp_path) as both:
        yield both


@pytest.fixture
async def server(api):
    return api[0]


@pytest.fixture
async def source(api):
    return api[1].source(PODS)


async def answered(work, answer):
    """Have a request answered, and return what came of it."""
    task = asyncio.create_task(work)
    await answer
    return await task


class TestAList:
    async def test_is_asked_for_with_the_selector_and_the_token_and_from_no_cache(self, server, source):
        task = asyncio.create_task(source.list())
        asked = await server.next()
        assert (asked.method, asked.path) == ("GET", PODS.path)
        assert asked.query == {"labelSelector": "app in (a,b)", "limit": "200"}
        assert "authorization: bearer a-secret-token\r\n" in asked.head.lower()
        await asked.list(pod_document("a"), version="7")
        listed, version = await task
        assert ([each.metadata.name for each in listed], version) == (["a"], "7")

    async def test_goes_on_page_by_page(self, server, source):
        task = asyncio.create_task(source.list())
        await (await server.next()).list(pod_document("a"), more="token")
        second = await server.next()
        assert second.query["continue"] == "token"
        await second.list(pod_document("b"), version="9")
        listed, version = await task
        assert ([each.metadata.name for each in listed], version) == (["a", "b"], "9")

    async def test_may_be_empty_in_any_form(self, server, source):
        task = asyncio.create_task(source.list())
        await (await server.next()).answer(200, {"metadata": {"resourceVersion": "1"}, "items": None})
        assert await task == ([], "1")

    async def test_that_expires_between_its_pages_is_said_to(self, server, source):
        task = asyncio.create_task(source.list())
        await (await server.next()).list(pod_document("a"), more="token")
        await (await server.next()).refuse(410, "The provided continue parameter is too old")
        with pytest.raises(ClusterExpired):
            await task

    @pytest.mark.parametrize(
        ("status", "document", "said"),
        [
            (403, {"kind": "Status", "message": "pods is forbidden"}, r"refuses it \(403\): pods is forbidden"),
            (401, {"message": "Unauthorized"}, r"refuses it \(401\): Unauthorized"),
            (500, b"oops", r"refuses it \(500\): it answers 500"),
            (200, b"<html>", "answers with something else than it should"),
            (200, {"metadata": {}, "items": [{"metadata": {"name": 5}}]}, "answers with something else than it should"),
        ],
    )
    async def test_that_is_refused_or_nonsense_is_an_error_that_says_so(self, server, source, status, document, said):
        task = asyncio.create_task(source.list())
        await (await server.next()).answer(status, document)
        with pytest.raises(ClusterError, match=said) as failed:
            await task
        assert "a-secret-token" not in str(failed.value)

    @pytest.mark.parametrize("begun", [False, True])
    async def test_that_never_comes_or_never_ends_has_its_time(self, tmp_path, begun):
        async with ApiServer.listening(tmp_path, seconds=0.1) as (server, cluster):
            task = asyncio.create_task(cluster.source(PODS).list())
            asked = await server.next()
            if begun:
                await asked.peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            with pytest.raises(ClusterError, match="cannot be reached"):
                await task


async def watching(source, seconds=60.0):
    return [change async for change in source.watch("5", seconds)]


class Falling:
    """A cluster whose watch brings these pieces, one every ten seconds, and falls silent."""

    def __init__(self, pieces):
        self.content = self
        self._pieces = iter(pieces)

    @contextlib.asynccontextmanager
    async def answer(self, *_):
        yield self

    async def readany(self):
        for piece in self._pieces:
            await asyncio.sleep(10.0)
            return piece
        return await asyncio.Event().wait()


class TestAWatch:
    async def test_is_asked_for_from_a_version_on_and_with_an_end(self, server, source):
        task = asyncio.create_task(watching(source, 12.4))
        asked = await server.next()
        assert asked.query == {
            **PODS.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": "5",
            "timeoutSeconds": "12",
        }
        await asked.open()
        await asked.end()
        assert await task == [None]

    async def test_tells_each_change_in_whatever_pieces_it_comes(self, server, source):
        task = asyncio.create_task(watching(source))
        asked = await server.next()
        await asked.open()
        await asked.tell("ADDED", pod_document("a"))
        await asked.tell("BOOKMARK", {"metadata": {"resourceVersion": "9"}})
        await asked.say(b'{"type": "DELETED", "object": {"metadata": {"na')
        await asked.say(b'me": "a"}}}\n\n')
        await asked.end()
        opened, added, deleted = await task
        assert opened is None
        assert (added.object.metadata.name, added.gone) == ("a", False)
        assert (deleted.object.metadata.name, deleted.gone) == ("a", True)
        assert isinstance(added, Change)

    @pytest.mark.parametrize(("code", "error"), [(410, ClusterExpired), (500, ClusterError)])
    async def test_that_the_server_gives_up_ends_with_that_error(self, server, source, code, error):
        task = asyncio.create_task(watching(source))
        asked = await server.next()
        await asked.open()
        await asked.tell("ERROR", {"kind": "Status", "code": code, "message": "too old resource version"})
        with pytest.raises(error):
            await task

    async def test_that_is_cut_is_an_error(self, server, source):
        task = asyncio.create_task(watching(source))
        asked = await server.next()
        await asked.open()
        asked.peer.reset()
        with pytest.raises(ClusterError):
            await task

    async def test_that_is_nonsense_is_an_error(self, server, source):
        task = asyncio.create_task(watching(source))
        asked = await server.next()
        await asked.open()
        await asked.say(b"Internal error\n")
        with pytest.raises(ClusterError, match="something else than it should"):
            await task

    async def test_that_falls_silent_ends_when_it_is_due(self, server, source, monkeypatch):
        monkeypatch.setattr("fairpool_gateway.cluster.client._GRACE", 0.0)
        task = asyncio.create_task(watching(source, 0.05))
        await (await server.next()).open()
        assert await task == [None]

    @pytest.mark.parametrize("told", [[], [b'{"type": "BOOKMARK", "object": {}}\n', b"  "]], ids=["at once", "later"])
    def test_whose_server_falls_silent_ends_a_second_after_it_is_due(self, told):
        async def main():
            changes = [change async for change in ClusterSource(Falling(told), PODS).watch("5", 30.0)]
            return changes, asyncio.get_running_loop().time()

        assert on_fake_time(main()) == ([None], pytest.approx(31.0))

    async def test_that_is_never_agreed_to_has_its_time(self, tmp_path):
        async with ApiServer.listening(tmp_path, seconds=0.1) as (server, cluster):
            task = asyncio.create_task(watching(cluster.source(PODS)))
            await server.next()
            with pytest.raises(ClusterError, match="cannot be reached"):
                await task


class TestAMirrorOfIt:
    async def test_forgets_a_pod_whose_end_the_watch_swallowed(self, server, source, monkeypatch):
        monkeypatch.setattr("fairpool_gateway.cluster.client._GRACE", 0.0)
        told = []
        mirror = Mirror(source, "pods", lambda pods: told.append(set(pods)), relist_seconds=0.05)
        task = asyncio.create_task(mirror.follow())
        await (await server.next()).list(pod_document("lives"), pod_document("dies"))
        await (await server.next()).open()
        await (await server.next()).list(pod_document("lives"))
        await until(lambda: told == [{"lives", "dies"}, {"lives"}])
        task.cancel()
        await asyncio.wait([task])

    async def test_goes_on_by_lists_where_watches_are_forbidden(self, server, source):
        told = []
        mirror = Mirror(source, "pods", lambda pods: told.append(set(pods)))
        task = asyncio.create_task(mirror.follow())
        for names in (["a"], ["a", "b"]):
            await (await server.next()).list(*map(pod_document, names))
            await (await server.next()).refuse(403, "may not watch")
        await until(lambda: told == [{"a"}, {"a", "b"}])
        assert "may not watch" in mirror.problem
        task.cancel()
        await asyncio.wait([task])


class TestCredentials:
    async def test_that_are_not_there_are_said_so(self, tmp_path, monkeypatch):
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        with pytest.raises(CannotStart, match="this is no pod, and no --kubeconfig is given"):
            await connect(None)

    @pytest.mark.parametrize("content", ["", "{", "clusters: []", "[1]"])
    async def test_in_a_file_that_cannot_be_used_are_said_so(self, tmp_path, content):
        file = tmp_path / "kubeconfig"
        file.write_text(content)
        with pytest.raises(CannotStart, match="cannot be used"):
            await connect(file)
