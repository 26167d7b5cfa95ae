"""What is said about a pool, from its first moment to the day it is gone."""

# ruff: noqa: E501  (a table reads best with each case on one line)

from __future__ import annotations

import pytest
from support.compiling import NOW, SmallCluster, message, states
from support.resources import SMALLEST, fair_pool, gateway_pod, pem, secret, tenant_weight

SERVING = {
    "Accepted": ("True", "Accepted"),
    "ResolvedRefs": ("True", "Resolved"),
    "EndpointsAvailable": ("True", "EndpointsReady"),
    "GatewayAvailable": ("True", "Available"),
    "Programmed": ("True", "Programmed"),
    "Ready": ("True", "Ready"),
}


def serving(*resources, **spec):
    """A pool with a gateway that serves, and whatever else is given."""
    cluster = SmallCluster(fair_pool(**spec), gateway_pod(), *resources)
    cluster.settle()
    cluster.serve()
    cluster.settle()
    return cluster


class TestFromTheFirstMoment:
    def test_the_smallest_pool_gets_a_gateway_and_waits_for_it(self):
        cluster = SmallCluster(fair_pool())
        made = cluster.settle()
        assert [each.wanted["kind"] for each in made.applies] == [
            "ServiceAccount", "Role", "RoleBinding", "Secret", "Service", "Deployment",
        ]  # fmt: skip
        assert made.pool_status is not None
        assert states(made.pool_status) == SERVING | {
            "EndpointsAvailable": ("Unknown", "GatewayNotReporting"),
            "GatewayAvailable": ("Unknown", "Pending"),
            "Programmed": ("Unknown", "GatewayNotReporting"),
            "Ready": ("Unknown", "Pending"),
        }

    def test_it_is_ready_once_a_gateway_serves_and_uses_its_configuration(self):
        cluster = serving(tenant_weight(weight=300))
        said = cluster.compiled().pool_status
        assert states(said) == SERVING
        assert said.status.url == "http://llama-fairpool.inference.svc/v1"
        assert (said.status.endpoints.summary, said.status.accelerators) == ("2/2", 2)
        assert (said.status.tenants, said.status.total_weight) == (1, 300)

    def test_nothing_is_written_any_more(self):
        cluster = serving(tenant_weight())
        assert not cluster.changes()

    def test_a_pool_that_is_gone_is_missed_by_its_tenants_alone(self):
        cluster = serving(tenant_weight())
        cluster.remove("FairPool", "llama")
        written = cluster.settle()
        assert written.pool_status is None
        [said] = written.tenant_statuses
        assert states(said)["ResolvedRefs"] == ("False", "PoolNotFound")
        assert states(said)["Stalled"] == ("True", "PoolNotFound")


PEM, KEY = pem("CERTIFICATE"), pem("PRIVATE KEY")
TLS = {**SMALLEST, "tls": {"caCertificateRef": {"name": "ca"}, "serverName": "engine.local"}}
CREDENTIAL = {**SMALLEST, "credentialRef": {"name": "engine-key"}}
CERTIFICATE = {"tls": {"certificateRef": {"name": "certificate"}}}
PROXY = {"type": "TrustedHeader", "header": "x-tenant", "proxyCredentialRef": {"name": "proxy"}}
SPACED = "two words"


class TestReferences:
    @pytest.mark.parametrize(
        ("spec", "secrets", "reason", "said"),
        [
            ({"endpoints": CREDENTIAL}, [], "SecretNotFound",
             "kubectl label --overwrite secret -n inference engine-key fairpool.dev/keys=engine"),
            ({"endpoints": CREDENTIAL}, [secret("engine-key", api_key="k")], "SecretNotFound", "for another use"),
            ({"endpoints": CREDENTIAL}, [secret("engine-key", "team", use="engine", api_key="k")], "SecretNotFound",
             "Secret inference/engine-key is not there"),
            ({"endpoints": CREDENTIAL}, [secret("engine-key", use="engine", other="k")], "KeyNotFound", "there: other."),
            ({"endpoints": CREDENTIAL}, [secret("engine-key", use="engine", api_key=" \n")], "KeyUnusable", "is empty"),
            ({"endpoints": CREDENTIAL}, [secret("engine-key", use="engine", api_key=SPACED)], "KeyUnusable", "in a header"),
            ({"endpoints": TLS}, [secret("ca", use="engine", **{"ca.crt": "DER"})], "KeyUnusable", "no certificate"),
            ({"endpoints": TLS}, [secret("ca", use="engine", **{"ca.crt": KEY})], "KeyUnusable", "no certificate"),
            ({"endpoints": TLS}, [secret("ca", use="engine", **{"ca.crt": PEM[:40]})], "KeyUnusable", "no certificate"),
            ({"endpoints": TLS}, [secret("ca", use="engine", **{"ca.crt": PEM.replace("TUlJ", "T")})], "KeyUnusable", ""),
            (
                {"gateway": CERTIFICATE},
                [secret("certificate", use="tls", **{"tls.crt": PEM, "tls.key": pem("ENCRYPTED PRIVATE KEY")})],
                "KeyUnusable",
                "encrypted",
            ),
            ({"gateway": CERTIFICATE}, [secret("certificate", use="tls", **{"tls.crt": PEM})], "KeyNotFound", "tls.key"),
            ({"authentication": PROXY}, [], "SecretNotFound", "proxy fairpool.dev/keys=true"),
            ({"authentication": PROXY}, [secret("proxy", credential=SPACED)], "KeyUnusable", "in a header"),
        ],
    )  # fmt: skip
    def test_that_cannot_be_used_are_said_with_the_remedy(self, spec, secrets, reason, said):
        found = SmallCluster(fair_pool(**spec), *secrets).compiled()
        assert states(found.pool_status)["ResolvedRefs"] == ("False", reason)
        assert states(found.pool_status)["Ready"] == ("False", reason)
        assert states(found.pool_status)["Stalled"] == ("True", reason)
        assert said in message(found.pool_status, "ResolvedRefs")
        assert SPACED not in repr(found)
        assert "Deployment" not in [each["kind"] for each in found.objects]

    @pytest.mark.parametrize(
        ("spec", "secrets"),
        [
            ({"endpoints": CREDENTIAL}, [secret("engine-key", use="engine", api_key="k\n")]),
            ({"endpoints": TLS}, [secret("ca", use="engine", **{"ca.crt": f"Certificate:\n  Version: 3\n{PEM}{PEM}"})]),
            ({"gateway": CERTIFICATE}, [secret("certificate", use="tls", **{"tls.crt": PEM, "tls.key": KEY})]),
            ({"authentication": PROXY}, [secret("proxy", credential="k")]),
        ],
    )
    def test_that_can_be_used_are_resolved(self, spec, secrets):
        found = SmallCluster(fair_pool(**spec), *secrets).compiled()
        assert states(found.pool_status)["ResolvedRefs"] == ("True", "Resolved")
        assert "Deployment" in [each["kind"] for each in found.objects]

    def test_lost_while_the_gateway_runs_leave_it_as_it_is_and_go_on_configuring_it(self):
        cluster = serving(secret("engine-key", use="engine", api_key="k"), endpoints=CREDENTIAL)
        cluster.remove("Secret", "engine-key")
        cluster.put(tenant_weight(weight=700))
        written = cluster.settle()
        assert [each.wanted["kind"] for each in written.applies] == ["Secret"]
        assert states(cluster.compiled().pool_status)["GatewayAvailable"] == ("True", "Available")

    def test_of_a_proxy_that_are_lost_leave_the_last_configuration_in_force(self):
        cluster = serving(secret("proxy", credential="k"), authentication=PROXY)
        cluster.remove("Secret", "proxy")
        found = cluster.compiled()
        assert found.config is None
        assert states(found.pool_status)["Programmed"] == ("False", "ReferencesNotResolved")
        assert not cluster.changes().applies


class TestAcceptance:
    def test_fields_that_do_not_go_together_change_nothing_and_say_where_they_are(self):
        cluster = serving()
        broken = cluster.get("FairPool", "llama")
        broken["spec"]["queue"] = {"maxRequestBytes": "128Mi"}
        broken["spec"]["endpoints"]["targetPorts"] = []
        cluster.put(broken)
        found = cluster.compiled()
        assert (found.config, found.objects, found.removals) == (None, (), ())
        assert states(found.pool_status)["Accepted"] == ("False", "Invalid")
        said = message(found.pool_status, "Accepted")
        assert "spec.queue.perTenant.maxBytes: must be at least queue.maxRequestBytes, 128Mi" in said
        assert "spec.endpoints.targetPorts: must not be empty" in said

    def test_a_pool_that_is_too_large_for_a_secret_keeps_the_last_configuration(self, monkeypatch):
        cluster = serving(tenant_weight())
        before = cluster.get("Secret", "llama-fairpool-config")
        monkeypatch.setattr("fairpool_operator.compile.config.MOST_BYTES", len(before["data"]["config.json.gz"]) // 2)
        cluster.put(*(tenant_weight(f"t{number}") for number in range(40)))
        cluster.remove("Service", "llama-fairpool")
        written = cluster.settle()
        assert [each.wanted["kind"] for each in written.applies] == ["Service"]
        found = cluster.compiled()
        assert states(found.pool_status)["Accepted"] == ("False", "ConfigTooLarge")
        assert "41 tenants, 41 keys" in message(found.pool_status, "Accepted")
        by_name = {each.metadata.name: states(each) for each in found.tenant_statuses}
        assert by_name["search"]["Programmed"] == ("True", "Programmed")
        assert by_name["t0"]["Programmed"] == ("False", "ConfigTooLarge")


class TestTheGateway:
    def of(self, *conditions):
        cluster = SmallCluster(fair_pool(), gateway_pod())
        cluster.settle()
        deployment = cluster.get("Deployment", "llama-fairpool")
        deployment["status"] = {
            "conditions": [dict(zip(("type", "status", "message"), each, strict=False)) for each in conditions]
        }
        cluster.put(deployment)
        said = cluster.compiled().pool_status
        return states(said)["GatewayAvailable"], message(said, "GatewayAvailable")

    def test_that_cannot_be_made_is_told_in_the_clusters_words(self):
        state, said = self.of(("Available", "False"), ("ReplicaFailure", "True", "exceeded quota: pods"))
        assert state == ("False", "GatewayFailed")
        assert "exceeded quota: pods" in said

    def test_that_does_not_start_is_told_with_where_to_look(self):
        state, said = self.of(("Available", "False"), ("Progressing", "False"))
        assert state == ("False", "GatewayFailed")
        assert "kubectl describe pod -n inference -l fairpool.dev/pool=llama" in said

    def test_that_is_not_ready_yet_is_not_available(self):
        assert self.of(("Available", "False"), ("Progressing", "True"))[0] == ("False", "GatewayNotReady")

    def test_that_uses_an_older_configuration_is_not_programmed_yet(self):
        cluster = serving()
        cluster.put(tenant_weight(weight=5))
        assert states(cluster.compiled().pool_status)["Programmed"] == ("Unknown", "Pending")
        cluster.serve()
        assert states(cluster.compiled().pool_status)["Programmed"] == ("True", "Programmed")

    @pytest.mark.parametrize("fields", [{"deletionTimestamp": "2026-05-01T12:00:00Z"}, {"name": "another"}])
    def test_that_is_gone_has_no_say(self, fields):
        cluster = serving()
        cluster.remove("Pod", "gateway-1")
        cluster.put(gateway_pod(**fields))
        said = cluster.compiled().pool_status
        assert states(said)["Programmed"] == ("Unknown", "GatewayNotReporting")
        assert states(said)["EndpointsAvailable"] == ("Unknown", "GatewayNotReporting")
        assert said.status.endpoints is None


class TestEndpoints:
    @pytest.mark.parametrize(
        ("report", "state", "said"),
        [
            ({"ready": 0, "total": 0, "leftOut": "2 pods not Ready: a, b"}, ("False", "NoEndpoint"), "not Ready: a, b"),
            ({"ready": 0, "total": 3}, ("False", "NoEndpointReady"), "None of 3 endpoints is ready"),
            ({"ready": 1, "total": 3, "endpointsDraining": 1}, ("True", "EndpointsReady"), "1 of 3 endpoints are ready, 1 draining"),
        ],
    )  # fmt: skip
    def test_are_what_the_gateway_found_and_an_empty_pool_is_ready(self, report, state, said):
        cluster = serving()
        cluster.serve(**report)
        found = cluster.compiled().pool_status
        assert states(found)["EndpointsAvailable"] == state
        assert states(found)["Ready"] == ("True", "Ready")
        assert said in message(found, "EndpointsAvailable")

    def test_of_a_suspended_pool_are_not_asked(self):
        cluster = serving(suspend=True)
        found = cluster.compiled()
        assert found.config.suspend
        assert message(found.pool_status, "Ready") == "The pool is suspended: every request is refused."


class TestEvents:
    def test_are_told_once_for_each_edition_of_a_refused_pool(self):
        cluster = SmallCluster(fair_pool(endpoints=CREDENTIAL))
        [event] = cluster.compiled().events
        assert (event.kind, event.metadata.name, event.reason) == ("FairPool", "llama", "SecretNotFound")
        cluster.settle()
        assert cluster.compiled().events == ()
        edited = cluster.get("FairPool", "llama")
        edited["metadata"]["generation"] = 2
        cluster.put(edited)
        [again] = cluster.compiled().events
        assert again.name != event.name

    def test_are_told_of_a_gateway_that_fails_and_not_of_one_that_starts(self):
        cluster = SmallCluster(fair_pool())
        cluster.settle()
        deployment = cluster.get("Deployment", "llama-fairpool")
        deployment["status"] = {"conditions": [{"type": "Progressing", "status": "True"}]}
        cluster.put(deployment)
        assert cluster.compiled().events == ()
        deployment["status"]["conditions"][0]["status"] = "False"
        cluster.put(deployment)
        assert [each.reason for each in cluster.compiled().events] == ["GatewayFailed"]

    def test_of_healthy_resources_there_are_none(self):
        cluster = serving(tenant_weight())
        assert cluster.compiled(NOW).events == ()
