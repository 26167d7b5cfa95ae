"""Certificate files that cannot be used: what is said of them, and that they change nothing for who connects."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from support.certificates import NAME
from support.files import in_place
from support.secured_gateway import handshake, of, pair, secured_gateway

from fairpool_gateway.errors import CannotStart


def encrypted(key):
    loaded = load_pem_private_key(key, None)
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))


def as_trusted(certificates):
    """The form in which OpenSSL keeps what it is to trust a certificate for: here nothing is said of that."""
    return certificates.replace(b" CERTIFICATE-----", b" TRUSTED CERTIFICATE-----")


def written(made):
    return made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def short(*_):
    """A pair in which the key has half the bits that it should have."""
    key = rsa.generate_private_key(65537, 1024)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
    ).sign(key, SHA256())
    return {"tls.crt": made.public_bytes(Encoding.PEM), "tls.key": written(key)}


DAMAGE = {
    "another's key": (
        lambda authority, _: {"tls.key": pair(authority)["tls.key"]},
        "{key} is not the key of the certificate in {crt}",
    ),
    "a key of another kind": (
        lambda *_: {"tls.key": written(rsa.generate_private_key(65537, 2048))},
        "{key} is not the key of the certificate in {crt}",
    ),
    "a key of no kind for TLS": (
        lambda *_: {"tls.key": written(X25519PrivateKey.generate())},
        "{key} or {crt} is for a kind of key that TLS does not take",
    ),
    "a key that is too short": (short, "{crt} is for a key that is too short, or signed by one"),
    "another's key for a certificate in OpenSSL's form": (
        lambda authority, good: {"tls.crt": as_trusted(good["tls.crt"]), "tls.key": pair(authority)["tls.key"]},
        "{key} is not the key of the certificate in {crt}",
    ),
    "half a certificate in OpenSSL's form": (
        lambda _, good: {"tls.crt": as_trusted(good["tls.crt"])[:200]},
        "{crt} holds a certificate that is broken, or cut off",
    ),
    "half a key for a certificate in OpenSSL's form": (
        lambda _, good: {"tls.crt": as_trusted(good["tls.crt"]), "tls.key": good["tls.key"][:100]},
        "{key} holds a private key that is broken, or cut off",
    ),
    "a chain in OpenSSL's form": (
        lambda authority, good: {"tls.crt": good["tls.crt"] + as_trusted(authority.pem)},
        "{crt} holds a TRUSTED CERTIFICATE behind the first, which would not be sent",
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
