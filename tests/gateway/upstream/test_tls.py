"""Who an endpoint is over TLS: vouched for by the pool's own authorities, under the name they agreed on, or nobody."""

import contextlib
import ssl

import pytest
from support.certificates import NAME, Authority
from support.files import WAYS
from support.scripted_endpoint import ScriptedEndpoint, deaf_port

from fairpool_gateway.errors import ConnectFailed, UpstreamBroken
from fairpool_gateway.upstream import Target, Tls


@pytest.fixture
def own(tmp_path):
    """An authority whose file the test may change."""
    return Authority(tmp_path)


@contextlib.asynccontextmanager
async def endpoint_with(context, ca_file, name=NAME):
    async with ScriptedEndpoint.listening(context, Tls(str(ca_file), name)) as endpoint:
        yield endpoint


@pytest.fixture
def endpoint():
    """None that all tests share: each says how it proves itself."""


@pytest.fixture
def why(ask):
    """Why there is no connection to an endpoint; it was sent nothing."""

    async def why(endpoint):
        with pytest.raises(ConnectFailed) as failed:
            await ask(target=endpoint.target)
        return str(failed.value).replace(str(endpoint.target), "HOST:PORT")

    return why


async def answered(ask, endpoint):
    """Ask over a new connection; returns it as the endpoint sees it, to be used again or ended."""
    task = ask(target=endpoint.target)
    peer = await endpoint.accept()
    await peer.request()
    await peer.answer(headers=b"Connection: close\r\n")
    assert (await task).complete
    return peer


class TestTheConnection:
    async def test_offers_http_1_1_and_the_name(self, ask, own):
        named = []
        context = own.serving()
        context.set_alpn_protocols(["h2", "http/1.1"])
        context.sni_callback = lambda _, name, __: named.append(name)
        async with endpoint_with(context, own.file) as endpoint:
            peer = await answered(ask, endpoint)
            assert peer.tls.selected_alpn_protocol() == "http/1.1"
            assert named == [NAME]

    async def test_may_be_to_a_certificate_for_an_address(self, ask, own):
        async with endpoint_with(own.serving("10.1.2.3"), own.file, "10.1.2.3") as endpoint:
            await answered(ask, endpoint)

    async def test_may_be_to_the_very_certificate_that_is_trusted(self, ask, own, tmp_path):
        certificate = own.sign()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        pinned = tmp_path / "pinned.pem"
        pinned.write_bytes(certificate.cert_chain_pems[0].bytes())
        async with endpoint_with(context, pinned) as endpoint:
            await answered(ask, endpoint)

    async def test_is_shared_by_requests_that_trust_the_same_only(self, ask, own, tmp_path):
        same = own.write(tmp_path / "same.pem")
        async with endpoint_with(own.serving(), own.file) as endpoint:
            for target in (endpoint.target, Target(endpoint.target.host, endpoint.target.port, Tls(str(same), NAME))):
                task = ask(target=target)
                peer = await endpoint.accept()
                await peer.request()
                await peer.answer()
                await task
            assert endpoint.accepted == 2

    async def test_that_stays_silent_is_given_up_in_time(self, ask, own):
        with deaf_port() as deaf, pytest.raises(ConnectFailed, match=r"within 0\.03 s"):
            await ask(target=Target(deaf.host, deaf.port, Tls(str(own.file), NAME)), connect=0.03)
        async with ScriptedEndpoint.listening() as mute:
            with pytest.raises(ConnectFailed, match=r"within 0\.03 s"):
                await ask(target=Target(mute.target.host, mute.target.port, Tls(str(own.file), NAME)), connect=0.03)


class TestAWrongCertificate:
    async def test_of_another_authority(self, why, own, tmp_path):
        other = Authority(tmp_path, "other")
        async with endpoint_with(other.serving(), own.file) as endpoint:
            assert await why(endpoint) == (
                "the certificate of HOST:PORT was signed by nobody in endpointTls.caFile: "
                "put the authority that signed it there"
            )

    async def test_of_a_public_authority_is_not_trusted_either(self, why, own, tmp_path, monkeypatch):
        """What the system trusts does not count: here it would be the other authority."""
        other = Authority(tmp_path, "other")
        monkeypatch.setenv("SSL_CERT_FILE", str(other.file))
        async with endpoint_with(other.serving(), own.file) as endpoint:
            assert "signed by nobody" in await why(endpoint)

    async def test_for_another_name(self, why, own):
        async with endpoint_with(own.serving("127.0.0.1", "localhost"), own.file) as endpoint:
            assert await why(endpoint) == (
                f"the certificate of HOST:PORT is not for {NAME}: set endpointTls.serverName to a name that it is for"
            )

    async def test_for_another_address(self, why, own):
        async with endpoint_with(own.serving("10.1.2.3"), own.file, "127.0.0.1") as endpoint:
            assert "is not for 127.0.0.1" in await why(endpoint)

    async def test_that_has_expired(self, why, own):
        async with endpoint_with(own.serving(expired=True), own.file) as endpoint:
            assert await why(endpoint) == "the certificate of HOST:PORT has expired: renew it"


class TestNoTls:
    async def test_where_plain_http_is_spoken(self, ask, own):
        async with ScriptedEndpoint.listening() as plain:
            task = ask(target=Target(plain.target.host, plain.target.port, Tls(str(own.file), NAME)))
            peer = await plain.accept()
            await peer.receive(5)
            await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            with pytest.raises(ConnectFailed, match=r"no TLS with .*, does it serve https\? \("):
                await task

    async def test_where_the_connection_is_closed(self, ask, own):
        async with ScriptedEndpoint.listening() as plain:
            task = ask(target=Target(plain.target.host, plain.target.port, Tls(str(own.file), NAME)))
            (await plain.accept()).end()
            with pytest.raises(ConnectFailed, match=r"no connection to \S+: ."):
                await task

    async def test_that_is_older_than_1_2(self, why, own):
        context = own.serving()
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers("ALL:@SECLEVEL=0")
        async with endpoint_with(context, own.file) as endpoint:
            assert (await why(endpoint)).startswith(("no TLS with HOST:PORT", "no connection to HOST:PORT"))

    async def test_without_a_certificate_of_the_gateway(self, ask, own):
        """TLS 1.3 tells only after the connection stands."""
        context = own.serving()
        context.verify_mode = ssl.CERT_REQUIRED
        own.trust(context)
        async with endpoint_with(context, own.file) as endpoint:
            with pytest.raises((ConnectFailed, UpstreamBroken)):
                await ask(target=endpoint.target)


class TestTheFileOfAuthorities:
    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (None, "cannot be read: No such file or directory"),
            (b"", "holds no certificates in PEM, or something beside them"),
            (b"not a certificate\n", "holds no certificates in PEM, or something beside them"),
            (
                b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                "holds no certificates in PEM, or something beside them",
            ),
        ],
    )
    async def test_that_never_was_good_lets_nothing_through(self, ask, why, own, tmp_path, content, problem):
        file = tmp_path / "broken.pem"
        if content is not None:
            file.write_bytes(content)
        async with endpoint_with(own.serving(), file) as endpoint:
            assert await why(endpoint) == f"endpointTls.caFile {problem}"
            own.write(file)
            await answered(ask, endpoint)

    async def test_may_hold_words_in_any_language_beside_several_authorities(self, ask, own, tmp_path):
        other = Authority(tmp_path, "other")
        both = tmp_path / "both.pem"
        both.write_bytes("# Zertifizierungsstelle für Tests\n".encode() + other.pem + b"\n# and\n" + own.pem)
        for authority in (own, other):
            async with endpoint_with(authority.serving(), both) as endpoint:
                await answered(ask, endpoint)

    @pytest.mark.parametrize("put", WAYS.values(), ids=WAYS)
    async def test_counts_as_soon_as_it_has_changed(self, ask, why, tmp_path, put):
        old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
        trusted = tmp_path / "volume" / "ca.pem"
        put(trusted.parent, {trusted.name: old.pem})
        async with endpoint_with(old.serving(), trusted) as of_old, endpoint_with(new.serving(), trusted) as of_new:
            for _ in range(2):
                await answered(ask, of_old)
                assert "signed by nobody" in await why(of_new)
                put(trusted.parent, {trusted.name: new.pem})
                await answered(ask, of_new)
                assert "signed by nobody" in await why(of_old)
                put(trusted.parent, {trusted.name: old.pem})

    async def test_that_breaks_leaves_what_it_held_in_force_and_says_so_once(self, ask, own, caplog):
        async with endpoint_with(own.serving(), own.file) as endpoint:
            await answered(ask, endpoint)
            for damage in (lambda: own.file.write_bytes(own.pem[:-100]), own.file.unlink):
                damage()
                caplog.clear()
                await answered(ask, endpoint)
                await answered(ask, endpoint)
                (said,) = caplog.messages
                assert said.startswith(f"endpointTls.caFile {own.file} ")
                assert said.endswith("; what it held before stays in force")

    async def test_that_changed_leaves_connections_that_stand(self, ask, own, tmp_path):
        async with endpoint_with(own.serving(), own.file) as endpoint:
            task = ask(target=endpoint.target)
            peer = await endpoint.accept()
            for _ in range(2):
                await peer.request()
                await peer.answer()
                await task
                Authority(tmp_path, "other").write(own.file)
                task = ask(target=endpoint.target)
            await peer.request()
            await peer.answer()
            await task
            assert endpoint.accepted == 1
