"""TLS on both sides: tenants know the gateway by its certificate, and the gateway its engines by theirs."""

import asyncio
import contextlib
import ssl
from dataclasses import replace

import httpx
import openai
import pytest
from support.certificates import NAME, Authority
from support.engine import running_engine
from support.files import WAYS, in_place
from support.gateway import running_gateway
from support.scripted_endpoint import PATIENCE, ScriptedEndpoint, until
from support.secured_gateway import HOST, handshake, of, pair, secured_gateway
from support.tenant import QUESTION, pool_over, request_bytes, tenant

from fairpool_gateway.app import certificate as certificate_module
from fairpool_gateway.app import listener


@contextlib.asynccontextmanager
async def trusting(gateway, context, name="a", **options):
    """The official client, which trusts as the context says."""
    async with (
        httpx.AsyncClient(verify=context, timeout=PATIENCE) as http,
        tenant(gateway, name, http_client=http, **options) as client,
    ):
        yield client


async def ask(client, **extra):
    return await client.chat.completions.create(**QUESTION, **extra)


class TestForTenants:
    async def test_the_official_client_with_a_ca_of_its_own_asks_and_streams(self, authority, volume):
        in_place(volume, pair(authority))
        async with (
            running_engine() as engine,
            secured_gateway(of(volume), engine.url) as gateway,
            trusting(gateway, authority.trusted()) as client,
        ):
            assert (await ask(client)).usage.completion_tokens == 3
            stream = await ask(client, stream=True)
            assert len([chunk async for chunk in stream if chunk.choices and chunk.choices[0].delta.content]) == 3
            assert [model.id async for model in client.models.list()] == ["sim"]
            assert (await gateway.admin("/readyz")).status_code == 200

    async def test_who_does_not_trust_the_authority_sends_nothing(self, authority, volume, tmp_path):
        in_place(volume, pair(authority))
        stranger = Authority(tmp_path, "stranger")
        async with (
            running_engine() as engine,
            secured_gateway(of(volume), engine.url) as gateway,
            trusting(gateway, stranger.trusted()) as client,
        ):
            with pytest.raises(openai.APIConnectionError):
                await ask(client)
            assert gateway.dispatcher.counts.arrived == 0

    async def test_only_http_1_1_over_tls_1_2_and_later_is_agreed_on(self, authority, volume):
        in_place(volume, pair(authority))
        async with secured_gateway(of(volume)) as gateway:
            for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                context = authority.trusted()
                context.minimum_version = context.maximum_version = version
                context.set_alpn_protocols(["h2", "http/1.1"])
                agreed, _ = await handshake(gateway, context)
                assert agreed.selected_alpn_protocol() == "http/1.1"
            context = authority.trusted()
            context.set_ciphers("ALL:@SECLEVEL=0")
            with pytest.warns(DeprecationWarning, match="TLSv1_1"):
                context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await handshake(gateway, context)

    async def test_a_connection_that_does_not_finish_its_handshake_is_closed(self, authority, volume, monkeypatch):
        monkeypatch.setattr(listener, "HEAD_SECONDS", 0.05)
        in_place(volume, pair(authority))
        async with secured_gateway(of(volume)) as gateway:
            reader, writer = await asyncio.open_connection(HOST, gateway.port)
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
            writer.close()

    async def test_plain_http_is_turned_away(self, authority, volume):
        in_place(volume, pair(authority))
        async with secured_gateway(of(volume)) as gateway:
            reader, writer = await asyncio.open_connection(HOST, gateway.port)
            writer.write(request_bytes())
            with contextlib.suppress(ConnectionError):
                assert b"HTTP" not in await asyncio.wait_for(reader.read(), PATIENCE)
            writer.close()

    async def test_who_leaves_frees_the_engine(self, authority, volume):
        in_place(volume, pair(authority))
        async with (
            running_engine() as engine,
            secured_gateway(of(volume), engine.url) as gateway,
            trusting(gateway, authority.trusted()) as client,
        ):
            task = asyncio.create_task(ask(client, extra_headers={"x-engine-fault": "hang-before"}))
            await until(lambda: gateway.in_flight == 1)
            task.cancel()
            await asyncio.wait([task])
            await until(lambda: gateway.in_flight == 0)

    async def test_an_answer_that_broke_does_not_look_whole(self, authority, volume):
        in_place(volume, pair(authority))
        async with (
            ScriptedEndpoint.listening() as endpoint,
            secured_gateway(of(volume), endpoint) as gateway,
            trusting(gateway, authority.trusted()) as client,
        ):
            task = asyncio.create_task(ask(client))
            peer = await endpoint.accept()
            await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{")
            peer.end()
            with pytest.raises(openai.APIConnectionError):
                await task


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(certificate_module, "READ_EVERY", 0.005)


@contextlib.asynccontextmanager
async def followed(certificate):
    """Its files are looked at as long as the block runs."""
    stop = asyncio.Event()
    task = asyncio.create_task(certificate.follow(stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, PATIENCE)


class TestANewCertificate:
    @pytest.mark.parametrize("put", WAYS.values(), ids=WAYS)
    async def test_is_in_force_for_new_connections_under_load_and_old_ones_go_on(self, tmp_path, volume, often, put):
        old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
        put(volume, pair(old))
        either = new.trust(old.trusted())
        async with (
            running_engine() as engine,
            secured_gateway(certificate := of(volume), engine.url, slots={"perEndpoint": 1000}) as gateway,
            followed(certificate),
            trusting(gateway, old.trusted()) as kept,
        ):
            answers, enough = [], asyncio.Event()

            async def send():
                while not enough.is_set():
                    async with trusting(gateway, either) as client:
                        answers.extend([(await ask(client)).usage.completion_tokens for _ in range(3)])

            load = [asyncio.create_task(send()) for _ in range(4)]
            await ask(kept)
            lasting = await kept.chat.completions.create(
                **{**QUESTION, "max_tokens": 2000}, stream=True, extra_body={"ignore_eos": True}
            )
            await anext(lasting)
            await until(lambda: len(answers) > 20)
            put(volume, pair(new))

            await until(lambda: certificate._current is not certificate.context)
            await handshake(gateway, new.trusted())
            with pytest.raises(ssl.SSLCertVerificationError):
                await handshake(gateway, old.trusted())
            before = len(answers)
            await until(lambda: len(answers) > before + 20)
            assert len([chunk async for chunk in lasting]) > 1000
            enough.set()
            await asyncio.gather(*load)
            assert set(answers) == {3}
            assert certificate.problem is None

    async def test_is_chosen_whether_or_not_the_client_names_whom_it_wants(self, tmp_path, volume):
        old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
        in_place(volume, pair(old, HOST, NAME))
        certificate = of(volume)
        async with secured_gateway(certificate) as gateway:
            in_place(volume, pair(new, HOST, NAME))
            certificate.look()
            certificate.look()
            for name in (HOST, NAME):  # an address is not sent
                await handshake(gateway, new.trusted(), name)

    async def test_counts_only_once_it_has_stayed(self, authority, volume):
        """Certificate and key are two files, and may be written one after the other."""
        in_place(volume, pair(authority))
        certificate = of(volume)
        new = pair(authority)
        in_place(volume, {"tls.crt": new["tls.crt"]})
        certificate.look()
        in_place(volume, new)
        certificate.look()
        assert certificate.problem is None
        certificate.look()
        async with secured_gateway(certificate) as gateway:
            _, shown = await handshake(gateway, authority.trusted())
            assert shown == ssl.PEM_cert_to_DER_cert(new["tls.crt"].decode())


class TestToEngines:
    """The engine is here another gateway, with a certificate for a name that no address has."""

    async def test_a_request_goes_through_and_so_it_does_once_a_renewed_authority_is_trusted(
        self, authority, volume, tmp_path
    ):
        in_place(volume, pair(authority, NAME))
        certificate = of(volume)
        tls = {"caFile": str(authority.file), "serverName": NAME}
        async with (
            running_engine() as engine,
            secured_gateway(certificate, engine.url, tenants=[]) as inner,
            running_gateway(pool_over(inner.url, endpointTls=tls)) as outer,
            tenant(outer) as client,
        ):
            assert (await ask(client)).usage.completion_tokens == 3
            renewed = Authority(tmp_path, "renewed")
            in_place(volume, pair(renewed, NAME))
            for _ in range(2):
                certificate.look()
            hangs = asyncio.create_task(ask(client, extra_headers={"x-engine-fault": "hang-before"}))
            await until(lambda: inner.in_flight == 1)
            with pytest.raises(openai.InternalServerError, match="put the authority that signed it there") as told:
                await ask(client)
            assert told.value.status_code == 502
            renewed.write(authority.file)
            assert (await ask(client)).usage.completion_tokens == 3
            hangs.cancel()
            await asyncio.wait([hangs])

    async def test_what_the_edit_of_a_pool_takes_out_never_gets_anything_in_the_clear(self, authority):
        tls = {"caFile": str(authority.file), "serverName": NAME}
        async with (
            ScriptedEndpoint.listening() as plain,
            running_gateway(pool_over(f"https://{plain.target}", endpointTls=tls)) as gateway,
        ):
            (endpoint,) = gateway.dispatcher.endpoints
            gateway.gateway.apply(pool_over(plain))
            assert gateway.gateway.target_of(endpoint.spec).tls is None
            assert gateway.gateway.target_of(replace(endpoint.spec, over_tls=True)).tls is not None
