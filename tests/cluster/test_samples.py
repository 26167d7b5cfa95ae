"""The samples, as people apply them: admitted as they are, and accepted by the operator."""

from pathlib import Path

import pytest
import yaml
from support.cluster.client import FAIR_POOL, NAMESPACE, TENANT_WEIGHT, Kind
from support.cluster.namespaces import remove_namespace
from support.cluster.other_projects import install_other_projects
from support.cluster.resources import says
from support.cluster.waiting import eventually

SAMPLES = sorted((Path(__file__).parents[2] / "manifests" / "samples").glob("*.yaml"))


@pytest.fixture
async def sample(request, admin, crds):
    """A sample's file; the namespaces that it makes are gone after the test."""
    documents = list(yaml.safe_load_all(request.param.read_text(encoding="utf-8")))
    if any(each["apiVersion"].startswith("gateway.networking.k8s.io/") for each in documents):
        await install_other_projects(admin)
    yield request.param
    for each in documents:
        if Kind.of(each) == NAMESPACE:
            await remove_namespace(admin, each["metadata"]["name"])


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.stem, indirect=True)
class TestASample:
    async def test_is_applied_and_accepted_and_applying_it_again_changes_nothing(
        self, operator, sample, kubectl, admin, namespace
    ):
        documents = list(yaml.safe_load_all(sample.read_text(encoding="utf-8")))
        said = await kubectl("apply", "--server-side", "-f", str(sample))
        assert "Warning" not in said
        for each in documents:
            if Kind.of(each) in (FAIR_POOL, TENANT_WEIGHT):
                where = each["metadata"].get("namespace", namespace)
                # full.yaml has a tenant of the pool in smallest.yaml, which is not applied with it here.
                if each["kind"] == "TenantWeight" and not in_the_same(documents, each):
                    continue
                await eventually(admin, Kind.of(each), each["metadata"]["name"], where, says("Accepted", "True"))
        before = await versions(admin, documents, namespace)
        await kubectl("apply", "--server-side", "-f", str(sample))
        assert await versions(admin, documents, namespace) == before


def in_the_same(documents, tenant):
    """Whether the tenant's pool is in the sample, too."""
    named = tenant["spec"]["poolRef"]["name"]
    return any(each["kind"] == "FairPool" and each["metadata"]["name"] == named for each in documents)


async def versions(admin, documents, namespace):
    """The generation of each object, which an edit of it would change."""
    found = {}
    for each in documents:
        name, where = each["metadata"]["name"], each["metadata"].get("namespace", namespace)
        there = await admin.get(Kind.of(each), name, None if Kind.of(each) == NAMESPACE else where)
        found[each["kind"], name] = there["metadata"].get("generation")
    return found
