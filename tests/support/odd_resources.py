"""Resources that are nearly right, drawn from the CustomResourceDefinitions: at any place something may be wrong.

What is wrong is what people and programs get wrong: a value of another type, one beside a bound, nothing where
something is needed, a text that is nearly what a pattern asks for, an item twice, a field that there is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st
from support.cluster.definitions import fair_pool, tenant_weight
from support.crd_strategies import DURATIONS, SIZES, drawn_from

from fairpool_operator.definitions import definitions, schema_of

Schema = Mapping[str, Any]

STRANGE = st.sampled_from(
    [None, True, 0, -1, 7, 1.5, 1e20, "", "x", "7", [], {}, [None], ["x"], {"a": None}, {"a": "b"}]
)
TEXTS = st.sampled_from(
    [
        "",
        "a",
        "-",
        "A_b",
        "a b",
        "a\n",
        "é",
        "a/b",
        "a.b",
        "1",
        "10.0.0.0/8",
        "::1",
        "::ffff:1.2.3.4",
        "0s",
        "25h",
        "0Ki",
    ]
)
AMOUNTS = st.sampled_from([-1, 0, 2**41, 1.5, 1e20, "1.5", "500m", "1e3", "2Ti", "0.1", "1E"])
KEYS = st.sampled_from(["a", "example.com/b", "fairpool.dev/c", "d e", "/f", "g" * 64])
OFTEN = 12
"""One place in so many is wrong."""


@st.composite
def nearly(draw: st.DrawFn, schema: Schema, path: tuple[str, ...] = ()) -> Any:
    """A value that a schema allows, or nearly so."""
    chance = draw(st.integers(1, OFTEN))
    if chance == 1:
        return draw(STRANGE)
    if chance > OFTEN - 2:
        return draw(drawn_from(schema, path))
    return _NEARLY["amount" if schema.get("x-kubernetes-int-or-string") else schema["type"]](draw, schema, path)


def _object(draw: st.DrawFn, schema: Schema, path: tuple[str, ...]) -> Any:
    if "additionalProperties" in schema:
        return draw(st.dictionaries(KEYS, nearly(schema["additionalProperties"], path), max_size=3))
    names = draw(st.lists(st.sampled_from(sorted(schema["properties"])), max_size=3, unique=True))
    needed = list(schema.get("required", ()))[: None if draw(st.integers(1, OFTEN)) > 1 else 0]
    found = {name: draw(nearly(schema["properties"][name], (*path, name))) for name in dict.fromkeys(needed + names)}
    return {**found, "unknown": draw(STRANGE)} if draw(st.integers(1, 5 * OFTEN)) == 1 else found


def _array(draw: st.DrawFn, schema: Schema, path: tuple[str, ...]) -> Any:
    found = draw(st.lists(nearly(schema["items"], path), max_size=3))
    return found + found[:1] if draw(st.integers(1, OFTEN)) == 1 else found


def _text(draw: st.DrawFn, schema: Schema, path: tuple[str, ...]) -> Any:
    long = schema.get("maxLength", 8)
    edges = st.sampled_from([*schema.get("enum", ["a" * long]), "a" * (long + 1)])
    return draw(st.one_of(TEXTS, DURATIONS, drawn_from(schema, path), edges))


def _integer(draw: st.DrawFn, schema: Schema, _path: tuple[str, ...]) -> Any:
    least, most = schema.get("minimum", 0), schema.get("maximum", 2**31 - 1)
    return draw(
        st.sampled_from([least, most, most, least - 1, most + 1, 2**31, 2**40, -(2**31) - 1, 2.5, float(2**60)])
    )


_NEARLY: Mapping[str, Callable[[st.DrawFn, Schema, tuple[str, ...]], Any]] = {
    "amount": lambda draw, *_: draw(SIZES | TEXTS | AMOUNTS),
    "array": _array,
    "boolean": lambda draw, *_: draw(st.booleans()),
    "integer": _integer,
    "object": _object,
    "string": _text,
}

NAMES = st.sampled_from(["a", "llama", "a" * 50, "a" * 51, "70b", "a.b", "A", "a_b", "-a", "", "a" * 254])
LABELS = st.dictionaries(
    st.sampled_from(["a", "example.com/b", "A B", "/c", "a/b/c", "d" * 64, ""]),
    st.sampled_from(["", "b", "B-1", "-", "b c", "b" * 64]),
    max_size=2,
)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "name": NAMES,
        "labels": LABELS | st.none(),
        "annotations": LABELS,
        "finalizers": st.lists(
            st.sampled_from(["a", "example.com/b", "a b", None, "orphan", "foregroundDeletion"]), max_size=3
        ),
        "generateName": st.sampled_from(["", "a-", "A-", "a.", "a.-", "a" * 60, "a" * 254]),
        "ownerReferences": st.lists(
            st.fixed_dictionaries(
                {
                    "apiVersion": st.sampled_from(["v1", "v1", "a/v1", "a/b/c", "", "/", "a/"]),
                    "kind": st.sampled_from(["Pod", "Event"]),
                    "name": st.just("p"),
                },
                optional={"uid": st.just("1"), "controller": st.booleans() | st.none()},
            ),
            max_size=2,
        ),
        "unknown": STRANGE,
        "creationTimestamp": st.sampled_from([None, "2026-01-01T00:00:00Z", "2026-13-01T00:00:00Z", "yesterday", ""]),
        "resourceVersion": st.sampled_from(["", "0", "7", "x", None]),
        "uid": st.sampled_from(["", "7"]),
        "generation": st.sampled_from([0, 7, -1]),
        "managedFields": st.sampled_from(
            [
                [],
                [{}],
                [{"manager": "a", "operation": "Apply", "apiVersion": "v1"}],
                None,
                [None],
                [7],
                [{"unknown": 1, "fieldsV1": {"f:a": {}}}],
                [{"manager": 7}],
                [{"time": "yesterday"}],
            ]
        ),
        "deletionGracePeriodSeconds": st.sampled_from([0, -1, 7]),
        "selfLink": TEXTS,
    },
)


@st.composite
def odd_resources(draw: st.DrawFn) -> Any:
    """A FairPool or a TenantWeight in which something may be wrong."""
    definition, smallest = draw(
        st.sampled_from(list(zip(definitions().values(), (fair_pool, tenant_weight), strict=True)))
    )
    specs = schema_of(definition)["properties"]["spec"]
    some = draw(st.lists(st.sampled_from(sorted(specs["properties"])), max_size=3, unique=True))
    spec = {name: draw(nearly(specs["properties"][name], (name,))) for name in some}
    resource = smallest("default", **spec)
    if draw(st.integers(1, OFTEN // 2)) == 1:
        resource["metadata"] = {**resource["metadata"], **draw(METADATA)}
    return resource
