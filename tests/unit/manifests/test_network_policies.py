"""The network policies of the components choose the pods that they are about, and the ports that these have."""

from support.manifests import MANIFESTS, chooses, documents, made_for, of_kind, pod_labels
from support.resources import fair_pool

POLICIES = MANIFESTS / "components" / "network-policies"
GATEWAY = made_for(fair_pool())["Deployment"]
(OPERATOR,) = of_kind(documents(MANIFESTS / "base" / "operator.yaml"), "Deployment")


def policy(name):
    [only] = documents(POLICIES / name / "policy.yaml")
    return only["spec"]


class TestOfTheOperator:
    def test_is_about_its_pods_and_no_gateways(self):
        assert chooses(policy("operator")["podSelector"], pod_labels(OPERATOR))
        assert not chooses(policy("operator")["podSelector"], pod_labels(GATEWAY))

    def test_lets_monitoring_alone_reach_its_only_port(self):
        [rule] = policy("operator")["ingress"]
        [container] = OPERATOR["spec"]["template"]["spec"]["containers"]
        assert [each["port"] for each in rule["ports"]] == [each["name"] for each in container["ports"]]
        assert all(peer.keys() == {"namespaceSelector", "podSelector"} for peer in rule["from"])


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


def test_both_reach_names_and_the_api_server():
    for name in ("operator", "gateways"):
        asked = {port["port"] for rule in policy(name)["egress"] for port in rule.get("ports", ())}
        assert {53, 443, 6443} <= asked
