"""Configurations for tests: `pool_config()` is the smallest, and each argument replaces a field of it."""

import hashlib
from typing import Any

from fairpool_gateway.config import PoolConfig


def key_of(tenant: str) -> str:
    """The API key that `pool_config` gives to a tenant whose keys the test does not say."""
    return f"key-of-{tenant}"


def digest_of(key: str) -> str:
    """A key as a configuration holds it."""
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def pool_document(**fields: Any) -> dict[str, Any]:
    """A configuration as a file would hold it, keys filled in; everybody is anonymous where there are no tenants."""
    document: dict[str, Any] = {
        "pool": "llama",
        "models": ["tiny"],
        "endpoints": [{"name": "engine-0", "url": "http://127.0.0.1:8000"}],
        **fields,
    }
    tenants = document.get("tenants")
    if not tenants:
        document.setdefault("authentication", {"type": "Anonymous"})
    elif not _needs_no_keys(document.get("authentication")):
        document["tenants"] = [{"keys": [{"digest": digest_of(key_of(each["name"]))}], **each} for each in tenants]
    return document


def _needs_no_keys(authentication: Any) -> bool:
    match authentication:
        case {"type": "Anonymous" | "TrustedHeader"}:
            return True
    return False


def pool_config(**fields: Any) -> PoolConfig:
    """A configuration; fields by the file's names or by Python's, values as a file would have them."""
    return PoolConfig.model_validate(pool_document(**fields))
