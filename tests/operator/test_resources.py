"""What resources say when they are read."""

from __future__ import annotations

import pytest

from fairpool_operator.errors import Unreadable
from fairpool_operator.resources import (
    EndpointCounts,
    LabelSelector,
    read_metadata,
    read_pool,
    read_tenant_weight,
)

METADATA = {
    "name": "search",
    "namespace": "team",
    "uid": "1",
    "generation": 1,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "resourceVersion": "7",
}
SMALLEST = {"endpoints": {"selector": {"matchLabels": {"app": "vllm"}}, "targetPorts": [{"number": 8000}]}}


def a_tenant_weight(**spec):
    return read_tenant_weight({"metadata": METADATA, "spec": spec})


class TestTenant:
    def test_of_the_pools_own_namespace_is_called_as_it_says(self):
        here = {"poolRef": {"name": "llama", "namespace": "team"}}
        assert a_tenant_weight(**here).tenant == "search"
        assert a_tenant_weight(**here, tenantName="Find").tenant == "Find"
        assert a_tenant_weight(poolRef={"name": "llama"}).pool == ("team", "llama")

    def test_of_another_namespace_is_called_after_that_too(self):
        elsewhere = {"poolRef": {"name": "llama", "namespace": "inference"}}
        assert a_tenant_weight(**elsewhere).tenant == "team/search"
        assert a_tenant_weight(**elsewhere, tenantName="Find").tenant == "team/Find"


class TestGatewayPort:
    def test_is_that_of_the_scheme_where_none_is_given(self):
        def port(**gateway):
            return read_pool({"metadata": METADATA, "spec": {**SMALLEST, "gateway": gateway}}).spec.gateway.port

        certificate = {"certificateRef": {"name": "t"}}
        assert [port(), port(tls=certificate), port(tls=certificate, service={"port": 8443})] == [80, 443, 8443]


class TestSelector:
    @pytest.mark.parametrize(
        ("selector", "chosen"),
        [
            ({}, [{}, {"a": "1"}, {"a": "2", "b": ""}]),
            ({"matchLabels": {"a": "1"}}, [{"a": "1"}]),
            ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "3"]}]}, [{"a": "1"}]),
            ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, [{}, {"a": "2", "b": ""}]),
            ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, [{"a": "1"}, {"a": "2", "b": ""}]),
            ({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}, [{}, {"a": "1"}]),
            ({"matchLabels": {"a": "2"}, "matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}, []),
        ],
    )
    def test_chooses_as_kubernetes_does(self, selector, chosen):
        labels = [{}, {"a": "1"}, {"a": "2", "b": ""}]
        assert [each for each in labels if LabelSelector.model_validate(selector).matches(each)] == chosen


class TestReading:
    def test_ignores_fields_of_newer_definitions(self):
        pool = read_pool({"metadata": METADATA, "spec": {**SMALLEST, "newer": {"a": 1}}, "status": {"newer": 1}})
        assert pool == read_pool({"metadata": METADATA, "spec": SMALLEST})

    def test_names_the_fields_it_cannot_read_and_repeats_no_value(self):
        with pytest.raises(Unreadable) as refused:
            a_tenant_weight(poolRef={"name": "llama"}, apiKeys=[{"name": "a", "digest": "sk-secret"}], weight=0)
        assert "spec.apiKeys.0.digest, spec.weight" in str(refused.value)
        assert "sk-secret" not in str(refused.value)
        assert refused.value.__cause__ is None
        assert refused.value.__context__ is None

    def test_knows_whose_resource_it_is_whatever_its_spec(self):
        assert read_metadata({"metadata": METADATA, "spec": {}}).namespace == "team"


def test_endpoint_counts_say_themselves_in_one_column():
    assert EndpointCounts(ready=3, total=4, draining=1).written() == {
        "ready": 3,
        "total": 4,
        "draining": 1,
        "summary": "3/4",
    }
