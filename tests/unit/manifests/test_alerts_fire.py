"""When each alert fires and when it does not, on series made up for it, and what its sentence says then."""

import re

import pytest
from support.manifests import MANIFESTS, documents
from support.promql import Series, evaluate

FOUND = documents(MANIFESTS / "components" / "monitoring" / "alerts.yaml")
RULES = {rule["alert"]: rule for each in FOUND for group in each["spec"]["groups"] for rule in group["rules"]}

LLAMA = {"namespace": "inference", "pool": "llama", "pod": "llama-fairpool-1"}
QWEN = {"namespace": "inference", "pool": "qwen", "pod": "qwen-fairpool-1"}
REPLICAS = [{"namespace": "fairpool-system", "pod": f"fairpool-operator-{number}"} for number in (1, 2)]


def gauge(name, value, labels=LLAMA, least=None, **more):
    return Series(f"fairpool_{name}", {**labels, **more}, value=value, least=least)


def counter(name, each_second, labels=LLAMA, **more):
    return Series(f"fairpool_{name}_total", {**labels, **more}, each_second=each_second)


def up(value, labels=LLAMA, job="fairpool-gateway"):
    return Series("up", {**labels, "job": job}, value=value)


def outcomes(labels=LLAMA, **rates):
    """So many requests of a tenant ended each second, by reason."""
    return [counter("outcomes", rate, labels, reason=reason, tenant="search") for reason, rate in rates.items()]


def charged(first, second, *, waiting=1):
    """Two tenants of weights 300 and 100, charged so many tokens a second; the second has waited with so many."""
    tenants = [("search", 300, first, 1), ("batch", 100, second, waiting), ("_other", 1, 1e6, 1)]
    return [
        each
        for name, weight, rate, least in tenants
        for each in (
            counter("charged_tokens", rate, tenant=name),
            gauge("weight", weight, tenant=name),
            gauge("waiting_requests", 5, least=least, tenant=name),
        )
    ]


def operators(name, *values, least=None, **more):
    """What each replica of the operator says."""
    return [
        gauge(f"operator_{name}", value, labels, least, **more) for value, labels in zip(values, REPLICAS, strict=False)
    ]


def operator_counters(name, *rates, **more):
    return [counter(f"operator_{name}", rate, labels, **more) for rate, labels in zip(rates, REPLICAS, strict=False)]


def operators_up(*values):
    return [up(value, labels, "fairpool-operator") for value, labels in zip(values, REPLICAS, strict=False)]


FIVE_MINUTES, QUARTER, HOUR = 300, 900, 3600
RETRIED = 1 / 8
"""How often in a second a place is listed again that cannot be."""

FIRES = {
    "FairPoolGatewayDown": [[up(0), up(1, QWEN)]],
    "FairPoolNoEndpoint": [outcomes(answered=5, no_endpoint=0.01)],
    "FairPoolEnginesFail": [
        outcomes(answered=0.97, upstream_failed=0.03),
        outcomes(answered=0.97, upstream_failed=0.01, upstream_timeout=0.01, answer_broken=0.01),
        [*outcomes(answered=0.9, answer_broken=0.1), *outcomes(QWEN, answered=100)],
    ],
    "FairPoolEndpointEjected": [[gauge("endpoint_standing", 1, endpoint="a", standing="ejected")]],
    "FairPoolWrongModel": [[gauge("endpoint_serves_models", 0, endpoint="a")]],
    "FairPoolTooSmall": [outcomes(answered=0.94, queue_full=0.03, queue_timeout=0.03)],
    "FairPoolUnequal": [charged(100, 100), charged(900, 100), charged(0, 100)],
    "FairPoolEstimatesOff": [[counter("estimate_error_tokens", 2), counter("used_tokens", 1)]],
    "FairPoolConfigRefused": [[gauge("config_current", 0)]],
    "FairPoolNotFollowing": [[gauge("followed", 0, what="pods"), gauge("followed", 1, what="config")]],
    "FairPoolConnectionsRefused": [[counter("refused_connections", 0.01)]],
    "FairPoolNotReady": [operators("unready_pools", 0, 1)],
    "FairPoolTenantNotReady": [operators("unready_tenant_weights", 0, 1)],
    "FairPoolOperatorDown": [[], operators_up(0, 0), [up(1)]],
    "FairPoolOperatorNotLeading": [operators("leading", 0, 0), operators("leading", 1, 1)],
    "FairPoolOperatorNotSynced": [operators("synced", 0, 1)],
    "FairPoolOperatorCannotList": [operator_counters("failed_lists", 0, RETRIED)],
    "FairPoolOperatorFailing": [operator_counters("reconciles", 4 / QUARTER, result="failed")],
    "FairPoolOperatorBehind": [operators("waiting_pools", 3, least=1)],
    "FairPoolOperatorMissesEvents": [
        operator_counters("corrections", 11 / HOUR),
        operator_counters("watch_restarts", 4 / HOUR),
    ],
}
SILENT = {
    "FairPoolGatewayDown": [[up(1)], operators_up(0)],
    "FairPoolNoEndpoint": [outcomes(answered=5, no_endpoint=0), outcomes(queue_timeout=5, upstream_failed=5)],
    "FairPoolEnginesFail": [
        outcomes(answered=0.99, upstream_failed=0.01),
        outcomes(answered=0.5, tenant_gone=0.5, queue_full=1),
    ],
    "FairPoolEndpointEjected": [
        [
            gauge("endpoint_standing", 0, endpoint="a", standing="ejected"),
            gauge("endpoint_standing", 1, endpoint="a", standing="ready"),
        ]
    ],
    "FairPoolWrongModel": [[gauge("endpoint_serves_models", 1, endpoint="a")]],
    "FairPoolTooSmall": [outcomes(answered=0.96, queue_full=0.02, queue_timeout=0.02), outcomes(no_endpoint=1)],
    "FairPoolUnequal": [charged(300, 100), charged(400, 100), charged(300, 1, waiting=0)],
    "FairPoolEstimatesOff": [[counter("estimate_error_tokens", 1), counter("used_tokens", 2)]],
    "FairPoolConfigRefused": [[gauge("config_current", 1)]],
    "FairPoolNotFollowing": [[gauge("followed", 1, what="pods")]],
    "FairPoolConnectionsRefused": [[counter("refused_connections", 0)]],
    "FairPoolNotReady": [operators("unready_pools", 0, 0)],
    "FairPoolTenantNotReady": [operators("unready_tenant_weights", 0, 0)],
    "FairPoolOperatorDown": [operators_up(1, 0), operators_up(1, 1)],
    "FairPoolOperatorNotLeading": [operators("leading", 1, 0)],
    "FairPoolOperatorNotSynced": [operators("synced", 1, 1)],
    "FairPoolOperatorCannotList": [operator_counters("failed_lists", 3 / FIVE_MINUTES), operator_counters("lists", 1)],
    "FairPoolOperatorFailing": [
        operator_counters("reconciles", 2 / QUARTER, result="failed"),
        operator_counters("reconciles", 9, result="written"),
    ],
    "FairPoolOperatorBehind": [operators("waiting_pools", 3, least=0)],
    "FairPoolOperatorMissesEvents": [
        [*operator_counters("corrections", 9 / HOUR), *operator_counters("watch_restarts", 2 / HOUR)]
    ],
}


def cases(table):
    return [
        pytest.param(name, series, id=f"{name}-{at}")
        for name, all_of in table.items()
        for at, series in enumerate(all_of)
    ]


def test_all_have_cases_of_both_kinds():
    assert list(FIRES) == list(SILENT) == list(RULES)


@pytest.mark.parametrize(("name", "series"), cases(FIRES))
def test_one_fires_once_with_the_labels_that_its_sentence_names(name, series):
    [labels] = evaluate(RULES[name]["expr"], series)
    assert set(re.findall(r"\$labels\.(\w+)", RULES[name]["annotations"]["summary"])) <= labels.keys()
    assert labels.get("pool", "llama") == "llama"


@pytest.mark.parametrize(("name", "series"), cases(SILENT))
def test_one_is_silent(name, series):
    assert evaluate(RULES[name]["expr"], series) == []


@pytest.mark.parametrize(
    "expression",
    [
        "fairpool_weight == bool 1",
        "fairpool_weight offset 1d",
        "fairpool_weight @ 0",
        'fairpool_weight{pool="a" or pool="b"}',
        "rate(fairpool_charged_tokens_total[10s])",
        "fairpool_weight / on (pool) fairpool_weight",
    ],
)
def test_what_the_alerts_do_not_speak_is_refused_and_not_guessed(expression):
    series = [gauge("weight", 1), counter("charged_tokens", 1)]
    with pytest.raises((AssertionError, KeyError, NotImplementedError)):
        evaluate(expression, series)
