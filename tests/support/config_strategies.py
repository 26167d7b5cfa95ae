"""Random configurations, as files would hold them, and random texts that are almost one."""

import json
from datetime import datetime
from typing import Any

import yaml
from hypothesis import strategies as st
from support.config import digest_of, pool_document

from fairpool_gateway.config import PoolConfig

_NAME_CHARACTERS = "abcXYZ0189._-/@:"
names = st.builds(
    lambda middle, end: f"n{middle}{end}",
    st.text(_NAME_CHARACTERS, max_size=12),
    st.sampled_from("abcXYZ0189"),
) | st.sampled_from(["no", "null", "12", "1e3", "2026-10-01", "0x1F", "1:30", "true"])
"""Names, and among them those that YAML would take for something else if they stood there without quotes."""

durations = st.integers(1, 24 * 3_600_000).map(lambda ms: f"{ms // 60_000}m{ms % 60_000}ms")
sizes = st.integers(1 << 20, 1 << 40) | st.integers(1, 512).map("{}Gi".format)
weights = st.integers(1, 1000)
instants = st.builds(
    lambda moment, offset: f"{moment.isoformat()}{offset}",
    st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)),  # noqa: DTZ001 - the text gets its time zone here
    st.sampled_from(["Z", "z", "+02:00", "-11:30"]),
)


def _unique(values: st.SearchStrategy[Any], **bounds: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, unique=True, **bounds)


authentications: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"type": st.just("APIKey")}, optional={"maxTenants": st.integers(1, 1_000_000)}),
    st.fixed_dictionaries(
        {
            "type": st.just("TrustedHeader"),
            "header": st.sampled_from(["x-tenant", "X-Forwarded-User", "x-fairpool-tenant"]),
            "proxyCredential": st.fixed_dictionaries(
                {"digest": st.just(digest_of("the proxy's"))}, optional={"nextDigest": st.just(digest_of("its next"))}
            ),
        },
        optional={"unknownTenants": st.sampled_from(["Refuse", "Admit"]), "maxTenants": st.integers(1, 1_000_000)},
    ),
    st.fixed_dictionaries({"type": st.just("Anonymous")}),
)

what_tenants_may_have: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "weight": weights,
        "suspend": st.booleans(),
        "queue": st.fixed_dictionaries(
            {}, optional={"maxRequests": st.integers(1, 1_000_000), "maxBytes": st.integers(32 << 20, 1 << 40)}
        ),
    },
)


labels = st.sampled_from(["app", "example.com/role", "no", "1e3"])
discoveries: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "selector": st.fixed_dictionaries(
            {"matchLabels": st.dictionaries(labels, st.sampled_from(["", "vllm", "no", "0x1F"]), min_size=1)},
            optional={
                "matchExpressions": st.lists(
                    st.fixed_dictionaries(
                        {"key": labels, "operator": st.sampled_from(["In", "NotIn"]), "values": st.just(["a", ""])}
                    )
                    | st.fixed_dictionaries({"key": labels, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
                    max_size=2,
                )
            },
        ),
        "targetPorts": st.lists(
            st.fixed_dictionaries({"number": st.integers(1, 65_535)})
            | st.fixed_dictionaries({"name": st.sampled_from(["http", "rank-1", "no"])}),
            unique_by=lambda port: next(iter(port.values())),
            min_size=1,
            max_size=3,
        ),
    },
    optional={
        "accelerators": st.fixed_dictionaries(
            {},
            optional={
                "policy": st.sampled_from(["Require", "Observe"]),
                "resourceNames": st.lists(st.sampled_from(["nvidia.com/gpu", "amd.com/gpu"]), min_size=1),
            },
        )
    },
)


@st.composite
def pool_documents(draw: st.DrawFn) -> dict[str, Any]:
    """A valid configuration as a file would hold it; which of its optional fields are there is random."""
    authentication = draw(authentications)
    anonymous, with_keys = authentication["type"] == "Anonymous", authentication["type"] == "APIKey"
    tenants: list[dict[str, Any]] = []
    for name in draw(st.just(["anonymous"]) if anonymous else _unique(names, min_size=1, max_size=4)):
        keys = [
            {
                "digest": digest_of(f"{name} {number}"),
                **draw(st.fixed_dictionaries({}, optional={"name": names, "notAfter": instants})),
            }
            for number in range(draw(st.integers(1, 3)) if with_keys else 0)
        ]
        tenants.append({"name": name, "keys": keys, **draw(what_tenants_may_have)})
    scheme = draw(st.sampled_from(["http", "https"]))
    endpoints = [
        {
            "name": name,
            "url": f"{scheme}://{draw(st.sampled_from(['10.0.0.1', 'engine.local', '[fd00::1]']))}:{8000 + number}",
            **draw(st.fixed_dictionaries({}, optional={"slots": st.integers(1, 10_000), "drain": st.booleans()})),
        }
        for number, name in enumerate(draw(_unique(names, max_size=3)))
    ]
    if draw(st.booleans()):
        where = {"endpoints": [], "discovery": {**draw(discoveries), "tls": scheme == "https"}}
    else:
        where = {"endpoints": endpoints}
    printable = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=20)
    optional: dict[str, st.SearchStrategy[Any]] = {
        "version": st.just(1),
        "slots": st.fixed_dictionaries({}, optional={"perEndpoint": st.integers(1, 10_000)}),
        "queue": st.fixed_dictionaries(
            {"maxRequestBytes": st.integers(1, 1 << 20)},
            optional={
                "timeout": durations,
                "maxRequests": st.integers(1, 1_000_000),
                "maxBytes": sizes,
                "perTenant": st.fixed_dictionaries({}, optional={"maxBytes": sizes}),
            },
        ),
        "timeouts": st.fixed_dictionaries({}, optional=dict.fromkeys(("connect", "firstByte", "idle"), durations)),
        "cost": st.fixed_dictionaries(
            {"inputWeight": st.integers(0, 1000), "outputWeight": weights},
            optional={
                "outputEstimator": st.sampled_from(["TenantAverage", "MaxTokensRatio"]),
                "contextLength": st.integers(1, 1_000_000),
            },
        ),
        "probe": st.fixed_dictionaries(
            {},
            optional={"path": st.sampled_from(["/", "/health", "/v1/ping?x=1"]), "interval": durations},
        ),
        "extraPaths": st.lists(st.sampled_from(["/v1/messages/count_tokens", "/generate", "/v1/images/edits"])),
        "defaultWeight": weights,
        "overtaking": st.sampled_from(["Refuse", "Allow"]),
        "suspend": st.booleans(),
        "endpointCredential": st.fixed_dictionaries({"fromFile": st.just("/run/secrets/engine")})
        | st.fixed_dictionaries({"fromEnvironment": st.just("ENGINE_KEY")}),
    }
    return pool_document(
        models=draw(_unique(printable, max_size=3)),
        tenants=tenants,
        authentication=authentication,
        **where,
        **({"endpointTls": {"caFile": "/ca.pem", "serverName": "engine.local"}} if scheme == "https" else {}),
        **draw(st.fixed_dictionaries({}, optional=optional)),
    )


pool_configs = pool_documents().map(PoolConfig.model_validate)

junk: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def damaged_documents(draw: st.DrawFn) -> dict[str, Any]:
    """A valid configuration in which junk stands in some place, or a field was lost or renamed."""
    document = draw(pool_documents())
    place: Any = document
    while True:
        step = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        inner = place[step]
        if not isinstance(inner, dict | list) or not inner or draw(st.booleans()):
            break
        place = inner
    match draw(st.sampled_from(["replace", "lose", "rename"])):
        case "replace":
            place[step] = draw(junk)
        case "lose":
            del place[step]
        case _ if isinstance(place, dict):
            place[draw(st.text(max_size=8))] = place.pop(step)
    return document


_fragments = st.sampled_from([
    *("pool", "models", "tenants", "{", "}", "[", "]", ",", '"', "'", "&a", "*a", "<<", "=", "?", "|", ">", "%", "#"),
    *("---", "~", ".nan", "1e999", "0x", "0b", "1:99", "2026-13-45"),
    *("!!int ", "!!bool ", "!!timestamp ", "!!python/name:os ", "!x ", ": ", "- ", "  ", "\n", "\t"),
    *("9" * 5000, "\x00", "\x07", "\ud800", "\ufeff"),
])  # fmt: skip
texts = (
    st.text()
    | st.lists(_fragments, max_size=12).map("".join)
    | damaged_documents().map(json.dumps)
    | damaged_documents().map(yaml.safe_dump)
)
"""Texts of every kind: noise, pieces of YAML in a wrong order, and files with one mistake."""
