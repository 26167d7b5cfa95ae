"""Which paths reach endpoints: an allow-list, what a pool may add to it, and what no pool ever may.

Engines have paths beside those of tenants that change the engine for everybody: vLLM loads adapters under `/v1`, others
take weights, caches or memory away. A configuration that would let a tenant reach one of these cannot be used.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from fairpool_gateway.config.names import text
from fairpool_gateway.cost import Api

_ALSO_AT_THE_ROOT: Final = (Api.RERANK, Api.SCORE, Api.CLASSIFY, Api.POOLING, Api.TOKENIZE, Api.DETOKENIZE)
"""vLLM serves some of these only there, others under both."""

PATHS: Final = {
    **{f"/v1/{api.value}": api for api in Api if api is not Api.EXTRA},
    **{f"/{api.value}": api for api in _ALSO_AT_THE_ROOT},
    "/v2/rerank": Api.RERANK,
}
"""The paths that every pool serves, with POST."""

_PATH: Final = re.compile(r"(?:/[A-Za-z0-9_~:@-][A-Za-z0-9._~:@-]*){1,8}")
_LONGEST: Final = 128

_MANAGES: Final = re.compile(
    r"(?:abort|add|cancel|clear|close|collective|configure|continue|destroy|dump|finish|flush|freeze|get|init|load|open"
    r"|pause|release|remove|reset|resume|save|scale|set|sleep|slow|start|stop|unload|update|wake|weight)(?:[_-].*)?"
    r"|admin|debug|hicache|lora[_-]adapters?|metrics|props|rpc|server[_-]info|slots"
)
"""A step of a path by which vLLM, SGLang, TensorRT-LLM or llama.cpp are managed or looked into."""


def _extra_path(value: str) -> str:
    if len(value) > _LONGEST or not _PATH.fullmatch(value):
        raise ValueError(
            "must be a path such as /v1/messages/count_tokens: at most 8 steps of letters, digits and . _ ~ : @ - that "
            "do not begin with a dot, without a slash at the end"
        )
    if value == "/v1/models":
        raise ValueError("is answered by this gateway itself, from `models`: remove it")
    for step in value.lower().split("/"):
        if _MANAGES.fullmatch(step):
            raise ValueError(
                f"must not be here: '{step}' manages an engine, for all tenants at once; remove it, and reach the "
                "engine itself to manage it"
            )
    return value


ExtraPath = Annotated[str, text(_extra_path)]
"""A path that a pool lets pass beside `PATHS`."""


def apis_of(extra: tuple[str, ...]) -> dict[str, Api]:
    """Every path that reaches endpoints, and what its bodies are read as; `extra` changes none of `PATHS`."""
    return {**dict.fromkeys(extra, Api.EXTRA), **PATHS}
