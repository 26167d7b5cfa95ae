"""The two definitions on a real API server: what is filled in, what people see of them, and who may write what."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from support.cluster.client import CRD
from support.cluster.definitions import FILES, definitions, dry_run, fair_pool, tenant_weight
from support.definition_walks import fields, schema_of

from fairpool_operator.resources import (
    EndpointCounts,
    FairPoolStatus,
    Finding,
    GatewayReport,
    TenantWeightStatus,
    conditions,
    read_pool,
    read_tenant_weight,
)

pytestmark = pytest.mark.usefixtures("crds")

NOW = datetime(2026, 3, 1, tzinfo=UTC)
READY = conditions(
    [Finding("Ready", holds=True, reason="Ready", message="Tenants are served.")], before=(), generation=1, now=NOW
)
SERVING = FairPoolStatus(
    observed_generation=1,
    conditions=READY,
    url="http://llama-fairpool.team.svc/v1",
    endpoints=EndpointCounts(ready=3, total=4, draining=1),
    accelerators=24,
    tenants=7,
    total_weight=900,
)
IN_FORCE = TenantWeightStatus(observed_generation=1, conditions=READY, tenant="team/search", weight=300)
REPORT = GatewayReport(
    pod_uid="u", config_hash="0123456789abcdef", endpoints_ready=3, endpoints_total=4, accelerators=24
)


def said(made, status):
    """What is applied to the status of a resource."""
    metadata = {name: made["metadata"][name] for name in ("name", "namespace")}
    return {"apiVersion": made["apiVersion"], "kind": made["kind"], "metadata": metadata, "status": status.written()}


class TestDefinitions:
    async def test_are_established_and_wholly_understood(self, admin):
        for definition in definitions():
            found = await admin.get(CRD, definition["metadata"]["name"])
            states = {each["type"]: each["status"] for each in found["status"]["conditions"]}
            assert states == {"NamesAccepted": "True", "Established": "True"}

    async def test_can_be_applied_by_kubectl_and_applied_again(self, kubectl):
        for file in FILES.values():
            await kubectl("apply", "-f", str(file))
            assert "unchanged" in await kubectl("apply", "-f", str(file))


class TestWhatIsFilledIn:
    @pytest.mark.parametrize(
        ("smallest", "read"),
        [(fair_pool("default"), read_pool), (tenant_weight("default"), read_tenant_weight)],
        ids=["FairPool", "TenantWeight"],
    )
    async def test_is_what_the_model_says(self, admin, smallest, read):
        made = await dry_run(admin, smallest)
        filled, not_filled = read(made).spec, read({**made, "spec": smallest["spec"]}).spec
        assert filled == not_filled
        assert filled.model_dump(exclude_unset=True) == without_nothing(not_filled.model_dump(exclude_none=True))

    async def test_beside_what_was_said_is_the_rest(self, admin):
        said = {"queue": {"perTenant": {"maxRequests": 1}}, "slots": {"perEndpoint": 8}}
        spec = (await dry_run(admin, fair_pool("default", **said)))["spec"]
        assert (spec["queue"]["perTenant"], spec["queue"]["timeout"]) == ({"maxRequests": 1, "maxBytes": "64Mi"}, "45s")
        assert spec["slots"] == {"policy": "Fixed", "perEndpoint": 8}

    async def test_in_place_of_nothing_is_the_same(self, admin):
        nothing = dict.fromkeys(("models", "queue", "slots", "suspend", "gateway", "authentication"))
        made = [await dry_run(admin, fair_pool("default", **spec)) for spec in (nothing, {})]
        assert made[0]["spec"] == made[1]["spec"]

    @pytest.mark.parametrize(
        "smallest", [fair_pool("default"), tenant_weight("default")], ids=["FairPool", "TenantWeight"]
    )
    async def test_as_a_status_says_that_nobody_has_looked_yet(self, admin, smallest):
        (ready,) = (await dry_run(admin, smallest))["status"]["conditions"]
        assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "Unknown", "Pending")

    async def test_for_one_kind_of_authentication_leaves_the_other_usable(self, admin, namespace):
        proxy = {"type": "TrustedHeader", "header": "x-tenant", "proxyCredentialRef": {"name": "proxy"}}
        made = await admin.create(fair_pool(namespace, authentication=proxy))
        assert made["spec"]["authentication"]["proxyCredentialRef"] == {"name": "proxy", "key": "credential"}
        made["spec"]["authentication"] = {"type": "APIKey"}
        assert (await admin.replace(made))["spec"]["authentication"] == {"type": "APIKey"}


def without_nothing(value):
    """Only what says something."""
    if not isinstance(value, dict):
        return value
    kept = {name: without_nothing(item) for name, item in value.items()}
    return {name: item for name, item in kept.items() if item not in ({}, ())}


class TestStatus:
    async def test_is_not_taken_from_who_makes_the_resource(self, admin, namespace):
        made = await admin.create({**fair_pool(namespace), "status": SERVING.written()})
        assert made["status"]["conditions"][0]["reason"] == "Pending"

    async def test_is_written_by_the_operator_and_the_gateway_side_by_side(self, admin, namespace):
        made = await admin.create(fair_pool(namespace))
        await admin.apply(said(made, SERVING), "status", manager="fairpool-operator")
        found = await admin.apply(said(made, FairPoolStatus(gateway=REPORT)), "status", manager="fairpool-gateway")
        assert read_pool(found).status == SERVING.model_copy(update={"gateway": REPORT})
        again = await admin.apply(said(made, SERVING), "status", manager="fairpool-operator")
        assert again["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]

    async def test_loses_a_condition_that_is_said_no_more(self, admin, namespace):
        made = await admin.create(fair_pool(namespace))
        stalled = Finding("Stalled", holds=True, reason="NameTaken", message="Delete it.")
        both = (*READY, *conditions([stalled], before=(), generation=1, now=NOW))
        await admin.apply(said(made, SERVING.model_copy(update={"conditions": both})), "status")
        found = await admin.apply(said(made, SERVING), "status")
        assert [each["type"] for each in found["status"]["conditions"]] == ["Ready"]


class TestWhatPeopleSee:
    async def test_of_a_pool(self, kubectl, admin, namespace):
        made = await admin.create(fair_pool(namespace))
        await admin.apply(said(made, SERVING), "status")
        head, row = (await kubectl("get", "fp", "llama")).splitlines()
        assert head.split() == ["NAME", "READY", "ENDPOINTS", "GPUS", "TENANTS", "URL", "REASON", "AGE"]
        assert row.split()[:-1] == ["llama", "True", "3/4", "24", "7", "http://llama-fairpool.team.svc/v1", "Ready"]
        (wide,) = await kubectl.table("fairpool", "llama")
        assert wide["MESSAGE"] == "Tenants are served."

    async def test_of_a_tenant_weight(self, kubectl, admin, namespace):
        made = await admin.create(tenant_weight(namespace))
        await admin.apply(said(made, IN_FORCE), "status")
        head, row = (await kubectl("get", "tw", "search")).splitlines()
        assert head.split() == ["NAME", "POOL", "TENANT", "WEIGHT", "READY", "REASON", "AGE"]
        assert row.split()[:-1] == ["search", "llama", "team/search", "300", "True", "Ready"]
        (wide,) = await kubectl.table("tenantweight", "search")
        assert wide["MESSAGE"] == "Tenants are served."

    async def test_of_both_at_once(self, kubectl, admin, namespace):
        await admin.create(fair_pool(namespace))
        await admin.create(tenant_weight(namespace))
        names = (await kubectl("get", "fair", "-o", "name")).split()
        assert names == ["fairpool.fairpool.dev/llama", "tenantweight.fairpool.dev/search"]

    async def test_of_the_tenants_of_one_pool(self, kubectl, admin, namespace):
        await admin.create(tenant_weight(namespace))
        await admin.create(tenant_weight(namespace, "other", poolRef={"name": "mistral"}))
        chosen = await kubectl("get", "tw", "--field-selector", "spec.poolRef.name=mistral", "-o", "name")
        assert chosen.split() == ["tenantweight.fairpool.dev/other"]

    async def test_of_a_field_is_documentation(self, kubectl):
        explained = {
            "fairpool": "weighted Start-time Fair Queueing",
            "fairpool.spec.queue.timeout": "Keep it under the time-outs of load balancers",
            "fairpool.status.conditions": "a pool may be scaled to zero",
            "tenantweight.spec.weight": "the sum of the weights of all who wait",
        }
        shown = {field: " ".join((await kubectl.explain(field)).split()) for field in explained}
        assert [field for field, words in explained.items() if words not in shown[field]] == []

    @pytest.mark.parametrize("definition", definitions(), ids=lambda definition: definition["spec"]["names"]["kind"])
    async def test_of_all_fields_is_all_there_is(self, kubectl, definition):
        shown = await kubectl.explain(f"{definition['spec']['names']['singular']}.spec", "--recursive")
        names = {place.rpartition(".")[2] for place, _ in fields(schema_of(definition)["properties"]["spec"])}
        assert {name for name in names if not name.endswith(("]", "*"))} <= set(shown.replace("\t", " ").split())
