"""The Secrets that a resource names, and whether each can serve its purpose.

What always holds: a Secret is used only in the namespace of the resource that names it, and only for the purpose that
its label allows; what is wrong is said with the command or the edit that puts it right, and with no value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fairpool_gateway.config import ProxyCredentialSettings
from fairpool_operator.errors import KeyNotFound, KeyUnusable, ReferenceRefused, SecretNotFound
from fairpool_operator.resources import FairPool
from fairpool_operator.view import ENGINE, KEYS, LABEL, TLS, Value, View

TLS_CERTIFICATE: Final = "tls.crt"
TLS_KEY: Final = "tls.key"


@dataclass(frozen=True, slots=True)
class References:
    """What a pool's references came to."""

    proxy_credential: ProxyCredentialSettings | None
    problems: tuple[ReferenceRefused, ...]


def resolve(pool: FairPool, view: View) -> References:
    """Look at every Secret that the pool names."""
    problems: list[ReferenceRefused] = []
    for name, key, use, is_pem, field in _needed(pool):
        try:
            value = value_of(view, pool.metadata.namespace, name, key, use)
            fit_for(value, f"Secret {pool.metadata.namespace}/{name}, key {key}", is_pem=is_pem)
        except ReferenceRefused as problem:
            problems.append(problem.at(*field))
    proxy_credential = None
    try:
        proxy_credential = _proxy_credential(pool, view)
    except ReferenceRefused as problem:
        problems.append(problem.at("authentication", "proxyCredentialRef"))
    return References(proxy_credential, tuple(problems))


def value_of(view: View, namespace: str, name: str, key: str, use: str) -> Value:
    """What is known of one value.

    Raises:
        SecretNotFound: there is no such Secret whose label allows this use.
        KeyNotFound: it has no such key.
    """
    secret = view.secrets.get((namespace, name))
    if secret is None:
        raise SecretNotFound(
            f"Secret {namespace}/{name} is not there, or not labelled for this use. Create it, or label it: "
            f"kubectl label secret -n {namespace} {name} {LABEL}={use}"
        )
    if secret.use != use:
        raise SecretNotFound(
            f"Secret {namespace}/{name} is labelled for another use ({LABEL}: {secret.use!r}). Name another Secret, or "
            f"label it: kubectl label --overwrite secret -n {namespace} {name} {LABEL}={use}"
        )
    if key not in secret.values:
        there = ", ".join(list(secret.values)[:8]) or "nothing"
        raise KeyNotFound(f"Secret {namespace}/{name} has no key {key}. Add it, or name what is there: {there}.")
    return secret.values[key]


def fit_for(value: Value, where: str, *, is_pem: bool) -> None:
    """Whether a value can be sent in a header, or be read as certificates.

    Raises:
        KeyUnusable: it cannot.
    """
    if value.is_empty:
        raise KeyUnusable(f"{where}: is empty. Put the value there.")
    if is_pem and not value.is_pem:
        raise KeyUnusable(f"{where}: is not PEM. Put there what begins with -----BEGIN.")
    if not is_pem and not value.fits_a_header:
        raise KeyUnusable(
            f"{where}: cannot be sent in a header. Put there one line of at most 8,192 printable ASCII characters "
            "without spaces."
        )


def _needed(pool: FairPool) -> Iterator[tuple[str, str, str, bool, tuple[str, ...]]]:
    """The name, the key and the use of each Secret that is mounted, whether it has to be PEM, and who names it."""
    endpoints, tls = pool.spec.endpoints, pool.spec.gateway.tls
    if endpoints.tls is not None:
        authority = endpoints.tls.ca_certificate_ref
        yield authority.name, authority.key, ENGINE, True, ("endpoints", "tls", "caCertificateRef")
    if endpoints.credential_ref is not None:
        credential = endpoints.credential_ref
        yield credential.name, credential.key, ENGINE, False, ("endpoints", "credentialRef")
    if tls is not None:
        for key in (TLS_CERTIFICATE, TLS_KEY):
            yield tls.certificate_ref.name, key, TLS, True, ("gateway", "tls", "certificateRef")


def _proxy_credential(pool: FairPool, view: View) -> ProxyCredentialSettings | None:
    reference = pool.spec.authentication.proxy_credential_ref
    if pool.spec.authentication.type != "TrustedHeader" or reference is None:
        return None
    namespace = pool.metadata.namespace
    digest = _digest(view, namespace, reference.name, reference.key)
    following = reference.next_key and _digest(view, namespace, reference.name, reference.next_key)
    return ProxyCredentialSettings(digest=digest, next_digest=following or None)


def _digest(view: View, namespace: str, name: str, key: str) -> str:
    value = value_of(view, namespace, name, key, KEYS)
    fit_for(value, f"Secret {namespace}/{name}, key {key}", is_pem=False)
    assert value.digest is not None
    return value.digest
