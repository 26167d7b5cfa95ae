"""Endpoints are asked which models they serve, and what they answer decides which are served and by whom."""

import json
import logging

import pytest
from support.config import pool_config
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, refusing_port, until
from support.tenant import pool_over, tenant

from fairpool_gateway.broker import Broker
from fairpool_gateway.config import ProbeSettings
from fairpool_gateway.dispatcher import Dispatcher
from fairpool_gateway.endpoints import EndpointSpec
from fairpool_gateway.listings import Lister
from fairpool_gateway.upstream import Client

OFTEN = ProbeSettings(interval="10ms", timeout="5s")


class Noting(Lister):
    """Notes how long it will pause after each question."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.pauses = []

    async def _ask(self, question):
        self.pauses.append(pause := await super()._ask(question))
        return pause


class Asking:
    """A lister at work, and the endpoint that it asks."""

    def __init__(self, *models):
        self.broker = Broker(Dispatcher(pool_config(models=list(models))))
        self.client = Client()
        self.lister = Noting(self.broker, self.client, lambda: b"engine-key")

    def follow(self, target, settings=OFTEN):
        self.broker.replace_endpoints([EndpointSpec(f"e@{target}", target.host, target.port, 1)])
        self.lister.follow(settings, None)
        return next(iter(self.broker.dispatcher.endpoints))


@pytest.fixture
async def asking():
    """For a pool that lists the model `a`."""
    async for asking in listing("a"):
        yield asking


@pytest.fixture
async def open_asking():
    """For a pool that lists none."""
    async for asking in listing():
        yield asking


async def listing(*models):
    asking = Asking(*models)
    yield asking
    await asking.lister.aclose()
    asking.broker.close()
    await asking.client.aclose()


@pytest.fixture
async def endpoint():
    async with ScriptedEndpoint.listening() as endpoint:
        yield endpoint


def body_of(*names):
    return json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode()


async def say(peer, status, body=b""):
    """Answer the next question; the connection stays."""
    head, _ = await peer.request()
    await peer.send(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
    return head


class TestTheQuestion:
    async def test_is_put_with_the_credential_and_the_path_that_engines_have(self, asking, endpoint):
        asking.follow(endpoint.target)
        head = await say(await endpoint.accept(), 200, body_of("a"))
        assert head.startswith(b"GET /v1/models HTTP/1.1\r\n")
        assert b"authorization: bearer engine-key\r\n" in head.lower()

    async def test_is_put_again_until_it_is_answered_well_and_seldom_then(self, asking, endpoint):
        asked = asking.follow(endpoint.target)
        peer = await endpoint.accept()
        await say(peer, 500)
        await say(peer, 200, body_of("b"))
        await until(lambda: asked.wanting == "serves b, not a")
        await say(peer, 200, body_of("a", "b"))
        await until(lambda: asked.wanting is None)
        assert asking.lister.pauses == [0.01, 0.01, 30.0]


class TestTheAnswer:
    async def test_that_the_models_are_not_there_takes_its_slots_and_is_told_once(self, asking, endpoint, caplog):
        caplog.set_level(logging.INFO, "fairpool_gateway")
        asked = asking.follow(endpoint.target)
        peer = await endpoint.accept()
        for body in (body_of("b"), body_of("b"), body_of("a")):
            await say(peer, 200, body)
        await until(lambda: not asked.is_out)
        assert caplog.messages == [
            f"endpoint {asked.spec.id} gets no slot: it serves b, not a",
            f"endpoint {asked.spec.id} serves the pool's models now",
        ]

    @pytest.mark.parametrize(
        ("status", "body"), [(404, b""), (405, b""), (200, b"pong"), (500, b""), (401, b""), (503, b"")]
    )
    async def test_that_is_no_list_takes_no_slot_where_the_pool_lists_its_models(self, asking, endpoint, status, body):
        asked = asking.follow(endpoint.target)
        await say(await endpoint.accept(), status, body)
        await until(lambda: asked.asked)
        assert not asked.is_out

    @pytest.mark.parametrize(("status", "body"), [(404, b""), (200, b"pong"), (500, b"")])
    async def test_that_is_no_list_takes_all_where_the_pool_lists_none(self, open_asking, endpoint, status, body):
        asked = open_asking.follow(endpoint.target)
        peer = await endpoint.accept()
        await say(peer, status, body)
        await until(lambda: asked.asked)
        assert asked.is_out
        open_asking.lister.follow(ProbeSettings(interval="9ms"), None)
        await say(await endpoint.accept(), 200, body_of("a"))
        await until(lambda: not asked.is_out)
        assert open_asking.broker.dispatcher.models == ("a",)

    @pytest.mark.parametrize("status", [401, 429, 500, 503])
    async def test_that_it_cannot_tell_now_leaves_what_it_said_before(self, open_asking, endpoint, status):
        asked = open_asking.follow(endpoint.target)
        await say(await endpoint.accept(), 200, body_of("a"))
        await until(lambda: asked.models)
        open_asking.lister.follow(ProbeSettings(interval="9ms"), None)
        peer = await endpoint.accept()
        await say(peer, status)
        await peer.request()
        assert asked.models == {"a"}

    async def test_that_never_comes_leaves_the_slots_of_one_whose_pool_lists_its_models(self, asking):
        asked = asking.follow(refusing_port())
        await until(lambda: asked.asked)
        assert not asked.is_out

    async def test_that_never_ends_is_not_read_to_its_end(self, asking, endpoint):
        asked = asking.follow(endpoint.target)
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n" + b"x" * (5 << 20))
        await peer.gone()
        await until(lambda: asked.asked)
        assert asked.models is None


class TestInAGateway:
    async def test_a_pool_that_lists_no_models_serves_what_its_engines_do(self):
        async with running_engine("a", "b") as one, running_engine("b", "c") as other:
            config = pool_over(one.url, other.url, models=[], probe={"interval": "20ms"})
            async with running_gateway(config) as gateway, tenant(gateway) as client:
                assert [model.id async for model in client.models.list()] == []
                gateway.gateway.probe_endpoints()
                await until(lambda: gateway.gateway.models == ("b",))
                assert [model.id async for model in client.models.list()] == ["b"]
                answer = await client.chat.completions.create(
                    model="b", messages=[{"role": "user", "content": "hi"}], max_tokens=2
                )
                assert answer.model == "b"

    async def test_an_engine_of_another_model_gets_nothing(self):
        async with running_engine("sim") as right, running_engine("other") as wrong:
            config = pool_over(right.url, wrong.url, probe={"interval": "20ms"})
            async with running_gateway(config) as gateway, tenant(gateway) as client:
                gateway.gateway.probe_endpoints()
                _, odd = gateway.dispatcher.endpoints
                await until(lambda: odd.is_out)
                for _ in range(4):
                    await client.chat.completions.create(
                        model="sim", messages=[{"role": "user", "content": "hi"}], max_tokens=2
                    )
                view = (await gateway.admin("/debug/pool")).json()["endpoints"]
                assert [each["wanting"] for each in view] == [None, "serves other, not sim"]
