"""Random resources, drawn from the CustomResourceDefinitions themselves: whatever the server admits, and a little more.

The schema's rules in CEL are obeyed where most resources would break them otherwise; a few are drawn that a server
would refuse now, for those of an older definition may be there all the same. Names are drawn from a few, so that
resources conflict and refer to each other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st
from support.config import digest_of
from support.definition_walks import matching
from support.resources import NAMESPACE, fair_pool, gateway_pod, metadata, namespace, pem, secret, tenant_weight

_DIRECTORY = Path(__file__).parents[2] / "crds"
_DEEPEST = 4

NAMES = st.sampled_from(["a", "b", "c"])
DURATIONS = st.sampled_from(["1ms", "45s", "1m30s", "24h"])
SIZES = st.sampled_from([1, 1 << 20, "1Mi", "32Mi", "64Mi", "1G", "1Ti"])
DIGESTS = st.sampled_from([digest_of(each) for each in ("1", "2")])
INSTANTS = st.sampled_from(["2026-04-30T00:00:00Z", "2026-05-01T12:00:00Z", "2027-01-01T00:00:00+02:00"])
KEYS = st.sampled_from(["api-key", "api-key", "ca.crt", "credential"])
CONDITIONS = st.sampled_from(
    ["Accepted", "ResolvedRefs", "Programmed", "Ready", "Stalled", "GatewayAvailable", "Foreign"]
)
LABELS = st.dictionaries(st.sampled_from(["shares", "app"]), st.sampled_from(["yes", "no"]), min_size=1, max_size=2)
SECRET_VALUES = {
    "good": "sk-secret-good",
    "padded": "sk-secret-padded\n",
    "spaced": "sk-secret two",
    "empty": " ",
    "certificate": pem("CERTIFICATE", "sk-secret-certificate"),
    "key": pem("PRIVATE KEY", "sk-secret-private-key"),
}

_BY_PATH: dict[str, st.SearchStrategy[Any]] = {
    "poolRef": st.just({"name": "llama", "namespace": NAMESPACE}),
    "tenantName": st.sampled_from(["a", "b"]),
    "caCertificateRef.name": NAMES,
    "credentialRef.name": NAMES,
    "certificateRef.name": NAMES,
    "caCertificateRef.key": KEYS,
    "credentialRef.key": KEYS,
    "lastTransitionTime": st.just("2026-04-01T00:00:00Z"),
    "matchLabels": LABELS,
    "conditions.type": CONDITIONS,
    "endpoints.selector": st.fixed_dictionaries({"matchLabels": LABELS}),
    "targetPorts": st.lists(
        st.sampled_from([{"number": 8000}, {"number": 8001}, {"name": "http"}]), min_size=1, max_size=2, unique_by=str
    ),
    "apiKeys": st.lists(
        st.builds(
            lambda name, where, rest: {"name": name, **where, **rest},
            NAMES,
            st.fixed_dictionaries({"digest": DIGESTS})
            | st.fixed_dictionaries({"secretKeyRef": st.fixed_dictionaries({"name": NAMES, "key": KEYS})}),
            st.fixed_dictionaries({}, optional={"notAfter": INSTANTS}),
        ),
        max_size=3,
        unique_by=lambda key: key["name"],
    ),
    "authentication": st.sampled_from([{}, {"type": "APIKey"}, {"type": "TrustedHeader"}, {"maxTenants": 7}])
    | st.fixed_dictionaries(
        {
            "type": st.just("TrustedHeader"),
            "header": st.just("x-tenant"),
            "proxyCredentialRef": st.fixed_dictionaries({"name": NAMES, "key": KEYS}, optional={"nextKey": KEYS}),
        }
    ),
    "allowedTenants.namespaces": st.sampled_from([{}, {"from": "All"}, {"from": "Selector"}])
    | st.fixed_dictionaries({"from": st.just("Selector"), "selector": st.fixed_dictionaries({"matchLabels": LABELS})}),
    "affinity": st.sampled_from([{}, {"nodeAffinity": {}}, {"podAntiAffinity": {}}]),
    "serverName": st.sampled_from(["engine.local", "10.0.0.1"]),
    "gateway.podUID": st.sampled_from(["uid-of-inference-gateway-1", "gone"]),
}


@functools.cache
def schema(plural: str) -> dict[str, Any]:
    """The schema of a kind's objects."""
    definition = yaml.load((_DIRECTORY / f"fairpool.dev_{plural}.yaml").read_text(), yaml.CSafeLoader)
    found: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def drawn_from(found: dict[str, Any], path: tuple[str, ...] = ()) -> st.SearchStrategy[Any]:
    """Values that a schema allows."""
    for length in (2, 1):
        known = _BY_PATH.get(".".join(path[-length:]))
        if known is not None:
            return known
    if "enum" in found:
        return st.sampled_from(found["enum"])
    if found.get("x-kubernetes-int-or-string"):
        return SIZES
    return _BY_TYPE[found.get("type", "object")](found, path)


def _strings(found: dict[str, Any], _path: tuple[str, ...]) -> st.SearchStrategy[str]:
    if "duration(" in str(found.get("x-kubernetes-validations", "")):
        return DURATIONS
    least, most = found.get("minLength", 0), min(found.get("maxLength", 64), 64)
    if patterns := matching(found):
        pattern = patterns[0].removesuffix("$")
        return st.from_regex(pattern, fullmatch=True, alphabet=st.characters(codec="ascii")).filter(
            lambda text: least <= len(text) <= most
        )
    return st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=max(1, least), max_size=8)


def _arrays(found: dict[str, Any], path: tuple[str, ...]) -> st.SearchStrategy[list[Any]]:
    most = 0 if len(path) > _DEEPEST and not found.get("minItems") else min(3, found.get("maxItems", 3))
    unique: Any = None
    if keys := found.get("x-kubernetes-list-map-keys"):
        unique = lambda item: tuple(item.get(key) for key in keys)  # noqa: E731
    elif found.get("x-kubernetes-list-type") == "set":
        unique = str
    inner = drawn_from(found["items"], path)
    return st.lists(inner, min_size=min(found.get("minItems", 0), most), max_size=most, unique_by=unique)


def _objects(found: dict[str, Any], path: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    if "additionalProperties" in found:
        inner = drawn_from(found["additionalProperties"], path)
        return st.dictionaries(st.sampled_from(["example.com/a", "b"]), inner, max_size=2)
    needed = found.get("required", ())
    fields = {name: drawn_from(each, (*path, name)) for name, each in found.get("properties", {}).items()}
    optional = {name: each for name, each in fields.items() if name not in needed}
    if len(path) > _DEEPEST:
        optional = {}
    return st.fixed_dictionaries({name: fields[name] for name in needed}, optional=optional)


def _integers(found: dict[str, Any], _path: tuple[str, ...]) -> st.SearchStrategy[int]:
    return st.integers(found.get("minimum", 0), found.get("maximum", 2**31 - 1))


_BY_TYPE: dict[str, Callable[[dict[str, Any], tuple[str, ...]], st.SearchStrategy[Any]]] = {
    "array": _arrays,
    "boolean": lambda *_: st.booleans(),
    "integer": _integers,
    "object": _objects,
    "string": _strings,
}


@functools.cache
def _part(plural: str, part: str) -> st.SearchStrategy[dict[str, Any]]:
    return drawn_from(schema(plural)["properties"][part], () if part == "spec" else (part,))


_departures = st.integers(0, 9).map(lambda n: {"deletionTimestamp": "2026-05-01T00:00:00Z"} if n == 0 else {})
_moments = st.sampled_from([f"2026-01-01T00:00:0{second}Z" for second in range(3)])


@st.composite
def fair_pools(draw: st.DrawFn) -> Any:
    """A FairPool called llama."""
    copied = {"labels": {"copied": "never"}, "annotations": {"copied": "never"}}
    return {
        "apiVersion": "fairpool.dev/v1alpha1",
        "kind": "FairPool",
        "metadata": metadata("llama", **copied, **draw(_departures)),
        "spec": draw(_part("fairpools", "spec")),
        "status": draw(st.one_of(st.just({}), st.just({}), _part("fairpools", "status"))),
    }


@st.composite
def tenant_weights(draw: st.DrawFn, names: st.SearchStrategy[str] = NAMES) -> Any:
    """A TenantWeight for it, of its own namespace or another."""
    where = draw(st.sampled_from([NAMESPACE, NAMESPACE, NAMESPACE, "team"]))
    fields = {"creationTimestamp": draw(_moments), **draw(_departures)}
    return {
        "apiVersion": "fairpool.dev/v1alpha1",
        "kind": "TenantWeight",
        "metadata": metadata(draw(names), where, **fields),
        "spec": draw(_part("tenantweights", "spec")),
        "status": draw(st.just({}) | _part("tenantweights", "status")),
    }


_values = st.sampled_from([*SECRET_VALUES, "good", "good", "certificate", "key"]).map(SECRET_VALUES.get)
_secrets = st.builds(
    lambda name, where, use, values: secret(name, where, use=use, **values),
    NAMES,
    st.sampled_from([NAMESPACE, NAMESPACE, "team"]),
    st.sampled_from(["true", "true", "engine", "tls", ""]),
    st.fixed_dictionaries(
        {"api-key": _values}, optional=dict.fromkeys(("ca.crt", "credential", "tls.crt", "tls.key"), _values)
    ),
)


def by_name(resources: Any) -> list[Any]:
    """The resources, the last of each name."""
    return list({(r["kind"], r["metadata"].get("namespace"), r["metadata"]["name"]): r for r in resources}.values())


_foreign = st.sampled_from(["ServiceAccount", "Role", "Secret", "Service", "Deployment", "NetworkPolicy"]).map(
    lambda kind: {
        "kind": kind,
        "metadata": metadata("llama-fairpool-config" if kind == "Secret" else "llama-fairpool"),
    }
)

worlds: st.SearchStrategy[list[Any]] = st.builds(
    lambda *parts: by_name(each for part in parts for each in part),
    st.lists(fair_pools(), min_size=1, max_size=1),
    st.lists(tenant_weights(), min_size=2, max_size=4),
    st.lists(_secrets, min_size=1, max_size=4),
    st.lists(LABELS.map(lambda labels: namespace("team", **labels)), max_size=1),
    st.lists(st.just(gateway_pod()), max_size=1),
    st.lists(_foreign, max_size=1),
)
"""One pool, and what it may depend on."""

_rivals = st.builds(
    lambda name, where, created, weight, keys, tenant: tenant_weight(
        name, where, meta={"creationTimestamp": created}, weight=weight, apiKeys=keys, **tenant
    ),
    NAMES,
    st.sampled_from([NAMESPACE, NAMESPACE, "team"]),
    _moments,
    st.integers(1, 1000),
    _BY_PATH["apiKeys"],
    st.fixed_dictionaries({}, optional={"tenantName": _BY_PATH["tenantName"]}),
)
crowds: st.SearchStrategy[list[Any]] = st.builds(
    lambda *parts: by_name(each for part in parts for each in part),
    st.just([fair_pool(allowedTenants={"namespaces": {"from": "All"}})]),
    st.lists(_rivals, min_size=2, max_size=6),
    st.lists(_secrets, max_size=4),
)
"""One pool with many TenantWeights that want the same names and keys."""
