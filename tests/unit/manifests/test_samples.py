"""The samples go together in themselves: pools find the engines beside them, and policies choose what they claim to."""

import contextlib
import os
import re
import signal
import subprocess

import pytest
from support.manifests import MANIFESTS, SAMPLES, chooses, container_of, documents, made_for, of_kind, pod_labels

WITH_ENGINES = [path for path in SAMPLES if of_kind(documents(path), "Deployment")]
ENGINES_RUN = {
    "vllm": r"--max-num-seqs[ =](\d+)",
    "sglang": r"--max-running-requests[ =](\d+)",
    "llama": r"--parallel[ =](\d+)",
}
"""What each engine calls the number of requests that it runs at once."""


def sample(name):
    return documents(MANIFESTS / "samples" / f"{name}.yaml")


TO_CHOOSE_FROM = [*SAMPLES, *sorted((MANIFESTS / "components").rglob("kustomization.yaml"))]


@pytest.mark.parametrize("path", TO_CHOOSE_FROM, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_each_says_at_its_top_what_it_is_for(path):
    assert path.read_text(encoding="utf-8").startswith("# What it is for: ")


@pytest.mark.parametrize("path", WITH_ENGINES, ids=lambda path: path.stem)
class TestAPoolWithItsEngines:
    def test_finds_their_pods_and_ports(self, path):
        (pool,), (engines,) = of_kind(documents(path), "FairPool"), of_kind(documents(path), "Deployment")
        endpoints = pool["spec"]["endpoints"]
        assert chooses(endpoints["selector"], pod_labels(engines))
        ports = container_of(engines)["ports"]
        named = {each["name"] for each in ports} | {each["containerPort"] for each in ports}
        assert {each.get("name", each.get("number")) for each in endpoints["targetPorts"]} <= named

    def test_takes_them_with_the_accelerators_that_they_ask_for(self, path):
        (pool,), (engines,) = of_kind(documents(path), "FairPool"), of_kind(documents(path), "Deployment")
        policy = pool["spec"]["endpoints"].get("accelerators", {"policy": "Require"})["policy"]
        asks = "nvidia.com/gpu" in container_of(engines)["resources"]["limits"]
        assert policy == ("Require" if asks else "Observe")

    def test_gives_each_as_many_slots_as_it_runs_at_once(self, path):
        (pool,), (engines,) = of_kind(documents(path), "FairPool"), of_kind(documents(path), "Deployment")
        engine = next(name for name in ENGINES_RUN if name in container_of(engines)["image"])
        said = re.search(ENGINES_RUN[engine], " ".join(container_of(engines)["args"]))
        assert pool["spec"]["slots"]["perEndpoint"] == int(said[1])

    def test_asks_for_the_model_that_they_list(self, path):
        (pool,), (engines,) = of_kind(documents(path), "FairPool"), of_kind(documents(path), "Deployment")
        (model,) = pool["spec"]["models"]
        assert re.search(rf"[ =]{re.escape(model)}(?: |$)", " ".join(container_of(engines)["args"]))


VLLM = """#!/bin/bash
echo "$CUDA_VISIBLE_DEVICES $*" >> "$STARTED"
[ "$CUDA_VISIBLE_DEVICES" = 0 ] || exec sleep 600
until [ "$(wc -l < "$STARTED")" = 2 ]; do sleep 0.01; done
"""
"""A vLLM that tells how it was started; that of the first device ends as soon as both run."""


def test_each_rank_of_vllm_has_a_device_and_a_port_of_its_own_and_the_end_of_one_ends_all(tmp_path):
    (pool,), (engines,) = (of_kind(sample("vllm-data-parallel"), kind) for kind in ("FairPool", "Deployment"))
    (tmp_path / "vllm").write_text(VLLM)
    (tmp_path / "vllm").chmod(0o755)
    started = tmp_path / "started"
    run = container_of(engines)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "STARTED": str(started)}
    with subprocess.Popen([*run["command"], *run["args"]], env=environment, start_new_session=True) as pod:
        try:
            pod.wait(60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pod.pid, signal.SIGKILL)
    ranks = {line.split()[0]: line for line in started.read_text().splitlines()}
    ports = {port["name"]: port["containerPort"] for port in run["ports"]}
    endpoints = [ports[each["name"]] for each in pool["spec"]["endpoints"]["targetPorts"]]
    assert len(endpoints) == run["resources"]["limits"]["nvidia.com/gpu"] == len(ranks)
    for rank, port in enumerate(endpoints):
        assert f"--data-parallel-size {len(endpoints)} --data-parallel-rank {rank} " in ranks[str(rank)]
        assert f" --port {port} " in ranks[str(rank)]


class TestTheEnginesPolicy:
    (policy,) = sample("engines-network-policy")
    (pool,) = of_kind(sample("smallest"), "FairPool")

    def test_is_about_the_engines_of_the_smallest_pool_and_all_their_ports(self):
        endpoints = self.pool["spec"]["endpoints"]
        assert chooses(self.policy["spec"]["podSelector"], endpoints["selector"]["matchLabels"])
        reached = {port["port"] for port in self.policy["spec"]["ingress"][0]["ports"]}
        assert reached == {port["number"] for port in endpoints["targetPorts"]}

    def test_lets_the_pools_gateway_in_and_neither_another_gateway_nor_a_tenant(self):
        [peer] = self.policy["spec"]["ingress"][0]["from"]
        gateway = pod_labels(made_for(self.pool)["Deployment"])
        assert chooses(peer["podSelector"], gateway)
        other = {**self.pool, "metadata": {"name": "other"}}
        assert not chooses(peer["podSelector"], pod_labels(made_for(other)["Deployment"]))
        assert not chooses(peer["podSelector"], {"app": "chat"})
        assert "namespaceSelector" not in peer

    def test_lets_every_port_be_reached_by_somebody_named_only(self):
        assert all(rule["from"] and rule["ports"] for rule in self.policy["spec"]["ingress"])
        assert self.policy["spec"]["policyTypes"] == ["Ingress"]


def test_the_route_leads_to_the_service_of_the_smallest_pool():
    (route,), (pool,) = sample("http-route"), of_kind(sample("smallest"), "FairPool")
    service = made_for(pool)["Service"]
    [rule] = route["spec"]["rules"]
    assert rule["backendRefs"] == [{"name": service["metadata"]["name"], "port": service["spec"]["ports"][0]["port"]}]
    assert set(rule["timeouts"].values()) == {"0s"}


def test_the_team_is_let_in_by_its_namespaces_label():
    found = sample("team-in-another-namespace")
    (pool,), (tenant,) = of_kind(found, "FairPool"), of_kind(found, "TenantWeight")
    allowed = pool["spec"]["allowedTenants"]
    spaces = {each["metadata"]["name"]: each["metadata"].get("labels", {}) for each in of_kind(found, "Namespace")}
    assert chooses(allowed["namespaces"]["selector"], spaces[tenant["metadata"]["namespace"]])
    assert tenant["spec"]["poolRef"] == {key: pool["metadata"][key] for key in ("name", "namespace")}
    assert tenant["spec"]["weight"] <= allowed["maxWeight"]
