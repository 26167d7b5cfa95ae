"""The Secret in which the gateway gets its configuration, and its hash beside it."""

from __future__ import annotations

import base64
from typing import Final

from fairpool_operator.compile.config import Packed
from fairpool_operator.compile.objects.common import named
from fairpool_operator.resources import FairPool
from fairpool_operator.view import CONFIG, LABEL, Object

HASH: Final = "fairpool.dev/config-hash"
"""The annotation that says which configuration is in the Secret."""

_KEY: Final = "config.json.gz"


def config_secret(pool: FairPool, packed: Packed) -> Object:
    """The configuration, compressed."""
    data = {_KEY: base64.b64encode(packed.compressed).decode()}
    secret = named("v1", "Secret", pool, type="fairpool.dev/config", data=data)
    secret["metadata"]["labels"][LABEL] = CONFIG
    secret["metadata"]["annotations"] = {HASH: packed.hash}
    return secret
