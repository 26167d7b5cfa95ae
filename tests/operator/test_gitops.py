"""Whoever reads states by kstatus' rules, or by Argo CD's, sees what the operator means."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.cluster.definitions import definitions
from support.compiling import SmallCluster
from support.gitops import ARGO_FOR, SCRIPT, argo_health, kstatus
from support.resources import SMALLEST, fair_pool, gateway_pod, secret, tenant_weight

CREDENTIAL = {"endpoints": {**SMALLEST, "credentialRef": {"name": "engine-key"}}}
BY_SECRET = [{"name": "k", "secretKeyRef": {"name": "search-key", "key": "api-key"}}]
DELETED = {"deletionTimestamp": "2026-05-01T12:00:00Z"}


def waiting(pool=None, weight=None):
    """A pool whose gateway is not there yet, and a tenant of it."""
    cluster = SmallCluster(pool or fair_pool(), weight or tenant_weight(), gateway_pod())
    cluster.settle()
    return cluster


def serving(pool=None, weight=None):
    """The same, with a gateway that uses the newest configuration."""
    cluster = waiting(pool, weight)
    cluster.serve()
    cluster.settle()
    return cluster


def edited(kind, name, **metadata):
    """What serves, with a change that the operator has not looked at."""
    cluster = serving()
    resource = cluster.get(kind, name)
    resource["metadata"].update(metadata)
    cluster.put(resource)
    return cluster


def repaired():
    """A pool whose Secret came after all."""
    cluster = waiting(pool=fair_pool(**CREDENTIAL))
    cluster.put(secret("engine-key", use="engine", api_key="k" * 16))
    cluster.settle()
    cluster.serve()
    cluster.settle()
    return cluster


def orphaned():
    """A tenant whose pool was deleted."""
    cluster = serving()
    cluster.remove("FairPool", "llama")
    cluster.settle()
    return cluster


def without_endpoints():
    """A pool that is scaled to zero."""
    cluster = waiting()
    cluster.serve(ready=0, total=0)
    cluster.settle()
    return cluster


POOLS = {
    "waiting": (waiting, "InProgress"),
    "ready": (serving, "Current"),
    "without endpoints": (without_endpoints, "Current"),
    "edited": (lambda: edited("FairPool", "llama", generation=2), "InProgress"),
    "refused": (lambda: waiting(pool=fair_pool(gateway={"resources": 7})), "Failed"),
    "missing a Secret": (lambda: waiting(pool=fair_pool(**CREDENTIAL)), "Failed"),
    "given its Secret": (repaired, "Current"),
    "being deleted": (lambda: edited("FairPool", "llama", **DELETED), "Terminating"),
}
WEIGHTS = {
    "waiting": (waiting, "InProgress"),
    "ready": (serving, "Current"),
    "edited": (lambda: edited("TenantWeight", "search", generation=2), "InProgress"),
    "missing its pool": (orphaned, "Failed"),
    "missing a Secret": (lambda: waiting(weight=tenant_weight(apiKeys=BY_SECRET)), "Failed"),
    "being deleted": (lambda: edited("TenantWeight", "search", **DELETED), "Terminating"),
}
CASES = [
    pytest.param(kind, name, make, state, id=f"{kind} {case}")
    for kind, name, cases in (("FairPool", "llama", POOLS), ("TenantWeight", "search", WEIGHTS))
    for case, (make, state) in cases.items()
]


class TestAsTheOperatorWritesThem:
    @pytest.mark.parametrize(("kind", "name", "make", "state"), CASES)
    def test_states_are_read_as_they_are_meant(self, kind, name, make, state):
        resource = make().get(kind, name)
        assert kstatus(resource) == state
        assert argo_health(resource)[0] == ARGO_FOR[state]

    @pytest.mark.parametrize("definition", definitions(), ids=lambda each: each["spec"]["names"]["kind"])
    def test_what_no_operator_has_looked_at_is_in_progress(self, definition):
        [version] = definition["spec"]["versions"]
        default = version["schema"]["openAPIV3Schema"]["properties"]["status"]["default"]
        resource = {"metadata": {"generation": 1}, "status": default}
        assert kstatus(resource) == "InProgress"
        assert argo_health(resource) == ("Progressing", "Pending: Waiting for the operator.")

    def test_argo_cd_says_why_a_resource_fails(self):
        status, why = argo_health(orphaned().get("TenantWeight", "search"))
        assert status == "Degraded"
        assert why.startswith("PoolNotFound: There is no FairPool inference/llama.")


STATUSES = st.sampled_from(["True", "False", "Unknown"])
CONDITIONS = st.dictionaries(st.sampled_from(["Ready", "Stalled", "Accepted", "Programmed", "Other"]), STATUSES)
RESOURCES = st.builds(
    lambda metadata, observed, said: {
        "metadata": metadata,
        "status": observed
        | {"conditions": [{"type": t, "status": s, "reason": "Why", "message": "why"} for t, s in said.items()]},
    },
    st.fixed_dictionaries(
        {"generation": st.integers(1, 3)}, optional={"deletionTimestamp": st.just("2026-05-01T12:00:00Z")}
    ),
    st.fixed_dictionaries({}, optional={"observedGeneration": st.integers(1, 3)}),
    CONDITIONS.filter(lambda said: "Ready" in said),
)


class TestTheScript:
    @given(RESOURCES)
    def test_agrees_with_kstatus_on_any_resource_that_has_a_ready_condition(self, resource):
        assert argo_health(resource)[0] == ARGO_FOR[kstatus(resource)]

    def test_takes_a_resource_without_any_status_for_one_on_its_way(self):
        assert argo_health({"metadata": {"generation": 1}})[0] == "Progressing"

    def test_is_told_of_both_kinds_where_its_readme_puts_it(self):
        text = (SCRIPT.parent / "README.md").read_text(encoding="utf-8")
        generator = yaml.safe_load(text.partition("```yaml")[2].partition("```")[0])["configMapGenerator"][0]
        keys = (f"resource.customizations.health.fairpool.dev_{each}" for each in ("FairPool", "TenantWeight"))
        kinds = {f"{key}=health.lua" for key in keys}
        assert {each for each in generator["files"] if each.endswith("=health.lua")} == kinds
        assert all(f"--from-file {each.replace('=', '=manifests/gitops/')}" in text for each in kinds)
