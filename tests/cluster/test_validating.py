"""What `fairpool-operator validate` says without a cluster is what a real one says: the server, then the operator."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.cluster.bad_resources import SENT, bad_resources
from support.cluster.bad_together import PASTED, TEAM_LABELS, as_text, bad_together
from support.cluster.client import EVENT, FAIR_POOL, TENANT_WEIGHT, Kind, Refused
from support.cluster.definitions import dry_run
from support.cluster.kubectl import KubectlFailed
from support.cluster.namespaces import new_namespace
from support.cluster.resources import condition
from support.cluster.waiting import eventually
from support.odd_resources import odd_resources
from support.odd_secrets import odd_secrets
from support.yaml_values import VALUES

from fairpool_operator.manifests import Manifests, Problem, read_text
from fairpool_operator.validate import server
from fairpool_operator.validate.causes import rendered
from fairpool_operator.validate.documents import validate
from fairpool_operator.validate.kinds import API

NAMESPACE = "default"
"""Where nothing is made, only tried."""
FILE = Path("all.yaml")
POOL = "apiVersion: fairpool.dev/v1alpha1\nkind: FairPool\nmetadata: {name: llama}\n"
JSON_POOL = '{"apiVersion": "fairpool.dev/v1alpha1", "kind": "FairPool", "metadata": {"name": "llama"}}'
JSON_SECRET = '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "llama"}}'

UNKNOWN = re.compile(r'unknown field "([^"]*)"')
UNREAD = re.compile(r"json: cannot unmarshal \S+ into Go struct field (?!ObjectMeta\b)\w+\.(\w+) ")
UNREADABLE = "cannot be read"
"""What counts as a message of the server's where it could not read a field, of which it names the outermost part."""
_VALUE = r'(?:"(?:[^"\\]|\\.)*"|\{.*\}|null|-?[0-9.]+)'
SHOWN = re.compile(
    rf"(?<=^Invalid value): {_VALUE}(?=: )|(?<=^Unsupported value): {_VALUE}|(?<=^Duplicate value): {_VALUE}$"
    rf"|(?<= of type date-time): {_VALUE}$"
)
UNEVALUATED = re.compile(r"(?<=^Invalid value: ).* evaluating rule: ")
"""What a message of the server holds beside what is said here: the value, and why a rule could not be evaluated."""
UNREAD_JSON = re.compile(r'(?<=^Invalid value: )"<secret contents redacted>": .*')
"""Why it could not read a value that has to be in JSON, which repeats some of it."""


async def said(admin, resource):
    """What the server says of a resource, as pairs of a place and a message; nothing if it would make it."""
    try:
        await dry_run(admin, resource)
    except Refused as refusal:
        refused = refusal
    else:
        return set()
    if refused.status == 422:
        return {(place.removeprefix("<nil>"), message) for place, message in refused.causes}
    assert refused.status == 400, refused
    unknown = {(place, "unknown field") for place in UNKNOWN.findall(refused.message)}
    return unknown or {(unread(refused.message), UNREADABLE)}


def unread(message):
    """The field that could not be read: of metadata no more is said than that, nor of what is told in other words."""
    found = UNREAD.search(message)
    return found[1] if found else "metadata"


async def all_said(admin, resources):
    return await asyncio.gather(*(said(admin, resource) for resource in resources))


def places(resource, told, check=server.check):
    """The places that the server names, and those that are named without one, as far as they can be compared."""
    causes = [(rendered(cause.path), cause.message) for cause in check(resource)[0]]
    if any(message == "unknown field" for _, message in told):  # which is all that the server then says
        causes = [cause for cause in causes if cause[1] == "unknown field"]
    if unreadable := {place for place, message in told if message == UNREADABLE}:  # and it says no more than this
        causes = [(outermost, "") for place, _ in causes if (outermost := re.match(r"\w*", place)[0]) in unreadable]
    return {place for place, _ in told}, {place for place, _ in causes}


def without_value(message):
    message = UNREAD_JSON.sub("has to be an object in JSON", message)
    return UNEVALUATED.sub("", SHOWN.sub("", message))


def of_the_definition(told):
    """What is told but of metadata, of which it is said here in words of our own what would be right."""
    return {(place, message) for place, message in told if not place.startswith("metadata")}


def could_be_read(told):
    """Whether the server got as far as to say something of the resource in words that others can have."""
    return all(message != UNREADABLE for _, message in told)


def unlike(resources, told, check=server.check):
    """The resources about which the two do not agree."""
    return [
        (resource, *there_and_here)
        for resource, words in zip(resources, told, strict=True)
        if (there_and_here := places(resource, words, check))[0] != there_and_here[1]
    ]


def without_rules(resource):
    """A checker to be caught: it forgets the rules in CEL."""
    causes, stored = server.check(resource)
    if resource["kind"] not in server.definitions():
        return causes, stored
    broken = {
        (cause.path, cause.message)
        for cause in server.check_rules(server.schema_of(server.definitions()[resource["kind"]]), stored)
    }
    return [cause for cause in causes if (cause.path, cause.message) not in broken], stored


@pytest.mark.usefixtures("crds")
class TestFiles:
    async def test_hold_for_kubectl_what_they_are_read_as(self, kubectl):
        values = "".join(f"  v{number}: {text}\n" for number, text in enumerate(VALUES))
        file = f"apiVersion: fairpool.dev/v1alpha1\nkind: FairPool\nmetadata: {{name: llama}}\nspec:\n{values}"
        printed = await kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", stdin=file)
        spec = json.loads(printed, parse_int=number_of)["spec"]
        found = {text: spec[f"v{number}"] for number, text in enumerate(VALUES)}
        assert {text: repr(what) for text, what in found.items()} == {text: repr(what) for text, what in VALUES.items()}

    @pytest.mark.parametrize(
        "text",
        [
            f"{POOL}--- # the next\n{POOL}",
            f"{POOL}--- {{}}\n",
            f"%YAML 1.1\n---\n{POOL}",
            f"# Nothing.\n---\n{POOL}",
            f"{POOL}---\n# Nothing.\n",
            f"{JSON_POOL}\n\t{JSON_POOL}\n",
            JSON_POOL.replace("llama", "\\ud83d\\ude00"),
            f"{JSON_POOL}\n---\n{POOL}",
            f"\ufeff{POOL}---\n\ufeff{POOL}--- # the next\r\n\ufeff{POOL}",
            POOL.replace("name: llama", "name: &a llama, labels: {a: &a b, c: *a}"),
            f"apiVersion: v1\nkind: List\nitems: [{JSON_SECRET}]\n",
            f"kind: List\nitems: [{JSON_SECRET}]\n",
            "apiVersion: v1\nkind: List\n",
        ],
    )
    async def test_are_as_many_resources_for_kubectl_or_none(self, kubectl, text):
        found = list(read_text(text, FILE))
        problems = [each for each in found if isinstance(each, Problem)]
        try:
            printed = await kubectl("create", "--dry-run=client", "-o", "name", "-f", "-", stdin=text)
        except KubectlFailed:
            assert problems
        else:
            assert (len(printed.split()), problems) == (len(found), [])


def number_of(digits):
    """An integer as JSON's readers in Go have it: a float where 64 bits are too few."""
    return int(digits) if -(2**63) <= int(digits) < 2**63 else float(digits)


@SENT
@pytest.mark.usefixtures("crds")
class TestTheTable:
    async def test_has_the_same_places_and_words_from_both(self, admin):
        resources = [row.document(NAMESPACE) for row in bad_resources()]
        told = await all_said(admin, resources)
        assert unlike(resources, told) == []
        for resource, words in zip(resources, told, strict=True):
            if not could_be_read(words):
                continue
            here = {(rendered(cause.path), without_value(cause.message)) for cause in server.check(resource)[0]}
            there = {(place, without_value(message)) for place, message in words}
            assert of_the_definition(here) == of_the_definition(there)

    async def test_tells_a_checker_without_rules(self, admin):
        resources = [row.document(NAMESPACE) for row in bad_resources()]
        assert len(unlike(resources, await all_said(admin, resources), without_rules)) > 20


@pytest.mark.usefixtures("crds")
class TestWhateverMayBeWrong:
    @settings(
        max_examples=8,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(resources=st.lists(odd_resources() | odd_secrets(), min_size=20, max_size=20))
    async def test_is_told_at_the_same_places_by_both(self, admin, resources):
        assert unlike(resources, await all_said(admin, resources)) == []


class TestEditsOfSecrets:
    async def test_are_refused_where_and_as_it_is_said_here(self, admin, namespace):
        plain = {"apiVersion": "v1", "kind": "Secret", "stringData": {"a": "1"}}
        fixed = {**plain, "metadata": {"name": "fixed", "namespace": namespace}, "immutable": True}
        typed = {**plain, "metadata": {"name": "typed", "namespace": namespace}, "type": "any/other"}
        opaque = {**plain, "metadata": {"name": "opaque", "namespace": namespace}}
        for before, refused, taken in (
            (fixed, ({"stringData": {"a": "2"}}, {"stringData": {}}, {"immutable": False}, {"type": "any/other"}), {}),
            (typed, ({"type": None}, {"type": ""}, {"type": "Opaque"}), {"stringData": {"a": "2"}}),
            (opaque, ({"type": "any/other"},), {"type": "Opaque"}),
        ):
            await admin.create(before)
            for change in (*refused, taken):
                edited = {**before, **change}
                told = set()
                try:
                    await admin.replace(edited)
                except Refused as problem:
                    told = {(place, without_value(message)) for place, message in problem.causes}
                assert told == {(rendered(cause.path), cause.message) for cause in server.check(edited, before)[0]}
                assert bool(told) == (change is not taken)


class TestResourcesTogether:
    async def test_are_refused_by_the_operator_where_and_as_it_is_said_here(self, operator, admin, namespace):
        async with new_namespace(admin, "team", TEAM_LABELS) as team:
            cases = bad_together(namespace, team)
            documents = [document for case in cases for document in case.documents]
            team_is = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team, "labels": TEAM_LABELS}}
            read = tuple(read_text(as_text([team_is, *documents]), FILE))
            here = {identity(each): set() for each in documents if Kind.of(each) in (FAIR_POOL, TENANT_WEIGHT)}
            for each in validate(Manifests((FILE,), read, ()), namespace, datetime.now(UTC)).findings:
                here[each.kind, each.namespace, each.name].add(each.message)
            for document in documents:
                await admin.create(document)
            decided = [
                await eventually(admin, Kind(API, kind), name, where, says_just(messages))
                for (kind, where, name), messages in here.items()
            ]
            events = await admin.list(EVENT, namespace)
        assert {(kind, name) for (kind, _, name), messages in here.items() if messages} == {
            (each.kind, each.name) for case in cases for each in case.told
        }
        assert PASTED not in f"{[each['status'] for each in decided]} {events} {operator.said}"


def identity(resource):
    return resource["kind"], resource["metadata"]["namespace"], resource["metadata"]["name"]


def says_just(messages):
    """Whether the operator has said what it makes of a resource, and refuses it for this and nothing else."""

    def holds(resource):
        accepted, refused = condition(resource, "Accepted"), refused_for(resource)
        is_decided = accepted and accepted["reason"] != "Pending"
        return is_decided and bool(refused) == bool(messages) and all(message in refused for message in messages)

    return holds


def refused_for(resource):
    """Why the operator refuses a resource, or a reference of it."""
    said = (condition(resource, each) for each in ("Accepted", "ResolvedRefs"))
    return " ".join(each["message"] for each in said if each and each["status"] == "False")
