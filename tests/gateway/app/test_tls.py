"""TLS on both sides: tenants know the gateway by its certificate, and the gateway its engines by theirs."""

import asyncio
import contextlib
import ssl
from dataclasses import replace

import httpx
import openai
import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from support.certificates import NAME, Authority
from support.engine import running_engine
from support.files import WAYS, in_place
from support.gateway import running_gateway
from support.scripted_endpoint import PATIENCE, ScriptedEndpoint, until
from support.tenant import QUESTION, pool_over, request_bytes, tenant

from fairpool_gateway.app import certificate as certificate_module
from fairpool_gateway.app import listener
from fairpool_gateway.app.certificate import Certificate
from fairpool_gateway.errors import CannotStart

HOST = "127.0.0.1"


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def volume(tmp_path):
    return tmp_path / "volume"


def pair(authority, *names):
    """What a certificate's files hold."""
    made = authority.sign(*(names or (HOST,)))
    return {
        "tls.crt": b"".join(each.bytes() for each in made.cert_chain_pems),
        "tls.key": made.private_key_pem.bytes(),
    }


def of(volume):
    return Certificate(volume / "tls.crt", volume / "tls.key")


@contextlib.asynccontextmanager
async def secured_gateway(certificate, *endpoints, **fields):
    async with running_gateway(pool_over(*endpoints, **fields), certificate=certificate) as gateway:
        yield gateway


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


async def handshake(gateway, context, name=None):
    """Connect once; returns what was agreed on, and the gateway's certificate."""
    async with asyncio.timeout(PATIENCE):
        _, writer = await asyncio.open_connection(HOST, gateway.port, ssl=context, server_hostname=name or HOST)
    agreed = writer.get_extra_info("ssl_object")
    writer.transport.abort()
    return agreed, agreed.getpeercert(binary_form=True)


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


def encrypted(key):
    loaded = load_pem_private_key(key, None)
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))


DAMAGE = {
    "another's key": (
        lambda authority, _: {"tls.key": pair(authority)["tls.key"]},
        "{key} is not the key of the certificate in {crt}",
    ),
    "no certificate": (lambda *_: {"tls.crt": b"what is this?"}, "{crt} holds no certificate in PEM"),
    "no key": (lambda *_: {"tls.key": b""}, "{key} holds no private key in PEM"),
    "half a certificate": (
        lambda _, good: {"tls.crt": good["tls.crt"][:200]},
        "{crt} holds a certificate that is broken, or cut off",
    ),
    "half a certificate behind a whole one": (
        lambda _, good: {"tls.crt": good["tls.crt"] + good["tls.crt"][:200]},
        "{crt} holds a certificate that is broken, or cut off",
    ),
    "half a key": (
        lambda _, good: {"tls.key": good["tls.key"][:100]},
        "{key} holds a private key that is broken, or cut off",
    ),
    "an encrypted key": (
        lambda _, good: {"tls.key": encrypted(good["tls.key"])},
        "{key} is encrypted: give it without a password",
    ),
}


@pytest.mark.parametrize(("damage", "problem"), DAMAGE.values(), ids=DAMAGE)
class TestAPairThatCannotBeUsed:
    async def test_leaves_the_last_good_one_in_force_and_is_told_until_a_good_one_comes(
        self, authority, volume, caplog, damage, problem
    ):
        good = pair(authority)
        in_place(volume, good)
        certificate = of(volume)
        async with secured_gateway(certificate) as gateway:
            _, shown = await handshake(gateway, authority.trusted())
            in_place(volume, damage(authority, good))
            for _ in range(3):
                certificate.look()
            assert (await handshake(gateway, authority.trusted()))[1] == shown
            told = problem.format(key=volume / "tls.key", crt=volume / "tls.crt")
            (said,) = caplog.messages
            assert said.startswith(f"the last good certificate stays in force: {told}")
            ready = await gateway.admin("/readyz")
            assert ready.status_code == 200
            assert ready.json()["certificate"].startswith(f"the last good one stays in force: {told}")
            in_place(volume, good)
            for _ in range(2):
                certificate.look()
            assert "certificate" not in (await gateway.admin("/readyz")).json()

    async def test_is_said_in_words_at_the_start(self, authority, volume, damage, problem):
        good = pair(authority)
        in_place(volume, {**good, **damage(authority, good)})
        with pytest.raises(CannotStart) as refused:
            of(volume)
        assert str(refused.value).startswith(problem.format(key=volume / "tls.key", crt=volume / "tls.crt"))


class TestFilesThatAreNotThere:
    def test_are_named_at_the_start(self, authority, volume):
        in_place(volume, {"tls.crt": pair(authority)["tls.crt"]})
        with pytest.raises(CannotStart, match=r"tls\.key cannot be read: No such file or directory"):
            of(volume)

    def test_leave_the_last_good_one_in_force_later(self, authority, volume):
        in_place(volume, pair(authority))
        certificate = of(volume)
        (volume / "tls.crt").unlink()
        for _ in range(2):
            certificate.look()
        assert certificate.problem == f"{volume / 'tls.crt'} cannot be read: No such file or directory"


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
