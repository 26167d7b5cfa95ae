"""At rest there is no difference; whatever somebody does to a field of ours is one; what is not ours never is."""

from __future__ import annotations

import copy
from typing import ClassVar

import pytest
from support.server_side_apply import applied

from fairpool_operator.differences import difference, excerpt, left_by_patches

WANTED = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "llama-fairpool", "namespace": "inference", "labels": {"fairpool.dev/pool": "llama"}},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"fairpool.dev/pool": "llama"}},
        "template": {
            "spec": {
                "tolerations": [{"key": "gone", "operator": "Exists", "tolerationSeconds": 10}],
                "containers": [
                    {
                        "name": "gateway",
                        "args": ["--pool", "llama"],
                        "ports": [{"containerPort": 8080, "protocol": "TCP", "name": "http"}],
                        "resources": {"requests": {"cpu": "0.5", "memory": "1Gi"}},
                    }
                ],
                "volumes": [{"name": "scratch", "emptyDir": {}}],
            }
        },
    },
}
CONTAINER = ("spec", "template", "spec", "containers", 0)


def there(*edits, wanted=WANTED):
    """The object as it is after we applied it and others edited it: (path, value), or (path,) for a removal."""
    result = copy.deepcopy(applied(copy.deepcopy(wanted)))
    for path, *value in edits:
        *way, last = path
        at = result
        for step in way:
            at = at[step]
        if not value:
            del at[last]
        elif last == "append":
            at.append(value[0])
        else:
            at[last] = value[0]
    return result


def fields_of_ours(found):
    return found["metadata"]["managedFields"][0]["fieldsV1"]


class TestAtRest:
    def test_what_was_applied_is_there(self):
        assert difference(WANTED, there()) == ()

    @pytest.mark.parametrize(
        "edit",
        [
            pytest.param((("metadata", "annotations"), {"deployment.kubernetes.io/revision": "1"}), id="an annotation"),
            pytest.param((("metadata", "labels", "team"), "a"), id="a label"),
            pytest.param((("spec", "progressDeadlineSeconds"), 600), id="a default of the server"),
            pytest.param(((*CONTAINER, "imagePullPolicy"), "Always"), id="a default within a merged list"),
            pytest.param(
                (("spec", "template", "spec", "tolerations", 0, "effect"), ""), id="a default within a list set whole"
            ),
            pytest.param(
                (("spec", "template", "spec", "containers", "append"), {"name": "sidecar"}), id="another's container"
            ),
            pytest.param(((*CONTAINER, "resources", "requests", "cpu"), "500m"), id="an amount in other words"),
            pytest.param(((*CONTAINER, "resources", "requests", "memory"), "1024Mi"), id="a size in other words"),
            pytest.param(((*CONTAINER, "resources", "requests", "memory"), "1073741824"), id="a size in bytes"),
            pytest.param(
                (("spec", "template", "spec", "volumes", 0, "emptyDir"), {"medium": ""}), id="within an empty mapping"
            ),
        ],
    )
    def test_what_the_server_or_others_add_is_no_difference(self, edit):
        assert difference(WANTED, there(edit)) == ()


class TestEdits:
    @pytest.mark.parametrize(
        ("edit", "path"),
        [
            ((("spec", "replicas"), 3), "spec.replicas"),
            ((("spec", "replicas"),), "spec.replicas"),
            ((("spec", "replicas"), True), "spec.replicas"),
            ((("metadata", "labels", "fairpool.dev/pool"), "other"), "metadata.labels.[fairpool.dev/pool]"),
            (((*CONTAINER, "args", 1), "other"), "spec.template.spec.containers[name=gateway].args[1]"),
            (((*CONTAINER, "args", "append"), "--debug"), "spec.template.spec.containers[name=gateway].args"),
            (
                ((*CONTAINER, "ports", 0, "containerPort"), 9090),
                "spec.template.spec.containers[name=gateway].ports[containerPort=8080,protocol=TCP]",
            ),
            (
                ((*CONTAINER, "resources", "requests", "cpu"), "501m"),
                "spec.template.spec.containers[name=gateway].resources.requests.cpu",
            ),
            ((("spec", "template", "spec", "tolerations", 0, "tolerationSeconds"), 300),
             "spec.template.spec.tolerations[0].tolerationSeconds"),
            ((("spec", "template", "spec", "volumes"), []), "spec.template.spec.volumes[name=scratch]"),
        ],
    )  # fmt: skip
    def test_of_a_field_of_ours_are_found(self, edit, path):
        assert difference(WANTED, there(edit)) == (path,)

    def test_that_took_a_field_over_are_found_though_the_value_is_as_wanted(self):
        found = there()
        del fields_of_ours(found)["f:spec"]["f:replicas"]
        assert difference(WANTED, found) == ("spec.replicas",)


class TestWhatIsOurs:
    def test_a_field_that_we_want_no_longer_is_found(self):
        less = copy.deepcopy(WANTED)
        del less["spec"]["replicas"]
        assert difference(less, there()) == ("spec.replicas",)

    def test_an_item_of_a_merged_list_that_we_want_no_longer_is_found(self):
        less = copy.deepcopy(WANTED)
        less["spec"]["template"]["spec"]["volumes"] = []
        assert difference(less, there()) == ("spec.template.spec.volumes[name=scratch]",)

    def test_nothing_is_where_another_manager_applied_it(self):
        found = applied(copy.deepcopy(WANTED), manager="somebody")
        assert difference(WANTED, found) == ("metadata.managedFields",)

    def test_nothing_is_where_nothing_was_recorded(self):
        assert difference(WANTED, {"metadata": {"name": "llama-fairpool"}}) == ("metadata.managedFields",)

    def test_identity_is_nobodys_field(self):
        with_uid = {**WANTED, "metadata": {**WANTED["metadata"], "uid": "u", "resourceVersion": "9"}}
        assert difference(with_uid, there()) == ()


class TestAnExcerpt:
    WANTED: ClassVar = {
        "spec": {"ports": [{"port": 80, "name": "http"}], "type": "ClusterIP"},
        "metadata": {"labels": {"a": "b"}},
    }

    def test_holds_lists_whole_and_nothing_else(self):
        assert excerpt(self.WANTED, ["spec.ports[port=80,protocol=TCP]"]) == {
            "spec": {"ports": self.WANTED["spec"]["ports"]}
        }

    def test_holds_leaves_as_they_are_wanted(self):
        assert excerpt(self.WANTED, ["spec.type", "metadata.labels.a"]) == {
            "spec": {"type": "ClusterIP"},
            "metadata": {"labels": {"a": "b"}},
        }

    def test_leaves_out_what_is_wanted_no_more(self):
        assert excerpt(self.WANTED, ["spec.gone", "nowhere.at.all"]) == {}


class TestWhatAPatchLeft:
    """Fields that were not applied, but set by a patch under the operator's name."""

    def there(self, *ports, operation="Update", subresource=None, manager="fairpool-operator"):
        fields = {"f:ports": {f'k:{{"port":{port}}}': {".": {}, "f:port": {}} for port in ports}, "f:type": {}}
        entry = {"manager": manager, "operation": operation, "fieldsV1": {"f:spec": fields}}
        if subresource is not None:
            entry["subresource"] = subresource
        spec = {"type": "ClusterIP", "ports": [{"port": 1}, *({"port": port} for port in ports)]}
        return {"metadata": {"managedFields": [entry]}, "spec": spec}

    def test_and_is_wanted_no_more_is_found_the_last_in_a_list_first(self):
        wanted = {"spec": {"ports": [{"port": 20}]}}
        assert left_by_patches(wanted, self.there(10, 20, 30)) == [
            ("spec", "type"),
            ("spec", "ports", 3),
            ("spec", "ports", 1),
        ]

    def test_and_is_wanted_is_nothing_to_take_out(self):
        wanted = {"spec": {"type": "ClusterIP", "ports": [{"port": 20}]}}
        assert left_by_patches(wanted, self.there(20)) == []

    def test_and_is_gone_is_nothing_to_take_out(self):
        found = self.there(20)
        del found["spec"]["ports"]
        assert left_by_patches({"spec": {"type": "ClusterIP"}}, found) == []

    @pytest.mark.parametrize(
        "other", [{"operation": "Apply"}, {"subresource": "status"}, {"manager": "somebody"}], ids=str
    )
    def test_elsewhere_or_by_others_is_left(self, other):
        assert left_by_patches({"spec": {}}, self.there(20, **other)) == []

    def test_in_a_status_is_found_there(self):
        found = self.there(20, subresource="status")
        assert left_by_patches({"spec": {"type": "a"}}, found, subresource="status") == [("spec", "ports")]
