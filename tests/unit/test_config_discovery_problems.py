"""What is wrong with how a configuration says where endpoints are is said in words, at its place in the file."""

# ruff: noqa: E501  (a table reads best with each case on one line)

import json

import pytest
from support.config import digest_of, pool_document

from fairpool_gateway.config import load
from fairpool_gateway.config.shown import shown
from fairpool_gateway.errors import ConfigInvalid

TLS = {"caFile": "/etc/fairpool/ca.pem", "serverName": "engine.local"}


def problems_of(text):
    with pytest.raises(ConfigInvalid) as refused:
        load(text, source="pool.yaml", strict=True)
    return refused.value.problems


def found(*, endpoints=(), more=(), **fields):
    discovery = {"selector": {"matchLabels": {"app": "vllm"}}, "targetPorts": [{"number": 8000}], **fields}
    return {"endpoints": list(endpoints), "discovery": discovery, **dict(more)}


def requirement(**fields):
    return found(selector={"matchExpressions": [{"key": "app", **fields}]})


LONGEST = "a." * 126 + "a"
"""The longest prefix that a label may have: 253 characters."""


DISCOVERY = [
    (found(endpoints=[{"name": "e", "url": "http://h:1"}]), "endpoints: must be empty where discovery finds them: remove one of the two"),
    ({"discovery": {"targetPorts": [{"number": 1}]}, "endpoints": []}, "discovery.selector: is missing: say by their labels which pods are endpoints"),
    ({"discovery": {"selector": {"matchLabels": {"a": "b"}}}, "endpoints": []}, "discovery.targetPorts: is missing: give the number or the name of the port to connect to"),
    (found(selector={}), "discovery.selector: must not be empty, or every pod of the namespace would be meant: give matchLabels"),
    (found(selector={"matchLabels": {"app": 5}}), "discovery.selector.matchLabels.app: must be text, not 5: put it in quotes"),
    (found(selector={"matchLabels": {"app": "-"}}), "discovery.selector.matchLabels.app: must be the value of a label, at most 63 letters, digits and . _ -, not '-'"),
    (found(selector={"matchLabels": {"a,b": "c"}}), "discovery.selector.matchLabels.a,b.[key]: must be the key of a label, such as app or example.com/app, not 'a,b'"),
    (requirement(key="a..b/c", operator="Exists"), "discovery.selector.matchExpressions[0].key: must be the key of a label, such as app or example.com/app, not 'a..b/c'"),
    (requirement(key=f"{LONGEST}b/c", operator="Exists"), f"discovery.selector.matchExpressions[0].key: must be the key of a label, such as app or example.com/app, not {shown(f'{LONGEST}b/c')}"),
    (requirement(operator="Equals"), "discovery.selector.matchExpressions[0].operator: must be In, NotIn, Exists or DoesNotExist, not 'Equals'"),
    (requirement(operator="In"), "discovery.selector.matchExpressions[0].values: must be there with In and NotIn, and empty with Exists and DoesNotExist"),
    (requirement(operator="Exists", values=["a"]), "discovery.selector.matchExpressions[0].values: must be there with In and NotIn, and empty with Exists and DoesNotExist"),
    (found(targetPorts=[]), "discovery.targetPorts: must not be empty: give the number or the name of the port to connect to"),
    (found(targetPorts=[{}]), "discovery.targetPorts[0]: must have either a number or a name"),
    (found(targetPorts=[{"number": 1, "name": "a"}]), "discovery.targetPorts[0]: must have either a number or a name"),
    (found(targetPorts=[{"name": "a"}, {"name": "a"}]), "discovery.targetPorts[1]: is in the list already, as targetPorts[0]"),
    (found(targetPorts=[{"number": 70000}]), "discovery.targetPorts[0].number: must be 1 to 65535, not 70000"),
    (found(targetPorts=[{"name": "HTTP"}]), "discovery.targetPorts[0].name: must be the name of a container's port, such as http, not 'HTTP'"),
    (found(accelerators={"policy": "Demand"}), "discovery.accelerators.policy: must be Require or Observe, not 'Demand'"),
    (found(accelerators={"resourceNames": []}), "discovery.accelerators.resourceNames: must not be empty with policy Require: name what pods ask for, such as nvidia.com/gpu"),
    (found(accelerators={"resourceNames": ["a/b/c"]}), "discovery.accelerators.resourceNames[0]: must be the name of a resource, such as nvidia.com/gpu, not 'a/b/c'"),
    (found(tls=True), "discovery.tls: must be true where there is endpointTls, which says whom to trust, and only there"),
    (found(more={"endpointTls": TLS}), "discovery.tls: must be true where there is endpointTls, which says whom to trust, and only there"),
    (found(more={"endpointTls": TLS}, tls="yes"), "discovery.tls: must be true or false, not 'yes'"),
]  # fmt: skip


def test_the_longest_prefix_of_a_label_is_no_problem():
    text = json.dumps(pool_document(**requirement(key=f"{LONGEST}/c", operator="Exists")))
    (read,) = load(text, source="pool.yaml", strict=True).discovery.selector.match_expressions
    assert read.key == f"{LONGEST}/c"


@pytest.mark.parametrize(("fields", "message"), DISCOVERY, ids=[message[:80] for _, message in DISCOVERY])
def test_a_wrong_field_is_named_with_its_place_and_what_to_do(fields, message):
    assert problems_of(json.dumps(pool_document(**fields))) == [message]


def test_that_nothing_says_where_endpoints_are_is_named():
    assert problems_of(f"pool: a\ntenants: [{{name: b, keys: [{{digest: '{digest_of('k')}'}}]}}]") == [
        "endpoints: is missing: list the inference servers, each with a name and a url"
    ]
