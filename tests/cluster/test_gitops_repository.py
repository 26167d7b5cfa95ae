"""The layout for GitOps: each tool applies all of it, in the one order that works, and may do what that takes."""

import os

import pytest
import yaml
from support.cluster.client import Kind
from support.cluster.other_projects import install_other_projects
from support.gitops import APPLICATIONS, argo_health
from support.manifests import MANIFESTS, documents, of_kind

GITOPS = MANIFESTS / "gitops"
REPOSITORY = GITOPS / "repository"
ORDER = ["crds", "operator", "pools"]


def named(path):
    """A directory of the layout, by a path in the repository."""
    return str((MANIFESTS.parent / path).resolve().relative_to(REPOSITORY))


def with_components(directory):
    """The operator of the layout with all components that are for it, written into a directory."""
    components = [MANIFESTS / "components" / name for name in ("monitoring", "weight-ceiling")]
    document = {
        "resources": [os.path.relpath(REPOSITORY / "operator", directory)],
        "components": [os.path.relpath(each, directory) for each in components],
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(document))
    return directory


class TestTheLayout:
    async def test_has_the_definitions_in_the_first_directory_and_in_no_other(self, kubectl):
        found = [
            {each["kind"] for each in yaml.safe_load_all(await kubectl("kustomize", str(REPOSITORY / directory)))}
            for directory in ORDER
        ]
        assert ["CustomResourceDefinition" in kinds for kinds in found] == [True, False, False]
        assert {"FairPool", "TenantWeight"} <= found[2]

    def test_is_all_that_there_is(self):
        there = {str(path.parent.relative_to(REPOSITORY)) for path in REPOSITORY.glob("*/kustomization.yaml")}
        assert there == set(ORDER)

    def test_names_every_directory_of_pools_and_each_is_of_one_namespace(self):
        pools = REPOSITORY / "pools"
        [named_here] = documents(pools / "kustomization.yaml")
        assert sorted(named_here["resources"]) == sorted(each.name for each in pools.iterdir() if each.is_dir())
        for name in named_here["resources"]:
            assert documents(pools / name / "kustomization.yaml")[0]["namespace"] == name


class TestArgoCD:
    applications = sorted(
        (
            each
            for name in ("crds", "operator", "pools")
            for each in documents(GITOPS / f"argocd/applications/{name}.yaml")
        ),
        key=lambda each: int(each["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"]),
    )

    def test_applies_the_directories_in_their_order(self):
        assert [named(each["spec"]["source"]["path"]) for each in self.applications] == ORDER
        waves = {each["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] for each in self.applications}
        assert len(waves) == len(self.applications)

    def test_finds_these_applications_from_the_one_that_is_applied_by_hand(self):
        [root] = documents(GITOPS / "argocd" / "root.yaml")
        assert root["spec"]["source"]["path"] == str((GITOPS / "argocd/applications").relative_to(MANIFESTS.parent))

    def test_applies_on_the_server_and_never_prunes_a_definition(self):
        assert all(each["spec"]["syncPolicy"]["syncOptions"] == ["ServerSideApply=true"] for each in self.applications)
        pruned = [each["spec"]["syncPolicy"]["automated"]["prune"] for each in self.applications]
        assert pruned == [False, True, True]

    async def test_may_make_what_is_in_them_where_it_is(self, kubectl, admin, crds, tmp_path):
        await install_other_projects(admin)
        [project] = documents(GITOPS / "argocd" / "project.yaml")
        allowed = {(each["group"], each["kind"]) for each in project["spec"]["clusterResourceWhitelist"]}
        places = {each["namespace"] for each in project["spec"]["destinations"]}
        for directory in [*(REPOSITORY / each for each in ORDER), with_components(tmp_path)]:
            for each in yaml.safe_load_all(await kubectl("kustomize", str(directory))):
                group = each["apiVersion"].rpartition("/")[0]
                if (await admin.resource(Kind.of(each))).namespaced:
                    assert each["metadata"]["namespace"] in places
                else:
                    assert (group, each["kind"]) in allowed

    @pytest.mark.parametrize(
        ("status", "shown"),
        [({}, "Progressing"), ({"health": {"status": "Degraded", "message": "m"}}, "Degraded")],
    )
    def test_reads_of_an_application_what_it_says_itself(self, status, shown):
        assert argo_health({"metadata": {}, "status": status}, APPLICATIONS)[0] == shown
        assert argo_health({"metadata": {}}, APPLICATIONS) == ("Progressing", "")


FLUX = {
    each["metadata"]["name"]: each["spec"]
    for name in ("crds", "operator", "pools")
    for each in of_kind(documents(GITOPS / "flux" / f"{name}.yaml"), "Kustomization")
}


class TestFlux:
    def test_applies_the_directories_each_after_the_one_before_is_ready(self):
        order, after = [], None
        while len(order) < len(FLUX):
            [(name, spec)] = [
                (name, spec)
                for name, spec in FLUX.items()
                if [each["name"] for each in spec.get("dependsOn", ())] == ([after] if after else [])
            ]
            order.append(named(spec["path"]))
            after = name
        assert order == ORDER
        assert all(spec["wait"] for spec in FLUX.values())

    def test_never_prunes_a_definition(self):
        assert {name: spec["prune"] for name, spec in FLUX.items()} == {
            "fairpool-crds": False,
            "fairpool-operator": True,
            "fairpool-pools": True,
        }
