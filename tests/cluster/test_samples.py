"""The samples, as people apply them: with the Secrets that the commands at their tops make, accepted and resolved."""

import re

import pytest
from support.cluster.client import FAIR_POOL, NAMESPACE, TENANT_WEIGHT, Kind
from support.cluster.namespaces import remove_namespace
from support.cluster.other_projects import install_other_projects
from support.cluster.resources import says
from support.cluster.waiting import eventually
from support.manifests import SAMPLES, documents
from support.shell import kubectl_command, shell

UNRESOLVED = {"full"}
"""Names Secrets that are not there, and says so."""


@pytest.fixture
async def sample(request, admin, crds):
    """A sample's file; the namespaces that it makes are gone after the test."""
    found = documents(request.param)
    if any(each["apiVersion"].startswith("gateway.networking.k8s.io/") for each in found):
        await install_other_projects(admin)
    yield request.param
    for each in found:
        if Kind.of(each) == NAMESPACE:
            await remove_namespace(admin, each["metadata"]["name"])


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.stem, indirect=True)
async def test_a_sample_is_accepted_and_applying_it_again_changes_nothing(
    operator, sample, kubectl, control_plane, admin, namespace, tmp_path
):
    found = documents(sample)
    for each in found:
        if Kind.of(each) == NAMESPACE:
            await kubectl.apply(each, "--server-side")
    programs = kubectl_command(tmp_path / "programs", control_plane.programs.kubectl)
    async with shell(tmp_path, programs, {"KUBECONFIG": str(kubectl.kubeconfig)}) as typed:
        await typed.run("\n".join(commands(sample)))
    await kubectl("apply", "--server-side", "--warnings-as-errors", "-f", str(sample))
    for each in found:
        if Kind.of(each) in (FAIR_POOL, TENANT_WEIGHT) and pool_of(each) in pools(found):
            name, where = each["metadata"]["name"], each["metadata"].get("namespace", namespace)
            await eventually(admin, Kind.of(each), name, where, says("Accepted", "True"))
            if sample.stem not in UNRESOLVED:
                await eventually(admin, Kind.of(each), name, where, says("ResolvedRefs", "True"))
    before = await generations(admin, found, namespace)
    await kubectl("apply", "--server-side", "-f", str(sample))
    assert await generations(admin, found, namespace) == before


def commands(sample):
    """Those at the top of a sample, after those of another one that it refers to."""
    text = sample.read_text(encoding="utf-8").partition("apiVersion")[0]
    before = commands(sample.with_name("smallest.yaml")) if "as in smallest.yaml" in text else []
    return before + re.findall(r"^#   (kubectl .+)$", text, re.MULTILINE)


def pools(found):
    """The names of the pools in a sample; full.yaml has a tenant of the pool in smallest.yaml beside its own."""
    return {each["metadata"]["name"] for each in found if each["kind"] == "FairPool"}


def pool_of(resource):
    """The pool that a resource is, or is about."""
    return resource["metadata"]["name"] if resource["kind"] == "FairPool" else resource["spec"]["poolRef"]["name"]


async def generations(admin, found, namespace):
    """The generation of each object, which an edit of it would change."""
    there = {}
    for each in found:
        name, where = each["metadata"]["name"], each["metadata"].get("namespace", namespace)
        kept = await admin.get(Kind.of(each), name, None if Kind.of(each) == NAMESPACE else where)
        there[each["kind"], name] = kept["metadata"].get("generation")
    return there
