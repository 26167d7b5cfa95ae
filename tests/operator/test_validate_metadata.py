"""What `validate` asks of metadata, about which definitions say nothing; that a server agrees is shown with one."""

from __future__ import annotations

import pytest
from support.cluster.definitions import tenant_weight

from fairpool_operator.validate.causes import rendered
from fairpool_operator.validate.server import check

OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"}
CONTROLLER = {**OWNER, "controller": True}


def told(**metadata):
    resource = tenant_weight("default")
    causes, _ = check({**resource, "metadata": {**resource["metadata"], **metadata}})
    return [rendered(each.path) for each in causes if each.path]


class TestFinalizers:
    @pytest.mark.parametrize("finalizers", [None, [], ["a"], ["example.com/b", "orphan"], ["foregroundDeletion"]])
    def test_are_names(self, finalizers):
        assert told(finalizers=finalizers) == []

    @pytest.mark.parametrize("finalizers", [["a b"], [""], [None], ["a/b/c"], ["orphan", "foregroundDeletion"]])
    def test_that_are_none_or_contradict_each_other_are_refused(self, finalizers):
        assert told(finalizers=finalizers) == ["metadata.finalizers"]

    def test_are_not_repeated_for_anything_may_have_been_put_there(self):
        resource = tenant_weight("default")
        resource["metadata"]["finalizers"] = ["sk live 123"]
        assert "sk live" not in str(check(resource)[0])


class TestOwners:
    @pytest.mark.parametrize(
        "owners",
        [[OWNER], [{**OWNER, "apiVersion": "apps/v1", "kind": "Event"}], [CONTROLLER, CONTROLLER], [CONTROLLER, OWNER]],
    )
    def test_are_what_the_server_takes_for_such(self, owners):
        assert told(ownerReferences=owners) == []

    @pytest.mark.parametrize(
        ("owners", "places"),
        [
            ([None], ["[0].apiVersion", "[0].kind", "[0].name", "[0].uid"]),
            ([OWNER, {**OWNER, "uid": ""}], ["[1].uid"]),
            ([{**OWNER, "apiVersion": "a/b/c", "kind": "Event"}], ["[0].apiVersion"]),
            ([{**OWNER, "apiVersion": "a/"}], ["[0].apiVersion"]),
            ([{**OWNER, "kind": "Event"}], ["[0]"]),
            ([{**OWNER, "apiVersion": "", "kind": "Event"}], ["[0].apiVersion"]),
            ([{**OWNER, "apiVersion": "/v1", "kind": "Event"}], ["[0]"]),
            ([CONTROLLER, {**CONTROLLER, "uid": "2"}], [""]),
        ],
    )  # fmt: skip
    def test_that_are_none_are_refused(self, owners, places):
        assert told(ownerReferences=owners) == [f"metadata.ownerReferences{place}" for place in places]


class TestManagers:
    @pytest.mark.parametrize(
        "manager", [None, {}, {"manager": "a", "fieldsV1": {"f:a": {"f:b": [{"c": 1}]}}}, {"fieldsV1": 7, "time": None}]
    )
    def test_have_fields_of_any_kind(self, manager):
        assert told(managedFields=[manager]) == []

    @pytest.mark.parametrize(
        ("manager", "place"),
        [(5, ""), ({"manager": 5}, ".manager"), ({"time": "yesterday"}, ".time"), ({"a": 1}, ".a")],
    )
    def test_that_are_none_are_refused(self, manager, place):
        assert told(managedFields=[{}, manager]) == [f"metadata.managedFields[1]{place}"]
