"""Where something is that a resource only names: Secrets, always in the resource's own namespace."""

from __future__ import annotations

from fairpool_operator.resources.part import Part


class SecretRef(Part):
    """A Secret as a whole."""

    name: str


class SecretKeyRef(SecretRef):
    """One key of a Secret."""

    key: str


class AuthorityRef(SecretRef):
    """The key of a Secret that holds certificates of authorities, in PEM."""

    key: str = "ca.crt"


class CredentialRef(SecretRef):
    """The key of a Secret that holds the engines' own API key."""

    key: str = "api-key"


class ProxyCredentialRef(SecretRef):
    """The key of a Secret that holds a trusted proxy's credential and, while that changes, the one of the next."""

    key: str = "credential"
    next_key: str | None = None
