"""Everything in manifests/ that kustomize can build, as it is applied: by itself, and each component on the base."""

import asyncio
import os

import pytest
import yaml
from support.cluster.accounts import token
from support.cluster.client import (
    CLUSTER_ROLE,
    CRD,
    FAIR_POOL,
    NAMESPACE,
    TENANT_WEIGHT,
    Kind,
    Refused,
    running_client,
)
from support.cluster.definitions import dry_run, fair_pool, tenant_weight
from support.cluster.namespaces import new_namespace, remove_namespace
from support.cluster.operating import ACCOUNT, Operator
from support.cluster.other_projects import install_other_projects
from support.cluster.resources import says
from support.cluster.waiting import PATIENCE, eventually
from support.manifests import MANIFESTS, kustomizations

CEILING = MANIFESTS / "components" / "weight-ceiling"
COMPONENTS = sorted({path.parent for path in (MANIFESTS / "components").rglob("kustomization.yaml")} - {CEILING})
"""All but the weight ceiling, which is applied below and stays from test to test."""

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@pytest.fixture
def building(kubectl, tmp_path):
    """Writes a kustomization, builds it, and returns its directory and what it has."""

    async def build(resources=(), components=(), **more):
        here = tmp_path / "kustomization"
        here.mkdir()
        document = {"resources": relative(resources, here), "components": relative(components, here), **more}
        (here / "kustomization.yaml").write_text(yaml.safe_dump(document))
        return here, list(yaml.safe_load_all(await kubectl("kustomize", str(here))))

    return build


@pytest.fixture
async def applying(kubectl, admin, crds):
    """Applies what kustomize builds; all is gone after the test, but definitions and the role that the operator has."""
    made = []

    async def apply(documents):
        await install_other_projects(admin)
        made.extend(documents)
        for each in documents:
            if (name := each["metadata"].get("namespace")) and await admin.find(NAMESPACE, name) is None:
                await admin.create(namespace_called(name))
                made.append(namespace_called(name))
        await kubectl.apply(documents, "--server-side", "--warnings-as-errors")

    yield apply
    for each in made:
        kind = Kind.of(each)
        if kind not in (CRD, CLUSTER_ROLE, NAMESPACE) and not (await admin.resource(kind)).namespaced:
            await admin.delete(kind, each["metadata"]["name"])
    for each in made:
        if Kind.of(each) == NAMESPACE:
            await remove_namespace(admin, each["metadata"]["name"])


@pytest.mark.parametrize("directory", kustomizations(), ids=lambda path: str(path.relative_to(MANIFESTS)))
async def test_a_kustomization_is_applied_again_and_again_and_its_pools_are_accepted(
    operator, directory, applying, kubectl, admin
):
    documents = list(yaml.safe_load_all(await kubectl("kustomize", str(directory))))
    await applying(documents)
    said = await kubectl("apply", "--server-side", "--warnings-as-errors", "-k", str(directory))
    assert len(said.splitlines()) == len(documents)
    for each in documents:
        if Kind.of(each) in (FAIR_POOL, TENANT_WEIGHT):
            metadata = each["metadata"]
            await eventually(admin, Kind.of(each), metadata["name"], metadata["namespace"], says("Accepted", "True"))


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda path: str(path.relative_to(MANIFESTS / "components")))
async def test_a_component_goes_with_the_base(component, building, applying):
    _, documents = await building([MANIFESTS / "base"], [component], namespace="fairpool-system")
    await applying([each for each in documents if Kind.of(each) != CRD])


async def test_an_image_is_named_once_for_the_operator_and_its_gateways(building):
    image = {"name": "fairpool", "newName": "registry.example/fairpool", "newTag": "1.2.3"}
    _, documents = await building([MANIFESTS / "base"], images=[image])
    (operator,) = [each for each in documents if each["kind"] == "Deployment"]
    [container] = operator["spec"]["template"]["spec"]["containers"]
    named = {each["name"]: each.get("value") for each in container["env"]}
    assert container["image"] == named["FAIRPOOL_GATEWAY_IMAGE"] == "registry.example/fairpool:1.2.3"


class TestTheOperatorOfOneNamespace:
    @pytest.fixture
    async def built(self, building, namespace):
        """In the test's namespace."""
        return await building([MANIFESTS / "base"], [MANIFESTS / "components" / "namespaced"], namespace=namespace)

    async def test_has_nothing_outside_of_it(self, built, admin, namespace):
        _, documents = built
        for each in documents:
            assert (await admin.resource(Kind.of(each))).namespaced
            assert each["metadata"]["namespace"] == namespace
            assert {subject["namespace"] for subject in each.get("subjects", ())} <= {namespace}

    async def test_serves_the_pools_there_with_these_roles_and_no_others(
        self, built, kubectl, admin, crds, control_plane, namespace, tmp_path
    ):
        directory, documents = built
        await kubectl("apply", "--server-side", "--warnings-as-errors", "-k", str(directory))
        (deployment,) = [each for each in documents if each["kind"] == "Deployment"]
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        last = [each.replace("$(POD_NAMESPACE)", namespace) for each in container["command"][-2:]]
        access = control_plane.access.as_user(await token(admin, namespace, ACCOUNT))
        operator = Operator(access, namespace, tmp_path, *last, identity="operator")
        operator.start()
        try:
            await admin.create(fair_pool(namespace))
            await admin.create(tenant_weight(namespace))
            await eventually(admin, FAIR_POOL, "llama", namespace, says("Accepted", "True"))
            await eventually(admin, TENANT_WEIGHT, "search", namespace, says("Accepted", "True"))
        finally:
            operator.kill()


@pytest.fixture(scope="module")
def policy(plane):
    """Nothing is there of the policy after the last test. It stays from test to test, for it is one of the cluster."""
    yield
    asyncio.run(remove_policy(plane.access))


async def remove_policy(access):
    async with running_client(access) as admin:
        for kind in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"):
            await admin.delete(Kind("admissionregistration.k8s.io/v1", kind), "fairpool-weight-ceiling")
        async with new_namespace(admin) as namespace:
            await said_by_the_policy(admin, tenant_weight(namespace, weight=1000), refuses=False)
        await remove_namespace(admin, "fairpool-system")


class TestTheWeightCeiling:
    @pytest.fixture
    async def ceiling(self, policy, building, kubectl, admin, crds, namespace):
        """Of 50 for the test's namespace, and of 200 for all others; returns what was there before it was in force."""
        if await admin.find(NAMESPACE, "fairpool-system") is None:
            await admin.create(namespace_called("fairpool-system"))
        given = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"_others": "200", namespace: "50"}}
        given["metadata"] = {"name": "fairpool-weight-ceilings", "namespace": "fairpool-system"}
        _, documents = await building(components=[CEILING], patches=[{"patch": yaml.safe_dump(given)}])
        before = await admin.create(tenant_weight(namespace, "before", weight=200))
        await kubectl.apply(documents, "--server-side", "--warnings-as-errors")
        await said_by_the_policy(admin, tenant_weight(namespace, weight=51))
        return before

    async def test_refuses_more_and_says_how_much_there_may_be(self, ceiling, admin, namespace):
        said = await said_by_the_policy(admin, tenant_weight(namespace, weight=51))
        assert f"spec.weight must be at most 50, the ceiling of namespace {namespace}" in said
        assert "ask those who run the operator" in said

    async def test_lets_as_much_and_less_through(self, ceiling, admin, namespace):
        for weight in (1, 50):
            await dry_run(admin, tenant_weight(namespace, weight=weight))

    async def test_wants_a_weight_where_there_is_a_ceiling(self, ceiling, admin, namespace):
        assert "spec.weight must be given, and be at most 50" in await said_by_the_policy(
            admin, tenant_weight(namespace)
        )

    async def test_is_each_namespaces_own(self, ceiling, admin):
        async with new_namespace(admin) as other:
            await dry_run(admin, tenant_weight(other, weight=200))
            assert "at most 200" in await said_by_the_policy(admin, tenant_weight(other, weight=201))

    async def test_reads_its_ceilings_where_the_operator_is_put(self, building, kubectl, namespace):
        _, documents = await building(components=[CEILING], namespace=namespace)
        (binding,) = [each for each in documents if each["kind"] == "ValidatingAdmissionPolicyBinding"]
        assert binding["spec"]["paramRef"]["namespace"] == namespace
        await kubectl.apply(documents, "--server-side", "--warnings-as-errors", "--dry-run=server")

    async def test_leaves_what_was_there_before_editable_in_all_but_its_weight(self, ceiling, admin, namespace):
        edited = await admin.patch(TENANT_WEIGHT, "before", namespace, {"spec": {"suspend": True}})
        assert edited["metadata"]["generation"] == ceiling["metadata"]["generation"] + 1
        await admin.patch(TENANT_WEIGHT, "before", namespace, {"spec": {"weight": 50}})
        with pytest.raises(Refused, match="at most 50"):
            await admin.patch(TENANT_WEIGHT, "before", namespace, {"spec": {"weight": 200}})

    @pytest.mark.parametrize(("weight", "said"), [(100, "must be at most 50"), (None, "must be given")])
    async def test_looks_at_a_lesser_weight_too_and_at_its_removal(self, ceiling, admin, namespace, weight, said):
        with pytest.raises(Refused, match=f"spec.weight {said}"):
            await admin.patch(TENANT_WEIGHT, "before", namespace, {"spec": {"weight": weight}})

    async def test_lets_nothing_through_while_its_ceilings_are_not_there(self, ceiling, admin, namespace):
        await admin.delete(Kind("v1", "ConfigMap"), "fairpool-weight-ceilings", "fairpool-system")
        await said_by_the_policy(admin, tenant_weight(namespace, weight=1), says="no params found")


async def said_by_the_policy(admin, document, *, refuses=True, says="ceiling of namespace"):
    """What it says of a TenantWeight, once it is in force; or once it is not any more, which takes it a moment."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await dry_run(admin, document)
            except Refused as found:
                if "fairpool-weight-ceiling" not in found.message:
                    raise
                if refuses and says in found.message:
                    return found.message
            else:
                if not refuses:
                    return ""


def relative(paths, directory):
    """As a kustomization there names them, which may have no absolute ones."""
    return [os.path.relpath(path, directory.resolve()) for path in paths]


def namespace_called(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": RESTRICTED}}
