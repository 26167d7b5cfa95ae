"""A pool's objects on a real server: it takes them as they are, keeps them as they are, and tells who edited them."""

from __future__ import annotations

import json

import pytest
from support.cluster.client import Kind
from support.compiling import SmallCluster
from support.resources import fair_pool, pem, secret, tenant_weight

from fairpool_operator.differences import MANAGER, difference
from fairpool_operator.view import PoolKey, hashed, read_owned

EVERYTHING = {
    "endpoints": {
        "selector": {"matchLabels": {"app": "vllm"}},
        "targetPorts": [{"number": 8000}],
        "tls": {"caCertificateRef": {"name": "engine-ca"}, "serverName": "engine.local"},
        "credentialRef": {"name": "engine-key"},
    },
    "gateway": {
        "drainTimeout": "2m",
        "resources": {"requests": {"cpu": "0.5", "memory": "1.5Gi"}, "limits": {"memory": "2048Mi"}},
        "service": {"type": "LoadBalancer", "port": 8443, "annotations": {"example.com/balancer": "internal"}},
        "tls": {"certificateRef": {"name": "certificate"}},
        "networkPolicy": {
            "tenants": [{"namespaceSelector": {}}, {"ipBlock": {"cidr": "10.0.0.0/8"}}],
            "monitoring": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}],
        },
        "podTemplate": {
            "labels": {"cost-center": "42", "fairpool.dev/pool": "another"},
            "annotations": {"example.com/note": "yes"},
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}]
                    }
                },
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 1,
                            "podAffinityTerm": {
                                "topologyKey": "kubernetes.io/hostname",
                                "labelSelector": {"matchLabels": {"app": "vllm"}},
                            },
                        }
                    ]
                },
            },
            "imagePullSecrets": [{"name": "pull"}],
        },
    },
}
PEM, KEY = pem("CERTIFICATE"), pem("PRIVATE KEY")


def pool_in(namespace, **spec):
    """A small cluster with one pool in a namespace of the real one, and all the Secrets that it may name."""
    meta = {"namespace": namespace}
    return SmallCluster(
        {**fair_pool(**spec), "metadata": {**fair_pool()["metadata"], **meta}},
        tenant_weight(namespace=namespace, poolRef={"name": "llama"}),
        secret("engine-ca", namespace, use="engine", **{"ca.crt": PEM}),
        secret("engine-key", namespace, use="engine", api_key="k"),
        secret("certificate", namespace, use="tls", **{"tls.crt": PEM, "tls.key": KEY}),
        key=PoolKey(namespace, "llama"),
    )


async def applied(admin, cluster):
    """What the server has after everything that is to be applied was."""
    return [await admin.apply(each.wanted, manager=MANAGER) for each in cluster.changes().applies]


async def edited(admin, found, change):
    """An object after somebody else's edit."""
    return await admin.patch(Kind.of(found), found["metadata"]["name"], found["metadata"]["namespace"], change)


@pytest.mark.parametrize("spec", [{}, EVERYTHING], ids=["the smallest pool", "a pool with everything"])
class TestAtRest:
    async def test_nothing_differs_and_applying_it_again_writes_nothing(self, admin, namespace, spec):
        cluster = pool_in(namespace, **spec)
        found = await applied(admin, cluster)
        assert len(found) == (7 if spec else 6)
        versions = [each["metadata"]["resourceVersion"] for each in found]
        again = [each["metadata"]["resourceVersion"] for each in await applied(admin, cluster)]
        assert again == versions
        cluster.put(*found)
        assert cluster.changes().applies == ()


OURS = [
    ("Deployment", {"spec": {"replicas": 3}}, "spec.replicas"),
    ("Deployment", {"metadata": {"labels": {"fairpool.dev/pool": None}}}, "metadata.labels"),
    ("Deployment", {"metadata": {"ownerReferences": None}}, "metadata.ownerReferences"),
    ("Service", {"spec": {"selector": {"more": "labels"}}}, "spec.selector"),
    ("Service", {"spec": {"type": "NodePort"}}, "spec.type"),
    ("Role", {"rules": []}, "rules"),
    ("RoleBinding", {"subjects": None}, "subjects"),
    ("Secret", {"data": {"config.json.gz": ""}}, "data"),
    ("ServiceAccount", {"automountServiceAccountToken": True}, "automountServiceAccountToken"),
    ("NetworkPolicy", {"spec": {"ingress": [{}]}}, "spec.ingress"),
]
NOT_OURS = [
    ("Deployment", {"spec": {"template": {"metadata": {"annotations": {"restartedAt": "now"}}}}}),
    ("Deployment", {"spec": {"progressDeadlineSeconds": 60}}),
    ("Service", {"metadata": {"annotations": {"cloud": "a"}}, "spec": {"externalTrafficPolicy": "Local"}}),
    ("ServiceAccount", {"imagePullSecrets": [{"name": "registry"}]}),
    ("Secret", {"metadata": {"labels": {"team": "a"}}}),
]


class TestEdits:
    async def test_of_what_is_ours_are_found_and_put_back(self, admin, namespace):
        cluster = pool_in(namespace, **EVERYTHING)
        there = {each["kind"]: each for each in await applied(admin, cluster)}
        cluster.put(*there.values())
        for kind, change, path in OURS:
            cluster.put(await edited(admin, there[kind], change))
            [found] = cluster.changes().applies
            assert (found.wanted["kind"], bool(found.uid)) == (kind, True)
            assert [each for each in found.paths if each.startswith(path)], (change, found.paths)
            cluster.put(await admin.apply(found.wanted, manager=MANAGER))
            assert cluster.changes().applies == ()

    async def test_of_what_is_not_ours_are_left_alone(self, admin, namespace):
        cluster = pool_in(namespace, **EVERYTHING)
        there = {each["kind"]: each for each in await applied(admin, cluster)}
        cluster.put(*there.values())
        for kind, change in NOT_OURS:
            cluster.put(await edited(admin, there[kind], change))
            assert cluster.changes().applies == (), change

    async def test_what_a_pool_asks_for_no_more_is_taken_back(self, admin, namespace):
        full = pool_in(namespace, **EVERYTHING)
        found = await applied(admin, full)
        less = pool_in(namespace)
        less.put(*found)
        left = less.changes()
        assert [each.kind for each in left.removals] == ["NetworkPolicy"]
        assert {each.wanted["kind"] for each in left.applies} == {"Secret", "Service", "Deployment"}
        less.put(*[await admin.apply(each.wanted, manager=MANAGER) for each in left.applies])
        assert less.changes().applies == ()
        deployment = less.get("Deployment", f"{namespace}/llama-fairpool")["spec"]["template"]["spec"]
        assert not {"volumes", "affinity", "nodeSelector", "imagePullSecrets"} & deployment.keys()
        assert [each["key"] for each in deployment["tolerations"]] == [
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/unreachable",
        ]


class TestThePod:
    async def test_is_admitted_where_only_restricted_pods_are(self, admin, namespace):
        label = {"pod-security.kubernetes.io/enforce": "restricted"}
        await admin.patch(Kind("v1", "Namespace"), namespace, None, {"metadata": {"labels": label}})
        cluster = pool_in(namespace, **EVERYTHING)
        wanted = {each.wanted["kind"]: each.wanted for each in cluster.changes().applies}
        await admin.apply(wanted["ServiceAccount"])
        template = wanted["Deployment"]["spec"]["template"]
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        pod["metadata"] = {**template["metadata"], "name": "gateway", "namespace": namespace}
        made = await admin.create(pod)
        assert made["metadata"]["labels"]["fairpool.dev/pool"] == "llama"
        lost = [each for each in made["spec"]["tolerations"] if each.get("effect") == "NoExecute"]
        assert [each["tolerationSeconds"] for each in lost] == [10, 10]


class TestWhatIsKept:
    async def test_no_value_of_a_secret_that_the_server_sent_is(self, admin, namespace):
        wanted = secret("llama-fairpool-config", namespace, use="config", value="sk-secret")
        del wanted["metadata"]["uid"], wanted["metadata"]["resourceVersion"], wanted["metadata"]["generation"]
        del wanted["metadata"]["creationTimestamp"]
        found = await admin.apply(wanted, manager=MANAGER)
        kept = read_owned("Secret", found)
        assert wanted["data"]["value"] in json.dumps(found)
        assert wanted["data"]["value"] not in kept.text.decode()
        assert difference(hashed(wanted), kept.object()) == ()
