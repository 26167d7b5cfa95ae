"""What `validate` says of resources together: as the operator would, as far as the files show it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.cluster.bad_together import PASTED, TEAM_LABELS, as_text, bad_together
from support.cluster.definitions import fair_pool, tenant_weight

from fairpool_operator.manifests import Manifests, read_text
from fairpool_operator.validate.documents import validate
from fairpool_operator.validate.findings import Severity

FILE = Path("pool.yaml")
NOW = datetime(2026, 5, 1, tzinfo=UTC)
TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": TEAM_LABELS}}
CASES = bad_together("inference", "team")
CORE = (
    *("Binding", "ComponentStatus", "ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node"),
    *("PersistentVolume", "PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController", "ResourceQuota"),
    *("Secret", "Service", "ServiceAccount"),
)
"""Every kind of Kubernetes' core group."""


def report(*documents, text=None, namespace="default"):
    read = tuple(read_text(as_text(documents) if text is None else text, FILE))
    return validate(Manifests((FILE,), read, ()), namespace, NOW)


def told(found, severity=Severity.ERROR):
    return [(each.kind, each.name, each.path) for each in found.findings if each.severity is severity]


def secret(name="search-key", *, labels=None, namespace="default", **fields):
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": {"fairpool.dev/keys": "true"} if labels is None else labels,
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **fields}


def with_key(name="search", **fields):
    keys = [{"name": "a", "secretKeyRef": {"name": "search-key", "key": "api-key"}}]
    return tenant_weight("default", name, apiKeys=keys, **fields)


class TestTheTable:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.case)
    def test_is_told_with_places(self, case):
        found = report(TEAM, *case.documents)
        assert told(found) == [(each.kind, each.name, each.place) for each in case.told]
        messages = [each.message for each in found.findings]
        assert all(each.says in message for each, message in zip(case.told, messages, strict=True))

    def test_is_told_the_same_when_all_of_it_is_looked_at_at_once(self):
        found = report(TEAM, *(document for case in CASES for document in case.documents))
        assert told(found) == [(each.kind, each.name, each.place) for case in CASES for each in case.told]
        assert told(found, Severity.WARNING) == []
        assert PASTED not in str(found)

    def test_what_a_server_stores_and_no_operator_can_read_is_an_error(self):
        key = {"name": "a", "secretKeyRef": {"name": "search-key", "key": "api-key"}, "notAfter": []}
        found = report(fair_pool("default"), tenant_weight("default", "search", apiKeys=[key]))
        assert told(found) == [("TenantWeight", "search", "spec")]
        [finding] = found.findings
        assert "cannot read spec.apiKeys.0.notAfter" in finding.message

    def test_repeats_no_key(self):
        found = report(secret(data={"api-key": "c2sgdHdvIHdvcmRz"}), fair_pool("default"), with_key())
        assert "cannot be sent in a header" in str(found)
        assert "sk two words" not in str(found)


class TestWhatTheFilesDoNotShow:
    """A repository may hold the tenants of a pool that is in another."""

    def test_is_a_warning_where_a_pool_is_in_none(self):
        found = report(tenant_weight("default"))
        assert told(found, Severity.WARNING) == [("TenantWeight", "search", "spec.poolRef")]
        assert "FairPool default/llama is in none of these files" in found.findings[0].message
        assert told(found) == []

    @pytest.mark.parametrize(
        "there",
        [
            (),
            (secret(data={"api-key": "ENC[AES256_GCM,data:x]"}, sops={"version": "3.9.0"}),),
            ({"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "metadata": {"name": "search-key"}},),
            (secret(namespace="elsewhere", stringData={"api-key": "sk"}),),
        ],
        ids=["none", "encrypted by SOPS", "sealed", "in another namespace"],
    )
    def test_is_a_warning_where_a_secret_is_in_none_that_can_be_read(self, there):
        found = report(fair_pool("default"), with_key(), *there)
        assert told(found, Severity.WARNING) == [("TenantWeight", "search", "spec.apiKeys[0].secretKeyRef")]
        assert told(found) == []

    def test_is_a_warning_where_the_labels_of_a_namespace_are_asked_for(self):
        chosen = {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "yes"}}}}
        pool = fair_pool("default", allowedTenants=chosen)
        tenant = tenant_weight("team", poolRef={"name": "llama", "namespace": "default"})
        assert told(report(pool, tenant), Severity.WARNING) == [("TenantWeight", "search", "spec.poolRef")]
        assert report(pool, tenant, TEAM).findings == ()

    @pytest.mark.parametrize(("name", "errors"), [("team", 0), ("other", 1)])
    def test_is_nothing_where_a_namespaces_name_says_it_all(self, name, errors):
        selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
        pool = fair_pool("default", allowedTenants={"namespaces": {"from": "Selector", "selector": selector}})
        tenant = tenant_weight("team", poolRef={"name": "llama", "namespace": "default"})
        assert len(told(report(pool, tenant))) == errors
        assert told(report(pool, tenant), Severity.WARNING) == []

    def test_is_the_name_of_a_namespace_whatever_its_label_says_in_the_file(self):
        selector = {"matchLabels": {"kubernetes.io/metadata.name": "team"}}
        pool = fair_pool("default", allowedTenants={"namespaces": {"from": "Selector", "selector": selector}})
        tenant = tenant_weight("team", poolRef={"name": "llama", "namespace": "default"})
        labels = {"kubernetes.io/metadata.name": "other"}
        other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels}}
        assert report(pool, tenant, other).findings == ()

    def test_is_nothing_of_a_pool_that_is_refused_itself(self):
        found = report(fair_pool("default", defaultWeight=0), tenant_weight("default"))
        assert [each.kind for each in found.findings] == ["FairPool"]


class TestAResource:
    def test_that_the_server_refuses_takes_nothing_from_another(self):
        refused = tenant_weight("default", "a", tenantName="search", weight=0)
        assert told(report(fair_pool("default"), refused, tenant_weight("default"))) == [
            ("TenantWeight", "a", "spec.weight")
        ]

    def test_that_comes_first_counts_as_the_older_whatever_its_name(self):
        weights = [tenant_weight("default", name, tenantName="search") for name in "ba"]
        found = report(fair_pool("default"), *weights)
        assert told(found) == [("TenantWeight", "a", "spec.tenantName")]
        assert "The older TenantWeight default/b is for tenant search already" in found.findings[0].message

    def test_that_is_there_twice_is_told_and_the_last_counts(self):
        pools = fair_pool("default"), fair_pool("default", allowedTenants={"namespaces": {"from": "All"}})
        tenant = tenant_weight("team", poolRef={"name": "llama", "namespace": "default"})
        found = report(*pools, tenant)
        assert told(found, Severity.WARNING) == [("FairPool", "llama", "")]
        assert told(found) == []
        assert "is at pool.yaml:1 too" in found.findings[0].message

    @pytest.mark.parametrize("resource", [secret(labels={}), secret(stringData={"api-key": "sk"}), TEAM])
    def test_of_another_kind_that_is_there_twice_is_told_too(self, resource):
        found = report(resource, resource)
        assert told(found, Severity.WARNING) == [(resource["kind"], resource["metadata"]["name"], "")]
        assert told(found) == []

    def test_of_the_same_name_elsewhere_is_another(self):
        assert report(secret(labels={}), secret(labels={}, namespace="team")).findings == ()

    def test_whose_name_the_server_makes_is_there_once_each_time(self):
        unnamed = tenant_weight("default", "")
        unnamed["metadata"] = {"generateName": "search-"}
        found = report(
            fair_pool("default"), *({**unnamed, "spec": {**unnamed["spec"], "tenantName": of}} for of in "aab")
        )
        assert told(found, Severity.WARNING) == []
        assert [each.path for each in found.findings] == ["spec.tenantName"]

    def test_whose_name_the_server_makes_is_never_another_that_has_its_name(self):
        named = tenant_weight("default", "search-00001", tenantName="a")
        unnamed = {**tenant_weight("default", tenantName="b"), "metadata": {"generateName": "search-"}}
        assert report(fair_pool("default"), named, unnamed).findings == ()
        assert report(fair_pool("default"), unnamed, named).findings == ()

    @pytest.mark.parametrize("resource", [secret(stringData={"api-key": "sk"}), secret(labels={}), TEAM])
    def test_of_another_kind_whose_name_the_server_makes_is_there_once_each_time(self, resource):
        unnamed = {**resource, "metadata": {**resource["metadata"], "name": "", "generateName": "search-"}}
        assert report(unnamed, unnamed, {**resource, "metadata": {"name": "search-00000"}}).findings == ()

    def test_without_a_namespace_is_in_the_one_that_was_asked_for(self):
        text = "apiVersion: fairpool.dev/v1alpha1\nkind: TenantWeight\nmetadata: {name: a}\nspec: {weight: 0}\n"
        found = report(text=text, namespace="inference")
        assert {(each.namespace, each.name) for each in found.findings} == {("inference", "a")}
        places = {(each.line, each.path) for each in found.findings}
        assert places == {(1, ""), (4, "spec.weight"), (4, "spec.poolRef")}

    @pytest.mark.parametrize(
        ("what", "path"),
        [
            ({"apiVersion": "fairpool.dev/v1", "kind": "FairPool"}, "apiVersion"),
            ({"apiVersion": "fairpool.dev/v1alpha1", "kind": "FairPol"}, "kind"),
            ({"kind": "TenantWeight"}, "apiVersion"),
            ({"apiVersion": "fairpol.dev/v1alpha1", "kind": "FairPool"}, "apiVersion"),
            ({"apiVersion": "FairPool.dev/v1alpha1", "kind": "TenantWeight"}, "apiVersion"),
            ({"apiVersion": "v1alpha1", "kind": "TenantWeight"}, "apiVersion"),
            ({"apiVersion": "fairpool.dev/v1alpha1", "kind": "fairpool"}, "kind"),
        ],
    )
    def test_of_a_kind_that_there_is_not_is_told(self, what, path):
        found = report({**what, "metadata": {"name": "a"}})
        assert told(found) == [(what["kind"], "a", path)]
        assert "FairPool and TenantWeight" in found.findings[0].message

    @pytest.mark.parametrize(
        ("what", "said"),
        [
            ({"apiVersion": "v1", "kind": "Secrt"}, "there is no Secrt in v1: v1 has Secret"),
            ({"apiVersion": "v1", "kind": "secret"}, "there is no secret in v1: v1 has Secret"),
            ({"apiVersion": "v1", "kind": "Namspace"}, "there is no Namspace in v1: v1 has Namespace"),
            ({"apiVersion": "apps/v1", "kind": "Secret"}, "there is no Secret in apps/v1: v1 has Secret"),
            ({"kind": "Namespace"}, "there is no Namespace in no apiVersion: v1 has Namespace"),
            ({"apiVersion": "v1", "kind": "FairPol"}, "there is no FairPol in v1: fairpool.dev/v1alpha1 has FairPool"),
        ],
    )
    def test_of_nearly_a_kind_that_is_read_is_told(self, what, said):
        found = report({**what, "metadata": {"name": "a"}})
        assert [(each.severity, each.message) for each in found.findings] == [(Severity.ERROR, said)]

    @pytest.mark.parametrize("version", ["v1", "apps/v1"])
    @pytest.mark.parametrize("kind", ["Namespace", "Namspace"])
    def test_that_is_or_was_to_be_a_namespace_is_in_none(self, version, kind):
        namespace = {"apiVersion": version, "kind": kind, "metadata": {"name": "team"}}
        found = report(namespace, namespace)
        assert {(each.namespace, each.name) for each in found.findings} == {("", "team")}

    @pytest.mark.parametrize(
        ("version", "kind"),
        [
            ("example.com/v1", "Secret"),
            ("example.com/v1", "Secrets"),
            *(("v1", kind) for kind in CORE),
            ("apps/v1", "DaemonSet"),
        ],
    )
    def test_of_a_kind_that_there_is_or_may_be_elsewhere_is_left_alone(self, version, kind):
        found = report({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}})
        assert (found.others, found.findings) == (1, ())

    @pytest.mark.parametrize(
        "metadata", [None, [], {"name": 7}, {"name": ["a"], "namespace": {}}, {"labels": {"a": True}}]
    )
    def test_whose_metadata_is_none_is_told(self, metadata):
        found = report({**fair_pool("default"), "metadata": metadata})
        assert any(each.path.startswith("metadata") for each in found.findings)

    def test_of_another_project_is_counted_and_left_alone(self):
        other = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "spec": 7}
        found = report(other, {"replicas": 3}, fair_pool("default"))
        assert (found.resources, found.others, found.findings) == (1, 2, ())


class TestSecrets:
    @pytest.mark.parametrize(
        "fields",
        [
            {"data": {"api-key": "c2stMQ=="}},
            {"stringData": {"api-key": "sk-1"}},
            {"data": {"api-key": ""}, "stringData": {"api-key": "sk-1"}},
        ],
        ids=["encoded", "in plain", "in plain over encoded"],
    )
    def test_are_read_as_the_server_keeps_them(self, fields):
        assert report(fair_pool("default"), with_key(), secret(**fields)).findings == ()

    @pytest.mark.parametrize("labels", [{"fairpool.dev/keys": "TRUE"}, {}, None, []])
    def test_need_the_label_to_the_letter(self, labels):
        found = report(
            fair_pool("default"),
            with_key(),
            secret(labels={} if labels is None else labels, stringData={"api-key": "sk"}),
        )
        assert told(found) == [("TenantWeight", "search", "spec.apiKeys[0].secretKeyRef")]

    @pytest.mark.parametrize(
        ("fields", "path"),
        [
            ({"stringData": {"api-key": 12345}}, "stringData[api-key]"),
            ({"data": {"api-key": True}}, "data[api-key]"),
            ({"data": {"api-key": "sk-hunter2"}}, "data[api-key]"),
            ({"data": {"api-key": "c2st MQ=="}}, "data[api-key]"),
            ({"stringData": ["api-key"]}, "stringData"),
            ({"stringData": {"api-key": "sk", "other": "k" * (1 << 20)}}, "data"),
            ({"stringData": {"api-key": "sk"}, "immutable": "yes"}, "immutable"),
            ({"stringData": {"api-key": "sk"}, "type": 7}, "type"),
            (
                {"stringData": {"api-key": "sk"}, "labels": {"fairpool.dev/keys": True}},
                "metadata.labels.fairpool.dev/keys",
            ),
        ],
        ids=[
            "a number",
            "a truth",
            "not encoded",
            "with a space",
            "a list",
            "large",
            "a text",
            "no text",
            "a true label",
        ],
    )
    def test_that_the_server_refuses_are_told_and_not_there(self, fields, path):
        found = report(fair_pool("default"), with_key(), secret(**fields))
        where = "TenantWeight", "search", "spec.apiKeys[0].secretKeyRef"
        assert sorted(told(found)) == sorted([where, ("Secret", "search-key", path)])
        assert "hunter2" not in str(found.findings)

    def test_that_are_refused_are_said_to_be_so_by_what_names_them_for_no_label_would_help(self):
        found = report(secret(labels={"fairpool.dev/keys": True}), fair_pool("default"), with_key())
        assert [each.message for each in found.findings] == [
            "Invalid value: must be of type string: put it in quotes",
            "Secret default/search-key would be refused itself: mend it first, at pool.yaml:1",
        ]

    def test_are_told_of_at_the_line_where_a_key_is_written_and_at_the_place_that_the_server_names(self):
        written = secret(stringData={"api-key": "sk", "api key": "sk"})
        [finding] = report(written).findings
        assert finding.path == "data[api key]"
        assert as_text([written]).splitlines()[finding.line - 1].strip() == '"api key": "sk"'

    def test_that_are_refused_and_for_nobody_here_are_not_looked_at(self):
        assert report(secret(labels={}, stringData={"port": 5432}), fair_pool("default")).findings == ()

    @pytest.mark.parametrize("field", ["data", "stringData"])
    def test_hold_nothing_where_a_value_is_null(self, field):
        found = report(fair_pool("default"), with_key(), secret(**{field: {"api-key": None}}))
        assert told(found) == [("TenantWeight", "search", "spec.apiKeys[0].secretKeyRef")]

    @pytest.mark.parametrize(
        "fields", [{"data": ["a"]}, {"data": {"api-key": 7}}, {"metadata": []}, {"metadata": {"name": {}}}]
    )
    def test_that_are_none_are_passed_over(self, fields):
        report({**secret(), **fields}, fair_pool("default"), with_key())
