"""The network policies of the components choose the pods that they are about, and the ports that these have."""

import pytest
from support.manifests import MANIFESTS, chooses, documents, made_for, of_kind, pod_labels
from support.resources import fair_pool

POLICIES = MANIFESTS / "components" / "network-policies"
GATEWAY = made_for(fair_pool())["Deployment"]
(OPERATOR,) = of_kind(documents(MANIFESTS / "base" / "operator.yaml"), "Deployment")


def policy(name):
    [only] = documents(POLICIES / name / "policy.yaml")
    return only["spec"]


def namespaces(peer):
    """Those that a peer chooses, among some that there are."""
    there = ("default", "fairpool-system", "inference", "kube-public", "kube-system", "monitoring")
    return {name for name in there if chooses(peer["namespaceSelector"], {"kubernetes.io/metadata.name": name})}


class TestOfTheOperator:
    def test_is_about_its_pods_and_no_gateways(self):
        assert chooses(policy("operator")["podSelector"], pod_labels(OPERATOR))
        assert not chooses(policy("operator")["podSelector"], pod_labels(GATEWAY))

    def test_lets_monitoring_alone_reach_its_only_port(self):
        [rule] = policy("operator")["ingress"]
        [container] = OPERATOR["spec"]["template"]["spec"]["containers"]
        assert [each["port"] for each in rule["ports"]] == [each["name"] for each in container["ports"]]
        [peer] = rule["from"]
        assert peer.keys() == {"namespaceSelector", "podSelector"}
        assert chooses(peer["podSelector"], {"app.kubernetes.io/name": "prometheus"})
        assert not chooses(peer["podSelector"], {"app": "chat"})
        assert namespaces(peer) == {"monitoring"}


class TestOfGateways:
    def test_is_about_the_gateways_of_every_pool_and_not_their_engines(self):
        chosen = policy("gateways")["podSelector"]
        for pool in ("llama", "qwen"):
            assert chooses(chosen, pod_labels(made_for(fair_pool(pool))["Deployment"]))
        assert not chooses(chosen, {"app": "vllm"})
        assert not chooses(chosen, pod_labels(OPERATOR))

    def test_says_nothing_of_who_comes_in_which_is_each_pools_to_say(self):
        """Policies add up: one that let everybody in would undo what a pool says in gateway.networkPolicy."""
        assert policy("gateways")["policyTypes"] == ["Egress"]
        made = made_for(fair_pool(gateway={"networkPolicy": {}}))["NetworkPolicy"]["spec"]
        assert made["policyTypes"] == ["Ingress"]
        assert chooses(made["podSelector"], pod_labels(GATEWAY))

    def test_lets_it_reach_the_pods_of_its_namespace_on_any_port(self):
        [engines] = [rule for rule in policy("gateways")["egress"] if "ports" not in rule]
        assert engines["to"] == [{"podSelector": {}}]


@pytest.mark.parametrize("name", ["operator", "gateways"])
class TestBoth:
    def test_reach_names_over_both_protocols_where_clusters_have_them_and_nowhere_else(self, name):
        [rule] = [each for each in policy(name)["egress"] if 53 in {port["port"] for port in each.get("ports", ())}]
        assert {(port["port"], port["protocol"]) for port in rule["ports"]} == {(53, "UDP"), (53, "TCP")}
        [peer] = rule["to"]
        assert peer.keys() == {"namespaceSelector"}
        assert namespaces(peer) == {"kube-system"}

    def test_reach_the_api_server_wherever_it_is(self, name):
        [rule] = [each for each in policy(name)["egress"] if "to" not in each]
        assert {port["port"] for port in rule["ports"]} == {443, 6443}
