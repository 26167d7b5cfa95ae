"""Endpoints are asked how they are, each by itself, and what they say decides whether they get work."""

import asyncio
import logging

import pytest
from support.certificates import NAME, Authority
from support.config import pool_config
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, refusing_port, until
from support.tenant import pool_over, tenant

from fairpool_gateway.broker import Broker
from fairpool_gateway.config import ProbeSettings
from fairpool_gateway.dispatcher import Dispatcher
from fairpool_gateway.endpoints import EndpointSpec
from fairpool_gateway.health import Standing
from fairpool_gateway.probes import Prober
from fairpool_gateway.upstream import Client, Tls

OFTEN = ProbeSettings(interval="10ms", timeout="5s")
ONCE = ProbeSettings(interval="1h", timeout="5s")


def spec_of(target, name="e", **fields):
    return EndpointSpec(f"{name}@{target}", target.host, target.port, 1, **fields)


ELSEWHERE = EndpointSpec("elsewhere", "127.0.0.1", 1, 1, draining=True)
"""Not asked, and of no use."""


class Asking:
    """A prober at work, and the endpoints that it asks."""

    def __init__(self):
        self.broker = Broker(Dispatcher(pool_config()))
        self.client = Client()
        self.credential = None
        self.prober = Prober(self.broker, self.client, lambda: self.credential)

    def follow(self, settings, *specs, tls=None):
        self.broker.replace_endpoints(specs)
        self.prober.follow(settings, tls)
        return list(self.broker.dispatcher.endpoints)


@pytest.fixture
async def asking():
    asking = Asking()
    yield asking
    await asking.prober.aclose()
    asking.broker.close()
    await asking.client.aclose()


@pytest.fixture
async def endpoint():
    async with ScriptedEndpoint.listening() as endpoint:
        yield endpoint


@pytest.fixture
async def well():
    """An engine that is well."""
    async with running_engine() as engine:
        yield EndpointSpec("well", "127.0.0.1", engine.port, 1)


async def say(peer, status):
    asked = await peer.request()
    await peer.send(b"HTTP/1.1 %d Whatever\r\nContent-Length: 0\r\n\r\n" % status)
    return asked


async def saying(endpoint, *statuses):
    """Answer questions in turn."""
    peer = await endpoint.accept()
    for status in statuses:
        await say(peer, status)
    return peer


class TestTheQuestion:
    async def test_is_put_at_once_and_then_at_intervals_over_one_connection(self, asking, endpoint):
        asking.follow(OFTEN, spec_of(endpoint.target))
        peer = await endpoint.accept()
        for _ in range(3):
            head, body = await peer.request()
            assert head.startswith(b"GET /health HTTP/1.1\r\n")
            assert f"host: {endpoint.target}\r\n".encode() in head.lower()
            assert not body
            await peer.answer(b"")
        assert endpoint.accepted == 1

    async def test_has_the_path_that_is_configured(self, asking, endpoint):
        asking.follow(ProbeSettings(path="/ping?deep=1"), spec_of(endpoint.target))
        head, _ = await (await endpoint.accept()).request()
        assert head.startswith(b"GET /ping?deep=1 HTTP/1.1\r\n")

    async def test_holds_the_credential_that_endpoints_ask_for_then_and_no_other(self, asking, endpoint):
        asking.follow(OFTEN, spec_of(endpoint.target))
        peer = await endpoint.accept()
        for credential, sent in ((None, False), (b"one", True), (b"two", True)):
            asking.credential = credential
            # The question before may have been on its way already.
            for head in [(await say(peer, 200))[0], (await say(peer, 200))[0]][1:]:
                assert (b"\r\nauthorization: bearer " in head.lower()) == sent
                assert not sent or b"Bearer %b\r\n" % credential in head

    async def test_goes_over_tls_to_the_name_that_is_proved(self, asking, tmp_path):
        authority = Authority(tmp_path)
        tls = Tls(str(authority.file), NAME)
        async with ScriptedEndpoint.listening(authority.serving(), tls) as endpoint:
            asking.follow(ONCE, spec_of(endpoint.target, over_tls=True), tls=tls)
            head, _ = await (await endpoint.accept()).request()
            assert f"host: {NAME}:{endpoint.target.port}\r\n".encode() in head.lower()

    async def test_is_not_put_to_one_that_drains(self, asking, endpoint):
        async with ScriptedEndpoint.listening() as asked:
            asking.follow(OFTEN, spec_of(endpoint.target, draining=True), spec_of(asked.target))
            await saying(asked, 200, 200, 200)
            assert endpoint.accepted == 0

    async def test_ends_with_the_head_of_an_endless_answer(self, asking, endpoint, well):
        (sick, _) = asking.follow(ONCE, spec_of(endpoint.target), well)
        peer = await endpoint.accept()
        await peer.request()
        await peer.send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 1000000000\r\n\r\nbecause")
        await peer.gone()
        assert sick.is_out


class TestTheAnswer:
    @pytest.mark.parametrize("status", [200, 204, 302, 401, 404, 405, 500])
    async def test_whatever_it_is_shows_that_an_endpoint_is_alive(self, asking, endpoint, well, status):
        (asked, _) = asking.follow(OFTEN, spec_of(endpoint.target), well)
        await saying(endpoint, status, status)
        assert not asked.is_out

    @pytest.mark.parametrize("status", [502, 503, 504])
    async def test_that_it_is_out_of_order_takes_it_out(self, asking, endpoint, well, status, caplog):
        (sick, _) = asking.follow(OFTEN, spec_of(endpoint.target), well)
        await saying(endpoint, status, status)
        assert sick.is_out
        assert caplog.messages == [f"endpoint {sick.spec.id} fails its probe: it answers {status}"]

    async def test_once_an_engine_has_loaded_it_is_tried_at_once(self, asking, endpoint, well, caplog):
        caplog.set_level(logging.INFO, "fairpool_gateway")
        (loading, _) = asking.follow(OFTEN, spec_of(endpoint.target), well)
        peer = await saying(endpoint, 503, 503)
        assert loading.is_out
        await say(peer, 200)
        await until(lambda: loading.health.standing is Standing.ON_TRIAL)
        await say(peer, 200)
        assert caplog.messages[-1] == f"endpoint {loading.spec.id} answers its probe again"
        assert len(caplog.messages) == 2

    async def test_that_does_not_come_takes_nobody_out(self, asking, endpoint, well, caplog):
        settings = ProbeSettings(interval="10ms", timeout="20ms")
        (slow, _) = asking.follow(settings, spec_of(endpoint.target), well)
        for _ in range(3):
            await (await endpoint.accept()).gone()
        assert not slow.is_out
        assert caplog.messages == [f"endpoint {slow.spec.id} fails its probe: no answer within 0.02 s"]

    async def test_that_breaks_off_takes_it_out(self, asking, endpoint, well):
        (sick, _) = asking.follow(ONCE, spec_of(endpoint.target), well)
        peer = await endpoint.accept()
        await peer.request()
        peer.reset()
        await until(lambda: sick.is_out)

    async def test_that_nobody_gives_takes_it_out(self, asking, well, caplog):
        (sick, _) = asking.follow(ONCE, spec_of(refusing_port()), well)
        await until(lambda: sick.is_out)
        assert "no connection to" in caplog.messages[0]

    async def test_of_another_than_it_should_be_takes_it_out_and_is_told_with_what_to_do(
        self, asking, well, tmp_path, caplog
    ):
        authority, tls = Authority(tmp_path), Tls(str(tmp_path / "ca.pem"), "another.local")
        async with ScriptedEndpoint.listening(authority.serving(), tls) as endpoint:
            (sick, _) = asking.follow(ONCE, spec_of(endpoint.target, over_tls=True), well, tls=tls)
            await until(lambda: sick.is_out)
        assert "is not for another.local: set endpointTls.serverName to a name that it is for" in caplog.messages[0]

    async def test_never_takes_the_last_one_out(self, asking, endpoint):
        (only,) = asking.follow(OFTEN, spec_of(endpoint.target))
        await saying(endpoint, 503, 503, 503)
        assert not only.is_out


class TestEachByItself:
    async def test_one_that_is_silent_delays_no_other_and_is_not_asked_again_meanwhile(self, asking, endpoint):
        async with ScriptedEndpoint.listening() as quick:
            asking.follow(OFTEN, spec_of(endpoint.target), spec_of(quick.target))
            silent = await endpoint.accept()
            await silent.request()
            await saying(quick, *[200] * 5)
            assert endpoint.accepted == 1


class TestWhoIsAsked:
    async def test_changes_with_the_endpoints(self, asking, endpoint):
        async with ScriptedEndpoint.listening() as later:
            asking.follow(OFTEN, spec_of(endpoint.target))
            peer = await saying(endpoint, 200)
            await peer.request()
            asking.follow(OFTEN, spec_of(later.target))
            await peer.gone()
            await saying(later, 200, 200)
            assert endpoint.accepted == 1

    async def test_stays_the_same_task_for_one_that_stays(self, asking, endpoint):
        asking.follow(OFTEN, spec_of(endpoint.target))
        peer = await endpoint.accept()
        await peer.request()
        asking.follow(OFTEN, spec_of(endpoint.target), ELSEWHERE)
        await peer.answer(b"")
        await say(peer, 200)
        assert endpoint.accepted == 1

    async def test_is_asked_in_another_way_as_soon_as_it_is_configured(self, asking, endpoint):
        asking.follow(ONCE, spec_of(endpoint.target))
        peer = await endpoint.accept()
        await peer.request()
        await peer.answer(headers=b"Connection: close\r\n")
        asking.follow(ProbeSettings(path="/ping"), spec_of(endpoint.target))
        head, _ = await (await endpoint.accept()).request()
        assert head.startswith(b"GET /ping ")

    async def test_is_nobody_any_more_once_closed(self, asking, endpoint):
        asking.follow(OFTEN, spec_of(endpoint.target))
        peer = await endpoint.accept()
        await peer.request()
        await asking.prober.aclose()
        await peer.gone()
        assert len(asyncio.all_tasks()) == 1


class TestInAGateway:
    async def test_an_engine_that_dies_unseen_is_out_before_a_request_finds_it(self):
        async with running_engine() as dying, running_engine() as engine:
            config = pool_over(dying.url, engine.url, probe={"interval": "20ms"})
            async with running_gateway(config) as gateway, tenant(gateway) as client:
                gateway.gateway.probe_endpoints()
                await dying.stop()
                sick, _ = gateway.dispatcher.endpoints
                await until(lambda: sick.is_out)
                for _ in range(3):
                    await client.chat.completions.create(
                        model="sim", messages=[{"role": "user", "content": "hi"}], max_tokens=2
                    )
                assert gateway.dispatcher.counts.retried == 0

    async def test_endpoints_of_an_edit_are_asked_too(self):
        nobody = f"http://{refusing_port()}"
        async with running_engine() as engine, running_gateway(pool_over(engine.url)) as gateway:
            gateway.gateway.probe_endpoints()
            gateway.gateway.apply(pool_over(engine.url, nobody))
            _, sick = gateway.dispatcher.endpoints
            await until(lambda: sick.is_out)
