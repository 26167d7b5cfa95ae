"""Whatever is in files, `validate` says something of it, the same each time, and nothing that may be a key."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.cluster.bad_together import as_text
from support.cluster.definitions import fair_pool, tenant_weight
from support.odd_resources import STRANGE, odd_resources

from fairpool_operator.definitions import definitions, schema_of
from fairpool_operator.manifests import Manifests, read_text
from fairpool_operator.validate.documents import validate
from fairpool_operator.validate.rules import check_rules
from fairpool_operator.validate.server import check
from fairpool_operator.validate.shape import as_stored, unknown_fields

FILE = Path("all.yaml")
NOW = datetime(2026, 5, 1, tzinfo=UTC)
KINDS = st.sampled_from(["FairPool", "TenantWeight", "Secret", "Namespace", "FairPoolList", "Other", "", None, 7])
VERSIONS = st.sampled_from(["fairpool.dev/v1alpha1", "fairpool.dev/v2", "v1", "", None, 7])
NAMES = st.sampled_from(["llama", "search", "search-key", "default", ""])
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "name": NAMES | STRANGE,
        "namespace": NAMES | STRANGE,
        "generateName": NAMES | STRANGE,
        "labels": st.dictionaries(st.sampled_from(["fairpool.dev/keys", "a"]), STRANGE | st.just("true")) | STRANGE,
    },
)
STRANGERS = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": VERSIONS,
        "kind": KINDS,
        "metadata": PARTS | STRANGE,
        "spec": st.fixed_dictionaries(
            {}, optional={"poolRef": PARTS | STRANGE, "endpoints": STRANGE, "apiKeys": STRANGE}
        )
        | STRANGE,
        "status": STRANGE,
        "data": st.dictionaries(NAMES, STRANGE) | STRANGE,
        "stringData": st.dictionaries(NAMES, STRANGE) | STRANGE,
        "items": STRANGE,
    },
)
DOCUMENTS = st.lists(odd_resources() | STRANGERS | STRANGE, min_size=1, max_size=6)
QUICKLY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def said(text):
    read = tuple(read_text(text, FILE))
    problems = tuple(each for each in read if not hasattr(each, "place"))
    return validate(Manifests((FILE,), tuple(each for each in read if each not in problems), problems), "default", NOW)


def in_its_lines(found, text):
    lines = text.count("\n") + 1
    return all(1 <= each.line <= lines and each.message for each in found.findings)


class TestWhateverIsInAFile:
    @QUICKLY
    @given(DOCUMENTS)
    def test_it_comes_to_findings_in_its_lines_and_to_the_same_again(self, documents):
        text = as_text(documents)
        found = said(text)
        assert found == said(text)
        assert in_its_lines(found, text)

    def test_a_line_that_is_in_another_text_would_be_caught(self):
        text = as_text([tenant_weight("default", weight=0)])
        assert in_its_lines(said(text), text)
        assert not in_its_lines(said(text), text.replace("\n", " "))


def stored(resource):
    return as_stored(schema_of(definitions()[resource["kind"]]), resource)


def is_whole(store, resource):
    """Whether nothing unknown is stored, and nothing is missing that comes when it is stored again."""
    once = store(resource)
    return not list(unknown_fields(schema_of(definitions()[resource["kind"]]), once)) and store(once) == once


def known(checker, resource):
    return [cause for cause in checker(resource)[0] if cause.message != "unknown field"]


def is_wrong_still(checker, resource):
    """Whether the same is wrong with a resource when its defaults are written out."""
    return known(checker, {**resource, "spec": check(resource)[1]["spec"]}) == known(checker, resource)


def without_defaults(resource):
    """A checker to be caught: it takes nothing for given."""
    schema = schema_of(definitions()[resource["kind"]])
    return list(check_rules(schema, resource)), resource


class TestWhateverAResourceIs:
    @QUICKLY
    @given(odd_resources())
    def test_what_is_stored_has_no_unknown_field_and_is_stored_as_it_is(self, resource):
        assert is_whole(stored, resource)

    def test_to_store_it_as_it_is_would_be_caught(self):
        assert not is_whole(lambda resource: resource, fair_pool("default", unknown=1))
        assert not is_whole(
            lambda resource: {**resource, "spec": {**resource["spec"], "more": 1}}, fair_pool("default")
        )

    @QUICKLY
    @given(odd_resources())
    def test_the_same_is_wrong_with_it_once_its_defaults_are_there(self, resource):
        assert is_wrong_still(check, resource)

    def test_to_leave_out_defaults_would_be_caught(self):
        assert not is_wrong_still(without_defaults, fair_pool("default", queue={"maxRequests": 1}))
