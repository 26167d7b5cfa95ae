"""What `validate` checks values by: all that definitions say, and Kubernetes' own notions of amounts and addresses."""

from __future__ import annotations

from fractions import Fraction

import pytest
from support.cluster.bad_resources import bad_resources
from support.cluster.definitions import fair_pool, tenant_weight
from support.definition_walks import parts

from fairpool_operator.definitions import definitions, schema_of
from fairpool_operator.validate.causes import rendered
from fairpool_operator.validate.metadata import check_types
from fairpool_operator.validate.quantities import is_cidr, is_ip, quantity
from fairpool_operator.validate.rules import check_rules, matches
from fairpool_operator.validate.server import check
from fairpool_operator.validate.shape import as_stored
from fairpool_operator.validate.values import FORMATS, KEYWORDS, check_values

SCHEMAS = [schema_of(definition) for definition in definitions().values()]
RULE_KEYWORDS = {"rule", "message", "fieldPath", "reason"}


def not_understood(schema):
    """What a schema says that is not looked at."""
    yield from schema.keys() - KEYWORDS
    yield from {schema.get("format", "int32")} - FORMATS
    yield from (
        keyword for rule in schema.get("x-kubernetes-validations", ()) for keyword in rule.keys() - RULE_KEYWORDS
    )
    if "additionalProperties" in schema and not isinstance(schema["additionalProperties"], dict):
        yield "additionalProperties"


class TestTheDefinitions:
    def test_say_nothing_that_is_not_looked_at(self):
        assert [said for schema in SCHEMAS for part in parts(schema) for said in not_understood(part)] == []

    @pytest.mark.parametrize(
        "more",
        [
            {"multipleOf": 2},
            {"format": "ipv4"},
            {"additionalProperties": True},
            {"x-kubernetes-validations": [{"rule": "true", "messageExpression": "'a'"}]},
        ],
    )
    def test_would_be_told_if_they_did(self, more):
        assert list(not_understood({"type": "string", **more}))


class TestARow:
    """Of the table of resources that the server refuses; that the server says the same is shown with one."""

    @pytest.mark.parametrize("row", bad_resources(), ids=lambda row: row.case)
    def test_is_refused_at_its_place_in_its_words(self, row):
        causes, _ = check(row.document("default"))
        told = [f"{rendered(each.path)}: {each.message}" for each in causes]
        assert any(row.place in each and row.says in each for each in told), told

    def test_would_be_told_if_nothing_were_wrong(self):
        assert [check(good)[0] for good in (fair_pool("default"), tenant_weight("default"))] == [[], []]

    @pytest.mark.parametrize("field", ["tenantName", "weight", "apiKeys", "poolRef", "sk-that-nobody-may-see"])
    def test_repeats_nothing_that_may_be_a_key(self, field):
        key = "sk-that nobody may see"
        values = key, [key], {key: key}, [{"name": key, "digest": key}], {"name": key}
        weight = tenant_weight("default")
        told = [check({**weight, "spec": {**weight["spec"], field: value}})[0] for value in values]
        assert all(told)
        assert "nobody may see" not in str([each.message for causes in told for each in causes])


class TestRules:
    def test_say_where_and_why_they_fail(self):
        rule = {"rule": "self.a > 1", "message": " must be more ", "fieldPath": ".a.b", "reason": "FieldValueForbidden"}
        (found,) = check_rules({"x-kubernetes-validations": [rule]}, {"a": 1}, ("spec",))
        assert (found.path, found.message) == (("spec", "a", "b"), "Forbidden: must be more")

    @pytest.mark.parametrize("rule", ["self.b > 1", "duration(self.a) > duration('1s')", "self.a.size() > 1"])
    def test_that_cannot_be_evaluated_have_failed(self, rule):
        assert len(list(check_rules({"x-kubernetes-validations": [{"rule": rule}]}, {"a": 1}))) == 1

    def test_see_what_is_behind_a_character_that_ends_texts_elsewhere(self):
        rule = {"x-kubernetes-validations": [{"rule": "!self.a.exists(each, each.contains('b'))"}]}
        assert len(list(check_rules(rule, {"a": ["a\0b"]}))) == 1

    @pytest.mark.parametrize(
        ("before", "breaks"),
        [
            (None, False),
            ({}, False),
            ({"a": {"b": 1}, "c": 5}, False),
            ({"a": {"b": 2}}, True),
            ({"a": [1]}, True),
        ],
    )
    def test_about_edits_are_looked_at_where_there_was_something(self, before, breaks):
        schema = {"properties": {"a": {"x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}}
        found = [each.path for each in check_rules(schema, {"a": {"b": 1}}, before=before)]
        assert found == [("a",)] * breaks

    def test_about_edits_are_for_no_items_of_lists(self):
        schema = {"items": {"x-kubernetes-validations": [{"rule": "self == oldSelf"}]}}
        assert list(check_rules(schema, [1], before=[2])) == []

    @pytest.mark.parametrize(
        ("pattern", "text", "does"),
        [
            ("^a$", "a", True),
            ("^a$", "a\n", False),
            ("^a$", "a\0b", False),
            ("^a?$", "\0", False),
            ("b", "abc", True),
            (r"^\d$", "٣", False),
            ("^(a+)+$", "a" * 40 + "b", False),
        ],
    )
    def test_have_patterns_as_the_server_reads_them(self, pattern, text, does):
        assert matches(text, pattern) is does


class TestAmounts:
    @pytest.mark.parametrize(
        ("text", "amount"),
        [
            ("0", 0),
            ("1", 1),
            ("500m", Fraction(1, 2)),
            ("1.5Gi", 3 * 2**29),
            (".5", Fraction(1, 2)),
            ("5.", 5),
            ("+1k", 1000),
            ("-1Ki", -1024),
            ("12e6", 12_000_000),
            ("1E", 10**18),
            ("1E2", 100),
            ("1e-12", Fraction(1, 10**9)),
            ("16Ei", 2**63 - 1),
            *((nothing, 0) for nothing in ("-", "+", ".", "Ki", "-m", ".G", "e3")),
        ],
    )
    def test_are_what_kubernetes_takes_them_for(self, text, amount):
        assert quantity(text) == amount

    @pytest.mark.parametrize("text", ["", "much", "1.5.5", "1KiB", "1 Gi", "0x10", "1e", "--1", "1ki", "٣", "1\n"])
    def test_that_are_none_are_refused(self, text):
        with pytest.raises(ValueError, match="not a quantity"):
            quantity(text)


class TestAddresses:
    @pytest.mark.parametrize("text", ["10.0.0.1", "::1", "2001:db8::", "::1.2.3.4"])
    def test_are_known(self, text):
        assert is_ip(text)

    @pytest.mark.parametrize(
        "text", ["", "10.0.0", "10.0.0.01", "fe80::1%eth0", "::ffff:1.2.3.4", "engine.local", "10.0.0.1/8"]
    )
    def test_that_are_none_are_not(self, text):
        assert not is_ip(text)

    @pytest.mark.parametrize("text", ["10.0.0.0/8", "10.1.2.3/8", "::/0", "2001:db8::/32", "10.0.0.1/32"])
    def test_have_ranges(self, text):
        assert is_cidr(text)

    @pytest.mark.parametrize(
        "text", ["10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/08", "10.0.0.0/", "::ffff:1.2.3.4/120", "a/8"]
    )
    def test_have_ranges_that_are_none(self, text):
        assert not is_cidr(text)


class TestWholeNumbers:
    WRONG_TYPE = 'Invalid value: "number": a in body must be of type integer: "number"'
    NOT_WHOLE = 'Invalid value: "": Checked value must be of type integer (default format) in a'

    @pytest.mark.parametrize(
        ("value", "told"),
        [
            (2.5, [WRONG_TYPE, NOT_WHOLE]),
            (2.0**53 - 1, []),
            (2.0**53, [WRONG_TYPE]),
            (-(2.0**53), [WRONG_TYPE]),
            (2.0**63, [WRONG_TYPE, NOT_WHOLE]),
        ],
    )
    def test_are_those_that_a_float_holds_exactly(self, value, told):
        assert [each.message for each in check_values({"type": "integer"}, value, matches, ("a",))] == told


class TestNulls:
    @pytest.mark.parametrize(
        ("schema", "kept"),
        [
            ({"type": "integer"}, {}),
            ({"type": "integer", "nullable": True}, {"a": None}),
            ({"type": "integer", "default": 7}, {"a": 7}),
            ({"type": "integer", "nullable": True, "default": 7}, {"a": None}),
        ],
    )
    def test_are_nothing_but_where_they_may_be(self, schema, kept):
        assert as_stored({"type": "object", "properties": {"a": schema}}, {"a": None}) == kept


class TestNothing:
    def test_is_wrong_with_a_value_of_a_type_that_fits(self):
        fits = {"type": "object", "properties": {"a": {"type": "integer", "nullable": True}}}
        assert [list(check_values(fits, {"a": value}, matches)) for value in (None, 1, 2.0)] == [[], [], []]

    def test_is_wrong_with_metadata_that_is_empty(self):
        assert list(check_types(None)) == []
        assert list(check_types({"labels": None, "name": None})) == []
