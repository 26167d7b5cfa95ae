"""Which resources are in force: those of the files, and of what cannot be used the last that could."""

from __future__ import annotations

import re

import pytest
from support.permissions import minded
from support.up import namespace, pool, secret, weight, write

from fairpool_lab.up.resources import Resources
from fairpool_operator.manifests import read
from fairpool_operator.view import PoolKey

LLAMA = PoolKey("default", "llama")


def test_what_is_edited_counts(files):
    files.write("tenants", weight("search", weight=500))
    assert files.taken() == []
    assert files.weights() == {"search": 500}


def test_what_cannot_be_used_stays_as_it_was_and_the_rest_of_the_file_counts(files):
    files.write("tenants", weight("search", weight=5000), weight("batch", weight=200))
    [problem] = files.taken()
    assert problem.startswith("tenants.yaml:13: ")
    assert "weight" in problem
    assert problem.endswith("(its last good edition stays in force)")
    assert files.weights() == {"search": 300, "batch": 200}


def test_what_a_server_stores_and_nobody_can_read_stays_as_it_was(files):
    keys = [{"name": "first", "secretKeyRef": {"name": "keys", "key": "search"}, "notAfter": []}]
    files.write("tenants", weight("search", weight=500, apiKeys=keys), weight("batch", weight=200))
    [problem] = files.taken()
    assert problem.startswith(
        "tenants.yaml:5: TenantWeight default/search: this operator cannot read spec.apiKeys.0.notAfter: "
    )
    assert problem.endswith("(its last good edition stays in force)")
    assert files.weights() == {"search": 300, "batch": 200}


def test_what_cannot_be_changed_stays_as_it_was_and_can_be_made_anew(files):
    files.write("tenants", weight("search", weight=500, of="mini"), weight("batch", weight=200))
    [problem] = files.taken()
    assert problem.startswith(
        "tenants.yaml:6: TenantWeight default/search: spec.poolRef: Invalid value: cannot be changed, for "
    )
    assert problem.endswith("(its last good edition stays in force)")
    assert files.weights() == {"search": 300, "batch": 200}
    files.write("tenants", weight("batch", weight=200))
    assert files.taken() == []
    files.write("tenants", weight("search", of="mini"), weight("batch", weight=200))
    assert files.taken() == []
    assert files.weights() == {"batch": 200}


def test_those_of_one_generate_name_may_be_of_other_pools_when_one_before_them_is_gone(files):
    def generated(tenant: str, of: str) -> dict:
        return {**weight(tenant, of=of, tenantName=tenant), "metadata": {"generateName": "team-"}}

    files.write("tenants", generated("one", "mini"), generated("two", "llama"))
    assert files.taken() == []
    files.write("tenants", generated("two", "llama"))
    assert files.taken() == []
    assert files.weights() == {"two": None}


def test_what_is_wrong_with_all_of_one_is_told_with_its_name(files):
    files.write("pool", pool("p" * 51))
    problem, stays = files.taken()
    assert stays.endswith(" that is found in no file stays until this is corrected: FairPool default/llama")
    assert problem.startswith(f"pool.yaml:1: FairPool default/{'p' * 51}: Invalid value: ")


def test_what_never_could_be_used_is_not_there(files):
    files.write("more", weight("third", weight=0))
    [problem] = files.taken()
    assert "stays in force" not in problem
    assert "third" not in files.weights()


def test_a_file_that_is_no_yaml_keeps_what_was_in_it(files):
    (files.directory / "tenants.yaml").write_text("spec: {", encoding="utf-8")
    problem, stays = files.taken()
    assert problem.startswith("tenants.yaml:")
    tenants = "TenantWeight default/batch, TenantWeight default/search"
    assert stays.endswith(f": 2 resources that are found in no file stay until this is corrected: {tenants}")
    assert files.weights() == {"search": 300, "batch": 100}


def test_of_a_file_that_is_yaml_in_part_only_nothing_is_taken_away_and_what_is_new_counts(files):
    path = files.directory / "tenants.yaml"
    write(path, weight("search", weight=400))
    path.write_text(path.read_text(encoding="utf-8") + "---\nspec: {\n", encoding="utf-8")
    _, stays = files.taken()
    assert stays.endswith(" that is found in no file stays until this is corrected: TenantWeight default/batch")
    assert files.weights() == {"search": 400, "batch": 100}


def test_a_directory_that_cannot_be_read_keeps_what_was_in_it(files):
    team = files.directory / "team"
    team.mkdir()
    (files.directory / "tenants.yaml").rename(team / "tenants.yaml")
    assert files.taken() == []
    team.chmod(0)
    with minded():
        problem, stays = files.taken()
    assert problem == "team:1: cannot be read: Permission denied"
    assert stays.startswith("team:1: 2 resources that are found in no file stay until this is corrected: ")
    assert files.weights() == {"search": 300, "batch": 100}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("kind: FairPool", "kind: FairPol"),
        ("kind: FairPool", "kidn: FairPool"),
        ("apiVersion: fairpool.dev/v1alpha1\nkind: FairPool", "apiVersion: v1\nkind: Secrt"),
        ("v1alpha1", "v1alpha2"),
        ("metadata:", "metdata:"),
        ("name: llama", "nmae: llama"),
        ("name: llama", "name: 5"),
        ("name: llama", "name: llama\n  namespace: 5"),
    ],
)
def test_what_cannot_be_told_for_what_it_is_takes_nothing_away(files, right, wrong):
    path = files.directory / "pool.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace(right, wrong), encoding="utf-8")
    assert files.taken()
    view = files.resources.store().view(LLAMA)
    assert view.pool is not None
    assert files.weights() == {"search": 300, "batch": 100}


def test_what_is_refused_under_a_name_that_is_anothers_takes_nothing_away(files):
    files.write("tenants", weight("batch", weight=5000), weight("batch", weight=200))
    _, stays = files.taken()
    assert stays.endswith(" that is found in no file stays until this is corrected: TenantWeight default/search")
    assert files.weights() == {"search": 300, "batch": 200}


def test_a_file_that_is_no_yaml_any_more_under_another_name_takes_nothing_away(files):
    path = files.directory / "tenants.yaml"
    path.write_text("spec: {", encoding="utf-8")
    path.rename(files.directory / "renamed.yaml")
    assert len(files.taken()) == 2
    assert files.weights() == {"search": 300, "batch": 100}


def test_what_was_taken_away_meanwhile_goes_once_everything_can_be_told_for_what_it_is(files):
    files.write("tenants", weight("search", weight=300), {**weight("third"), "kind": "TenantWieght"})
    assert len(files.taken()) == 2
    assert files.weights() == {"search": 300, "batch": 100}
    files.write("tenants", weight("search", weight=300))
    assert files.taken() == []
    assert files.weights() == {"search": 300}


def test_what_is_in_no_file_is_gone(files):
    (files.directory / "tenants.yaml").unlink()
    assert files.taken() == []
    assert files.weights() == {}


def test_a_move_to_another_file_changes_nothing(files):
    files.write("tenants", weight("batch", weight=100))
    files.write("other", weight("search", weight=300))
    assert files.taken() == []
    assert files.weights() == {"search": 300, "batch": 100}


def test_who_was_there_first_stays_the_older_wherever_it_stands(files):
    files.write("a", weight("new", weight=1))
    files.taken()
    files.write("tenants", weight("batch", weight=7), weight("search", weight=300))
    files.taken()
    assert list(files.weights()) == ["search", "batch", "new"]


def test_one_that_is_there_twice_counts_once_and_is_told_of_with_both_places(files):
    files.write("twice", weight("search", weight=900))
    [problem] = files.taken()
    first = f"{files.directory / 'tenants.yaml'}:1"
    where = "twice.yaml:1: TenantWeight default/search is in"
    assert problem == f"{where} {first} already, which counts: remove one of the two"
    assert files.weights()["search"] == 300


def test_other_kinds_are_counted_and_left_alone(files):
    files.write("other", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "engine"}})
    assert files.taken() == []
    assert files.resources.others == 1


def test_one_of_another_version_is_told_of(files):
    files.write("other", {**weight("third"), "apiVersion": "fairpool.dev/v1"})
    assert files.taken() == [
        "other.yaml:1: there is no TenantWeight in fairpool.dev/v1: fairpool.dev/v1alpha1 has FairPool and TenantWeight"
    ]


def test_those_of_one_generate_name_are_as_many_objects_and_stay_who_they_are(files):
    def generated(weighs):
        return {**weight("any", weight=weighs), "metadata": {"generateName": "team-"}}

    files.write("teams", generated(1), generated(2))
    assert files.taken() == []
    assert files.weights() == {"search": 300, "batch": 100, "team-00001": 1, "team-00002": 2}
    files.write("teams", generated(1), generated(7), {**secret("any"), "metadata": {"generateName": "team-"}})
    assert files.taken() == []
    assert files.weights() == {"search": 300, "batch": 100, "team-00001": 1, "team-00002": 7}
    place = files.resources.place("TenantWeight", "default", "team-00002", ("spec", "weight"))
    assert place == f"{files.directory / 'teams.yaml'}:{files.line_of('teams', 'weight: 7')}"


@pytest.mark.parametrize("is_first", [False, True])
def test_the_name_of_one_that_leaves_it_to_the_server_is_nobody_elses(files, is_first):
    def generated(beginning: str, weighs: int) -> dict:
        return {**weight("any", weight=weighs), "metadata": {"generateName": beginning}}

    named = {f"team-{number:05}": 100 + number for number in range(1, 4)}
    these = [weight(name, weight=weighs) for name, weighs in named.items()]
    files.write("named", *(these if is_first else ()))
    files.write("teams", generated("team-", 7), generated("l" * 59, 59), generated("l" * 60, 60))
    assert files.taken() == []
    files.write("named", *these)
    assert files.taken() == []
    weights = files.weights()
    assert {name: weights[name] for name in named} == named
    assert sorted(weights.values()) == [7, 59, 60, 100, *named.values(), 300]


@pytest.mark.parametrize("nameless", [pool(), weight("any"), namespace("any")], ids=lambda each: each["kind"])
@pytest.mark.parametrize("metadata", [{}, None, {"name": ""}, {"generateName": ""}])
def test_those_without_a_name_are_told_of_with_their_line(files, nameless, metadata):
    files.write("nameless", {**nameless, "metadata": metadata})
    problem, *_ = files.taken()
    required = "metadata.name: Required value: name or generateName is required"
    assert re.fullmatch(rf"nameless.yaml:[34]: {nameless['kind']}: {required}", problem)


@pytest.mark.parametrize("metadata", [7, ["a"], *({**each, "labels": 7} for each in ({}, {"name": 7}, {"name": "a"}))])
def test_those_whose_metadata_are_none_are_told_of(files, metadata):
    for each in (pool(), weight("any"), secret(), namespace("any")):
        files.write("odd", {**each, "metadata": metadata})
        problem, *_ = files.taken()
        assert re.match(rf"odd.yaml:[345]: {each['kind']}[^:]*: metadata", problem)


def test_those_of_one_generate_name_stay_who_they_are_while_a_file_before_theirs_cannot_be_read(files):
    def generated(tenant: str) -> dict:
        return {**weight("any", weight=7, tenantName=tenant), "metadata": {"generateName": "team-"}}

    files.write("first", generated("one"))
    files.write("second", generated("two"), generated("three"))
    assert files.taken() == []
    there = files.weights()
    (files.directory / "first.yaml").write_text("spec: {", encoding="utf-8")
    files.write("second", {**generated("two"), "kind": "TenantWieght"}, generated("three"))
    assert len(files.taken()) == 3
    assert files.weights() == there == {"search": 300, "batch": 100, "one": 7, "two": 7, "three": 7}
    files.write("first", generated("one"))
    files.write("second", generated("two"), generated("three"))
    assert files.taken() == []
    assert files.weights() == there


def test_namespaces_have_their_labels_and_the_one_that_a_server_gives_them(files):
    files.write("team", namespace("team", gpus="yes"), weight("elsewhere", namespace="team"))
    files.write("plain", weight("other", namespace="plain"))
    for name in ("team", "plain"):
        document = files.directory / f"{name}.yaml"
        text = document.read_text(encoding="utf-8").replace("name: llama", "name: llama\n    namespace: default")
        document.write_text(text, encoding="utf-8")
    assert files.taken() == []
    assert files.resources.store().view(LLAMA).namespaces == {
        "default": {"kubernetes.io/metadata.name": "default"},
        "team": {"kubernetes.io/metadata.name": "team", "gpus": "yes"},
        "plain": {"kubernetes.io/metadata.name": "plain"},
    }


def test_resources_that_name_no_namespace_are_in_the_one_that_was_given(tmp_path):
    write(tmp_path / "pool.yaml", pool())
    resources = Resources("inference")
    assert resources.take(read([tmp_path])) == ()
    assert resources.store().keys() == {PoolKey("inference", "llama")}
