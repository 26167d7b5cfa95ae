"""What is made for a pool: named, labelled and owned as its own, with no right and no restart more than it needs."""

# ruff: noqa: E501  (a table reads best with each case on one line)

from __future__ import annotations

import base64
import gzip
import json

import pytest
from pydantic.alias_generators import to_snake
from support.compiling import SmallCluster, message, states
from support.resources import SMALLEST, fair_pool, gateway_pod, metadata, pem, secret, tenant_weight

from fairpool_gateway.config import PoolConfig, load
from fairpool_operator.resources import FairPoolSpec
from fairpool_operator.view import OWNED_KINDS

POLICY = {"networkPolicy": {"monitoring": [{"namespaceSelector": {"matchLabels": {"team": "ops"}}}]}}


def made(*resources, **spec):
    """Every object, by its kind."""
    return {each["kind"]: each for each in SmallCluster(fair_pool(**spec), *resources).compiled().objects}


def pod(**gateway):
    return made(gateway=gateway)["Deployment"]["spec"]["template"]


def arguments(template):
    given = template["spec"]["containers"][0]["args"]
    return dict(zip(given[:-1:2], given[1::2], strict=True)) | {given[-1]: True}


class TestAll:
    def test_are_named_labelled_and_owned_and_copy_nothing_of_the_pool(self):
        meta = {"labels": {"argocd.argoproj.io/instance": "app"}, "annotations": {"kustomize": "x"}}
        cluster = SmallCluster(fair_pool(meta=meta, gateway=POLICY))
        objects = {each["kind"]: each for each in cluster.compiled().objects}
        assert list(objects) == list(OWNED_KINDS)
        for kind, each in objects.items():
            found = each["metadata"]
            assert found["name"] == ("llama-fairpool-config" if kind == "Secret" else "llama-fairpool")
            assert found["namespace"] == "inference"
            [owner] = found["ownerReferences"]
            assert (owner["kind"], owner["uid"], owner["controller"]) == ("FairPool", "uid-of-inference-llama", True)
            assert (
                found["labels"].items()
                >= {
                    "app.kubernetes.io/name": "fairpool-gateway",
                    "app.kubernetes.io/instance": "llama",
                    "app.kubernetes.io/managed-by": "fairpool-operator",
                    "fairpool.dev/pool": "llama",
                }.items()
            )
            assert "argocd" not in json.dumps(each)
            assert "kustomize" not in json.dumps(each)


class TestTheConfiguration:
    def test_travels_compressed_with_its_hash_and_reads_back_as_it_is(self):
        cluster = SmallCluster(fair_pool(models=["m"], defaultWeight=7), tenant_weight())
        compiled = cluster.compiled()
        wanted = next(each for each in compiled.objects if each["kind"] == "Secret")
        assert wanted["type"] == "fairpool.dev/config"
        assert wanted["metadata"]["labels"]["fairpool.dev/keys"] == "config"
        assert wanted["metadata"]["annotations"]["fairpool.dev/config-hash"] == compiled.config_hash
        text = gzip.decompress(base64.b64decode(wanted["data"]["config.json.gz"])).decode()
        assert load(text, source="the Secret", strict=True) == compiled.config

    def test_has_every_part_that_a_resource_and_it_both_have(self):
        shared = {
            "models": ["m"],
            "extraPaths": ["/v1/messages/count_tokens"],
            "probe": {"path": "/ping", "interval": "7s"},
            "slots": {"perEndpoint": 3},
            "queue": {"timeout": "9s", "perTenant": {"maxRequests": 4}},
            "timeouts": {"idle": "3s"},
            "cost": {"inputWeight": 5},
            "defaultWeight": 6,
            "overtaking": "Allow",
            "suspend": True,
        }
        both = PoolConfig.model_fields.keys() & FairPoolSpec.model_fields.keys() - {"endpoints", "authentication"}
        config = SmallCluster(fair_pool(**shared)).compiled().config
        anonymous = {"pool": "llama", "endpoints": [], "authentication": {"type": "Anonymous"}}
        said = {alias: value for alias, value in shared.items() if to_snake(alias) in both}
        alike = PoolConfig.model_validate({**anonymous, **said})
        for name in both:
            assert getattr(config, name) == getattr(alike, name) != PoolConfig.model_fields[name].default

    def test_says_how_endpoints_are_found_and_reached(self):
        endpoints = {
            "selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]},
            "targetPorts": [{"number": 8000}, {"name": "rank-1"}],
            "accelerators": {"policy": "Observe"},
            "tls": {"caCertificateRef": {"name": "ca", "key": "root.pem"}, "serverName": "engine.local"},
            "credentialRef": {"name": "key", "key": "token"},
        }
        config = SmallCluster(
            fair_pool(endpoints=endpoints),
            secret("ca", use="engine", **{"root.pem": pem("CERTIFICATE")}),
            secret("key", use="engine", token="k"),
        ).compiled().config  # fmt: skip
        found = config.discovery
        assert found.selector.match_expressions[0].values == ("a", "b")
        assert (found.accelerators.policy, found.tls) == ("Observe", True)
        assert [(port.number, port.name) for port in found.target_ports] == [(8000, None), (None, "rank-1")]
        assert config.endpoint_tls.ca_file == "/etc/fairpool/engine-ca/root.pem"
        assert config.endpoint_credential.from_file == "/etc/fairpool/engine/token"

    def test_never_changes_the_pod(self):
        edits = {
            "models": ["m"],
            "queue": {"timeout": "9s"},
            "slots": {"perEndpoint": 3},
            "cost": {"inputWeight": 5},
            "defaultWeight": 6,
            "suspend": True,
            "allowedTenants": {"namespaces": {"from": "All"}},
        }
        before = made()["Deployment"]
        for field, value in edits.items():
            assert made(tenant_weight(), **{field: value})["Deployment"] == before
        assert made(gateway={"drainTimeout": "1m"})["Deployment"] != before


class TestTheDeployment:
    def test_replaces_its_one_pod_without_a_gap(self):
        spec = made()["Deployment"]["spec"]
        assert spec["replicas"] == 1
        assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}

    @pytest.mark.parametrize(("drain", "seconds"), [("10m", 600), ("1ms", 1), ("1m30s", 90)])
    def test_gives_its_pod_the_time_to_be_missed_and_to_drain(self, drain, seconds):
        template = pod(drainTimeout=drain)
        assert arguments(template)["--drain-seconds"] == str(seconds)
        assert template["spec"]["terminationGracePeriodSeconds"] >= seconds + 30 + 10

    def test_tells_the_gateway_where_everything_is(self):
        template = pod()
        given = arguments(template)
        assert (given["--pool"], given["--namespace"]) == ("llama", "inference")
        assert given["--config-secret"] == "llama-fairpool-config"
        assert (given["--port"], given["--admin-port"], given["--in-pod"]) == ("8080", "8081", True)
        assert "--tls-key" not in given
        assert template["spec"]["serviceAccountName"] == "llama-fairpool"
        names = {each["name"] for each in template["spec"]["containers"][0]["env"]}
        assert names == {"POD_NAME", "POD_UID", "PYTHONMALLOC", "GLIBC_TUNABLES"}

    def test_mounts_just_the_keys_that_the_pool_names(self):
        engine_key = secret("engine-key", use="engine", api_key="k", other="x")
        certificate = secret("certificate", use="tls", **{"tls.crt": pem("CERTIFICATE"), "tls.key": pem("PRIVATE KEY")})
        spec = {"endpoints": {**SMALLEST, "credentialRef": {"name": "engine-key"}}, "gateway": {"tls": {"certificateRef": {"name": "certificate"}}}}  # fmt: skip
        template = made(engine_key, certificate, **spec)["Deployment"]["spec"]["template"]
        volumes = {each["name"]: each["secret"] for each in template["spec"]["volumes"]}
        assert volumes["engine"] == {"secretName": "engine-key", "items": [{"key": "api-key", "path": "api-key"}]}
        mounts = {each["name"]: each["mountPath"] for each in template["spec"]["containers"][0]["volumeMounts"]}
        assert mounts == {"engine": "/etc/fairpool/engine", "tls": "/etc/fairpool/tls"}
        assert arguments(template)["--tls-certificate"] == "/etc/fairpool/tls/tls.crt"

    def test_takes_from_the_pool_a_closed_list_and_lets_none_of_it_replace_its_own(self):
        template = pod(
            podTemplate={
                "labels": {"fairpool.dev/pool": "another", "team": "a"},
                "annotations": {"note": "n"},
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "spot", "operator": "Exists"}],
                "priorityClassName": "high",
                "imagePullSecrets": [{"name": "b"}, {"name": "a"}],
            },
            resources={"requests": {"cpu": 2, "memory": "1Gi"}},
        )
        spec = template["spec"]
        assert template["metadata"]["labels"].items() >= {"team": "a", "fairpool.dev/pool": "llama"}.items()
        assert [each["key"] for each in spec["tolerations"]][-1] == "spot"
        assert spec["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
        assert (spec["nodeSelector"], spec["priorityClassName"]) == ({"disk": "ssd"}, "high")
        assert spec["containers"][0]["resources"] == {"requests": {"cpu": "2", "memory": "1Gi"}}
        assert spec["containers"][0]["image"] == "registry.example/fairpool:1"


class TestRights:
    def test_are_no_more_than_to_follow_pods_and_its_configuration_and_to_say_how_it_is(self):
        rules = {tuple(each["resources"]): each for each in made()["Role"]["rules"]}
        assert rules["pods",]["verbs"] == ["list", "watch"]
        assert rules["secrets",]["resourceNames"] == ["llama-fairpool-config"]
        assert rules["secrets",]["verbs"] == ["get", "list", "watch"]
        assert rules["fairpools/status",]["resourceNames"] == ["llama"]
        assert rules["fairpools/status",]["verbs"] == ["get", "patch"]
        assert len(rules) == 3

    def test_are_bound_to_its_own_account_alone(self):
        binding = made()["RoleBinding"]
        assert binding["roleRef"]["name"] == "llama-fairpool"
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "llama-fairpool", "namespace": "inference"}]


class TestTheNetwork:
    @pytest.mark.parametrize(
        ("gateway", "port", "url"),
        [
            ({}, 80, "http://llama-fairpool.inference.svc/v1"),
            ({"service": {"port": 8000}}, 8000, "http://llama-fairpool.inference.svc:8000/v1"),
            ({"tls": {"certificateRef": {"name": "t"}}}, 443, "https://llama-fairpool.inference.svc/v1"),
            ({"tls": {"certificateRef": {"name": "t"}}, "service": {"port": 80}}, 80, "https://llama-fairpool.inference.svc:80/v1"),
        ],
    )  # fmt: skip
    def test_finds_the_gateway_at_the_url_in_the_status(self, gateway, port, url):
        compiled = SmallCluster(fair_pool(gateway=gateway)).compiled()
        service = next(each for each in compiled.objects if each["kind"] == "Service")
        assert [each["port"] for each in service["spec"]["ports"]] == [port]
        assert compiled.pool_status.status.url == url

    def test_lets_everybody_call_and_whom_the_pool_names_look_at_metrics(self):
        [tenants, metrics] = made(gateway=POLICY)["NetworkPolicy"]["spec"]["ingress"]
        assert tenants == {"ports": [{"port": 8080, "protocol": "TCP"}]}
        assert metrics["ports"] == [{"port": 8081, "protocol": "TCP"}]
        assert metrics["from"] == [{"namespaceSelector": {"matchLabels": {"team": "ops"}}}]

    def test_has_no_policy_any_more_once_the_pool_asks_for_none(self):
        cluster = SmallCluster(fair_pool(gateway=POLICY), gateway_pod())
        cluster.settle()
        pool = cluster.get("FairPool", "llama")
        del pool["spec"]["gateway"]["networkPolicy"]
        cluster.put(pool)
        assert [each.kind for each in cluster.settle().removals] == ["NetworkPolicy"]
        assert cluster.changes().removals == ()


class TestNamesThatAreTaken:
    @pytest.mark.parametrize("kind", [kind for kind in OWNED_KINDS if kind != "NetworkPolicy"])
    def test_keep_everything_from_being_made_and_are_said(self, kind):
        name = "llama-fairpool-config" if kind == "Secret" else "llama-fairpool"
        cluster = SmallCluster(fair_pool(), {"kind": kind, "metadata": metadata(name)})
        written = cluster.settle()
        assert (written.applies, written.removals) == ((), ())
        assert states(written.pool_status)["Accepted"] == ("False", "NameTaken")
        assert f"{kind} {name} in namespace inference is not this pool's" in message(written.pool_status, "Accepted")

    def test_by_another_pool_are_said_like_those_by_anybody_else(self):
        other = {"apiVersion": "fairpool.dev/v1alpha1", "kind": "FairPool", "name": "other", "uid": "uid-of-other"}
        theirs = metadata("llama-fairpool", ownerReferences=[{**other, "controller": True}])
        cluster = SmallCluster(fair_pool(), {"kind": "Service", "metadata": theirs})
        written = cluster.settle()
        assert (written.applies, written.removals) == ((), ())
        assert states(written.pool_status)["Accepted"] == ("False", "NameTaken")

    def test_do_not_matter_for_what_the_pool_does_not_ask_for(self):
        cluster = SmallCluster(fair_pool(), {"kind": "NetworkPolicy", "metadata": metadata("llama-fairpool")})
        written = cluster.settle()
        assert len(written.applies) == 6
        assert written.removals == ()

    def test_leave_what_is_there_up_to_date_and_give_it_no_new_right(self):
        cluster = SmallCluster(fair_pool(), gateway_pod())
        cluster.settle()
        cluster.remove("ServiceAccount", "llama-fairpool")
        cluster.remove("RoleBinding", "llama-fairpool")
        cluster.put({"kind": "ServiceAccount", "metadata": metadata("llama-fairpool")}, tenant_weight())
        assert [each.wanted["kind"] for each in cluster.changes().applies] == ["Secret"]

    def test_are_the_pools_own_again_when_somebody_took_away_its_owner(self):
        cluster = SmallCluster(fair_pool())
        cluster.settle()
        service = cluster.get("Service", "llama-fairpool")
        del service["metadata"]["ownerReferences"]
        cluster.put(service)
        [found] = cluster.changes().applies
        assert (found.wanted["kind"], found.paths) == (
            "Service",
            ("metadata.ownerReferences[uid=uid-of-inference-llama]",),
        )

    def test_are_waited_for_when_they_belong_to_a_deleted_pool_of_the_name(self):
        cluster = SmallCluster(fair_pool(meta={"uid": "the-first"}))
        cluster.settle()
        cluster.put(fair_pool(meta={"uid": "the-second"}))
        compiled = cluster.compiled()
        assert compiled.objects == ()
        assert states(compiled.pool_status)["Accepted"] == ("True", "Accepted")
        assert states(compiled.pool_status)["GatewayAvailable"] == ("Unknown", "Pending")
        assert "of a deleted pool of the same name" in message(compiled.pool_status, "GatewayAvailable")
