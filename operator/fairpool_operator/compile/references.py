"""The Secrets that a resource names, and whether each can serve its purpose.

What always holds: a Secret is used only in the namespace of the resource that names it, and only for the purpose that
its label allows; what is wrong is said with the command or the edit that puts it right, and with no value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from fairpool_gateway.config import ProxyCredentialSettings
from fairpool_operator.errors import KeyNotFound, KeyUnusable, ReferenceRefused, SecretNotFound
from fairpool_operator.resources import FairPool
from fairpool_operator.view import ENGINE, KEYS, LABEL, TLS, Value, View

TLS_CERTIFICATE: Final = "tls.crt"
TLS_KEY: Final = "tls.key"
_OURS: Final = frozenset({TLS_CERTIFICATE, TLS_KEY, "ca.crt", "api-key", "credential"})
"""Names of keys that are told; any other is its author's, and may be a credential that somebody put there."""

_CERTIFICATES: Final = frozenset({"CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"})
_PRIVATE_KEYS: Final = frozenset({"PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"})


class Form(Enum):
    """What a value has to be, in the words of an advice."""

    HEADER = (
        "cannot be sent in a header. Put there one line of at most 8,192 printable ASCII characters without spaces."
    )
    CERTIFICATES = "holds no certificate in PEM. Put there one that begins with -----BEGIN CERTIFICATE-----."
    PRIVATE_KEY = (
        "holds no private key in PEM, or an encrypted one. Put there one that begins with -----BEGIN PRIVATE KEY-----."
    )

    def is_of(self, value: Value) -> bool:
        """Whether the value is so."""
        match self:
            case Form.HEADER:
                return value.fits_a_header
            case Form.CERTIFICATES:
                return not value.blocks.isdisjoint(_CERTIFICATES)
            case Form.PRIVATE_KEY:
                return not value.blocks.isdisjoint(_PRIVATE_KEYS)


@dataclass(frozen=True, slots=True)
class References:
    """What a pool's references came to."""

    proxy_credential: ProxyCredentialSettings | None
    problems: tuple[ReferenceRefused, ...]


def resolve(pool: FairPool, view: View) -> References:
    """Look at every Secret that the pool names."""
    problems: list[ReferenceRefused] = []
    for name, key, use, form, field in _needed(pool):
        try:
            value = value_of(view, pool.metadata.namespace, name, key, use, f"{field[-1]}.key")
            fit_for(value, f"Secret {pool.metadata.namespace}/{name}, key {key}", form)
        except ReferenceRefused as problem:
            problems.append(problem.at(*field))
    proxy_credential = None
    try:
        proxy_credential = _proxy_credential(pool, view)
    except ReferenceRefused as problem:
        problems.append(problem.at("authentication", "proxyCredentialRef"))
    return References(proxy_credential, tuple(problems))


def value_of(view: View, namespace: str, name: str, key: str, use: str, field: str) -> Value:
    """What is known of one value; `field` is where the name of the key is written.

    Raises:
        SecretNotFound: there is no such Secret whose label allows this use.
        KeyNotFound: it has no such key.
    """
    secret = view.secrets.get((namespace, name))
    if secret is None:
        raise SecretNotFound(
            f"Secret {namespace}/{name} is not there, or not labelled for this use. Create it, or label it: "
            f"kubectl label --overwrite secret -n {namespace} {name} {LABEL}={use}"
        )
    if secret.use != use:
        raise SecretNotFound(
            f"Secret {namespace}/{name} is labelled for another use than {use}. Name another Secret, or label it: "
            f"kubectl label --overwrite secret -n {namespace} {name} {LABEL}={use}"
        )
    if key not in secret.values:
        there = ", ".join(list(secret.values)[:8]) or "nothing"
        called = key if key in _OURS else f"of the name in {field}"
        raise KeyNotFound(f"Secret {namespace}/{name} has no key {called}. Add it, or name what is there: {there}.")
    return secret.values[key]


def fit_for(value: Value, where: str, form: Form = Form.HEADER) -> None:
    """Whether a value is what it has to be.

    Raises:
        KeyUnusable: it is not.
    """
    if value.is_empty:
        raise KeyUnusable(f"{where}: is empty. Put the value there.")
    if not form.is_of(value):
        raise KeyUnusable(f"{where}: {form.value}")


def _needed(pool: FairPool) -> Iterator[tuple[str, str, str, Form, tuple[str, ...]]]:
    """The name, the key and the use of each Secret that is mounted, what it has to hold, and who names it."""
    endpoints, tls = pool.spec.endpoints, pool.spec.gateway.tls
    if endpoints.tls is not None:
        authority = endpoints.tls.ca_certificate_ref
        yield authority.name, authority.key, ENGINE, Form.CERTIFICATES, ("endpoints", "tls", "caCertificateRef")
    if endpoints.credential_ref is not None:
        credential = endpoints.credential_ref
        yield credential.name, credential.key, ENGINE, Form.HEADER, ("endpoints", "credentialRef")
    if tls is not None:
        for key, form in ((TLS_CERTIFICATE, Form.CERTIFICATES), (TLS_KEY, Form.PRIVATE_KEY)):
            yield tls.certificate_ref.name, key, TLS, form, ("gateway", "tls", "certificateRef")


def _proxy_credential(pool: FairPool, view: View) -> ProxyCredentialSettings | None:
    reference = pool.spec.authentication.proxy_credential_ref
    if pool.spec.authentication.type != "TrustedHeader" or reference is None:
        return None
    namespace = pool.metadata.namespace
    digest = _digest(view, namespace, reference.name, reference.key, "key")
    following = reference.next_key and _digest(view, namespace, reference.name, reference.next_key, "nextKey")
    return ProxyCredentialSettings(digest=digest, next_digest=following or None)


def _digest(view: View, namespace: str, name: str, key: str, field: str) -> str:
    value = value_of(view, namespace, name, key, KEYS, f"proxyCredentialRef.{field}")
    fit_for(value, f"Secret {namespace}/{name}, key {key}")
    assert value.digest is not None
    return value.digest
