"""The definitions in `crds/` and the models that read resources say the same, field by field."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from support.cluster.bad_resources import patched
from support.cluster.client import FAIR_POOL, TENANT_WEIGHT
from support.cluster.definitions import definitions, fair_pool, tenant_weight
from support.definition_checks import admits, differences, special_texts
from support.definition_walks import defaulted, fields, matching, obeys, schema_of

from fairpool_gateway.config import AcceleratorSettings
from fairpool_gateway.config.names import _HEADERS_WITH_A_MEANING, Digest
from fairpool_gateway.config.paths import _MANAGES, ExtraPath
from fairpool_operator.resources import Accelerators, FairPool, TenantWeight

POOLS, WEIGHTS = (schema_of(definition) for definition in definitions())
KINDS = {FAIR_POOL.name: (POOLS, FairPool, fair_pool), TENANT_WEIGHT.name: (WEIGHTS, TenantWeight, tenant_weight)}
SCHEMAS = [pytest.param(schema, id=kind) for kind, (schema, _, _) in KINDS.items()]
METADATA = {"uid": "1", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}


def compared(schema, model):
    """What differs in what a person or the operator writes; metadata is Kubernetes' own."""
    return [
        found
        for part in ("spec", "status")
        for found in differences(schema["properties"][part], model.model_fields[part].annotation, f".{part}")
    ]


def changed(schema, place, change):
    """The schema with a merge patch on the part at a place."""
    for step in reversed(place.split(".")):
        change = {"items": change} if step == "items" else {"properties": {step: change}}
    return patched(schema, change)


class TestModelsAndDefinitions:
    @pytest.mark.parametrize(("schema", "model"), [kind[:2] for kind in KINDS.values()], ids=KINDS)
    def test_have_the_same_fields_kinds_defaults_bounds_and_choices(self, schema, model):
        assert compared(schema, model) == []

    @pytest.mark.parametrize(
        ("place", "change", "told"),
        [
            ("spec", {"properties": {"slots": None}}, ".spec.slots: only in the model"),
            ("spec", {"properties": {"new": {"type": "string"}}}, ".spec.new: only in the definition"),
            ("spec", {"required": []}, ".spec.endpoints: required by the model only"),
            ("spec", {"required": ["endpoints", "models"]}, ".spec.models: required by the definition only"),
            ("spec.suspend", {"type": "string"}, ".spec.suspend: string in the definition"),
            ("spec.models.items", {"type": "integer"}, ".spec.models[]: integer in the definition"),
            ("spec.queue.timeout", {"x-kubernetes-validations": []}, ".spec.queue.timeout: string in the definition"),
            ("spec.queue.timeout", {"default": "60s"}, ".spec.queue.timeout: default 60.0 in the definition"),
            ("spec.queue", {"default": {"timeout": "60s"}}, ".spec.queue: default"),
            ("spec.queue.maxRequests", {"default": None}, ".spec.queue.maxRequests: default 4096 in the model only"),
            ("spec.models", {"default": ["llama"]}, ".spec.models: default ('llama',) in the definition"),
            ("spec.defaultWeight", {"maximum": 1001}, ".spec.defaultWeight: its maximum 1001 is refused"),
            ("spec.defaultWeight", {"maximum": 999}, ".spec.defaultWeight: 1000 is beyond its maximum"),
            ("spec.defaultWeight", {"minimum": 0}, ".spec.defaultWeight: its minimum 0 is refused"),
            ("spec.defaultWeight", {"minimum": 2}, ".spec.defaultWeight: 1 is beyond its minimum"),
            ("spec.authentication.type", {"enum": ["APIKey", "None"]}, ".spec.authentication.type: ['APIKey', 'None']"),
            ("status", {"properties": {"url": None}}, ".status.url: only in the model"),
            ("status.conditions.items", {"required": ["type"]}, ".status.conditions[].message: required by the model"),
        ],
    )
    def test_are_told_apart_by_whatever_differs(self, place, change, told):
        found = compared(changed(POOLS, place, change), FairPool)
        assert any(difference.startswith(told) for difference in found), found

    @pytest.mark.parametrize(("schema", "model", "smallest"), KINDS.values(), ids=KINDS)
    def test_fill_in_the_same(self, schema, model, smallest):
        document = smallest("team")
        document["metadata"] |= METADATA
        filled = {**document, "spec": defaulted(schema["properties"]["spec"], document["spec"])}
        assert model.model_validate(filled) == model.model_validate(document)
        assert filled["spec"] != document["spec"]

    def test_name_the_same_accelerators_as_the_gateway(self):
        assert Accelerators().written() == AcceleratorSettings().model_dump(mode="json")


class TestDefinitions:
    @pytest.mark.parametrize("schema", SCHEMAS)
    def test_describe_every_field_in_a_sentence(self, schema):
        named = {place: part for place, part in fields(schema) if not place.endswith(("[]", ".*", ".metadata"))}
        assert [
            place for place, part in named.items() if not part.get("description", "").endswith((".", "prints."))
        ] == []

    @pytest.mark.parametrize("schema", SCHEMAS)
    def test_bound_every_list_map_text_and_number(self, schema):
        assert list(unbounded(schema)) == []

    @pytest.mark.parametrize(
        ("place", "bound"),
        [
            *(("models", "maxItems"), ("models.items", "maxLength"), ("queue.maxBytes", "maxLength")),
            *(("defaultWeight", "maximum"), ("defaultWeight", "minimum")),
            ("gateway.podTemplate.labels", "maxProperties"),
        ],
    )
    def test_would_be_told_unbounded(self, place, bound):
        schema = changed(POOLS, f"spec.{place}", {bound: None})
        assert list(unbounded(schema)) == [f".spec.{place.replace('.items', '[]')}"]

    def test_give_a_default_to_each_parent_of_one_that_can_be_left_out(self):
        lost = [
            place
            for place, part in fields(POOLS["properties"]["spec"])
            if any("default" in child for child in part.get("properties", {}).values())
            and "default" not in part
            and "required" not in part
        ]
        assert lost == []

    def test_say_the_same_in_a_parents_default_as_in_its_fields(self):
        for place, part in fields(POOLS["properties"]["spec"]):
            if isinstance(default := part.get("default"), dict):
                assert default == defaulted(part, {}), place


def unbounded(schema):
    for place, part in fields(schema):
        match part.get("type"):
            case "array" if "maxItems" not in part:
                yield place
            case "object" if "additionalProperties" in part and "maxProperties" not in part:
                yield place
            case "string" if not {"maxLength", "enum"} & part.keys() and place not in {".apiVersion", ".kind"}:
                yield place
            case "integer" if "minimum" not in part or (place.startswith(".spec") and "maximum" not in part):
                yield place
            case None if part.get("x-kubernetes-int-or-string") and "maxLength" not in part:
                yield place


TEXTS = [
    pytest.param(dict(fields(schema))[place], taken, id=place)
    for schema, model, _ in KINDS.values()
    for place, taken in special_texts(model.model_fields["spec"].annotation, ".spec")
    if not place.endswith(".digest")
]


def texts(schema):
    """Texts that nearly, or quite, obey a schema."""
    pattern = (matching(schema) or ["[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}"])[0]
    return st.from_regex(pattern.removeprefix("^").removesuffix("$"), fullmatch=True)


class TestTextsThatAreAdmitted:
    @pytest.mark.parametrize(("schema", "taken"), TEXTS)
    @settings(max_examples=30)
    @given(data=st.data())
    def test_can_be_read(self, schema, taken, data):
        text = data.draw(texts(schema))
        assume(obeys(schema, text))
        assert admits(TypeAdapter(taken), text)

    def test_are_looked_at_wherever_a_model_has_a_rule_of_its_own(self):
        assert {param.id.rpartition(".")[2] for param in TEXTS} == {
            *("models[]", "extraPaths[]", "serverName", "path", "header", "tenantName", "name"),
        }

    def test_would_not_all_be_read_if_a_rule_were_missing(self):
        schema = dict(fields(POOLS))[".spec.extraPaths[]"]
        assert not obeys(schema, "/v1/load_lora_adapter")
        assert obeys({**schema, "x-kubernetes-validations": []}, "/v1/load_lora_adapter")
        assert not admits(TypeAdapter(ExtraPath), "/v1/load_lora_adapter")

    @settings(max_examples=30)
    @given(st.from_regex(r"sha256:[0-9a-fA-F]{64}", fullmatch=True))
    def test_can_be_read_as_digests(self, text):
        assert admits(TypeAdapter(Digest), text)

    def test_name_no_path_that_the_gateway_knows_to_manage_engines(self):
        schema = dict(fields(POOLS))[".spec.extraPaths[]"]
        assert any(f"/(?:{_MANAGES.pattern})(?:/|$)" in rule["rule"] for rule in schema["x-kubernetes-validations"])

    def test_name_no_header_that_the_gateway_knows_to_have_a_meaning(self):
        schema = dict(fields(POOLS))[".spec.authentication.header"]
        assert [name for name in _HEADERS_WITH_A_MEANING if obeys(schema, name.title())] == []
