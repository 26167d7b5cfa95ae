"""What the operator may do is what it needs, resource by resource; more has to be written down here too."""

from __future__ import annotations

from collections import defaultdict

import pytest
from support.manifests import MANIFESTS, documents, made_for, of_kind
from support.resources import fair_pool

ROLES = documents(MANIFESTS / "base" / "roles.yaml")
BINDINGS = documents(MANIFESTS / "base" / "bindings.yaml")

KEPT = {"get", "list", "watch", "create", "patch", "delete"}
"""What is done with the objects of pools: `get` of one that nobody tells of, the rest for the pool's sake."""
EVERYWHERE = {
    "fairpool.dev/fairpools": {"list", "watch"},
    "fairpool.dev/tenantweights": {"list", "watch"},
    "fairpool.dev/fairpools/status": {"get", "patch"},
    "fairpool.dev/tenantweights/status": {"patch"},
    "/secrets": KEPT,
    "/services": KEPT,
    "/serviceaccounts": KEPT,
    "apps/deployments": KEPT,
    "rbac.authorization.k8s.io/roles": KEPT,
    "rbac.authorization.k8s.io/rolebindings": KEPT,
    "networking.k8s.io/networkpolicies": KEPT,
    "/pods": {"list", "watch"},
    "/namespaces": {"list", "watch"},
    "events.k8s.io/events": {"create"},
}
BESIDE_IT = {
    "coordination.k8s.io/leases": {"create"},
    "coordination.k8s.io/leases/fairpool-operator": {"get", "update"},
}
"""Nobody can be allowed to create by name, for the name is not known when that is decided."""


def rights(rules):
    """The verbs of each resource, by its group, and by the one name where they are of that object only."""
    found = defaultdict(set)
    for rule in rules:
        assert rule.keys() <= {"apiGroups", "resources", "resourceNames", "verbs"}
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for name in rule.get("resourceNames", [""]):
                    found["/".join(filter(None, [f"{group}/{resource}", name]))] |= set(rule["verbs"])
    return dict(found)


class TestTheOperator:
    def test_has_these_rights_everywhere_and_no_others(self):
        (role,) = of_kind(ROLES, "ClusterRole")
        assert rights(role["rules"]) == EVERYWHERE

    def test_has_these_rights_beside_it_and_no_others(self):
        (role,) = of_kind(ROLES, "Role")
        assert rights(role["rules"]) == BESIDE_IT

    def test_has_no_other_role_and_nobody_else_has_its_own(self):
        assert sorted(each["kind"] for each in [*ROLES, *BINDINGS]) == [
            *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount")
        ]
        for binding in (each for each in BINDINGS if "roleRef" in each):
            assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "fairpool-operator"}]

    def test_has_every_right_that_it_gives_to_a_gateway(self):
        given = rights(made_for(fair_pool())["Role"]["rules"])
        for resource, verbs in given.items():
            held = [EVERYWHERE[wider] for wider in EVERYWHERE if resource in {wider, wider + "/" + _name(resource)}]
            assert verbs <= set.union(*held), resource


class TestAToken:
    """Of a ServiceAccount: whoever reads it in a pod may do all that the account may."""

    def test_is_in_the_operators_pod_and_in_no_other_that_uses_its_account(self):
        (account,) = of_kind(BINDINGS, "ServiceAccount")
        (operator,) = of_kind(documents(MANIFESTS / "base" / "operator.yaml"), "Deployment")
        pod = operator["spec"]["template"]["spec"]
        assert account["automountServiceAccountToken"] is False
        assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == (account["metadata"]["name"], True)

    def test_is_in_a_gateways_pod_and_in_no_other_that_uses_its_account(self):
        made = made_for(fair_pool())
        pod = made["Deployment"]["spec"]["template"]["spec"]
        account = made["ServiceAccount"]
        assert account["automountServiceAccountToken"] is False
        assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == (account["metadata"]["name"], True)

    def test_is_in_no_pod_that_asks_the_api_nothing(self):
        others = [path for path in MANIFESTS.rglob("*.yaml") if path.name != "kustomization.yaml"]
        found = [each for path in others for each in documents(path) if "template" in (each.get("spec") or {})]
        mounted = {
            each["metadata"]["name"]
            for each in found
            if each["kind"] in {"Deployment", "StatefulSet", "DaemonSet", "Job"}
            and each["spec"]["template"]["spec"].get("automountServiceAccountToken") is not False
        }
        assert mounted == {"fairpool-operator"}


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}, {"/pods/exec": {"create"}}),
        ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"*/*": {"*"}}),
    ],
)
def test_a_right_too_many_would_be_found(rule, said):
    (role,) = of_kind(ROLES, "ClusterRole")
    assert rights([*role["rules"], rule]) == EVERYWHERE | said


def _name(resource):
    return resource.rpartition("/")[2]
