"""The control plane that the other tests stand on: the release that it should be, and as strict as a real one."""

import pytest
from support.cluster import build
from support.cluster.client import CONFIG_MAP, NAMESPACE, POD, Refused
from support.cluster.kubectl import KubectlFailed
from support.cluster.namespaces import new_namespace


def config_map(namespace, name="one", **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


class TestKubectl:
    async def test_client_and_server_are_of_the_release(self, kubectl):
        said = await kubectl("version")
        assert said.count(build.release()) == 2

    async def test_tables_are_read_by_their_head(self, kubectl, namespace, admin):
        await admin.create(config_map(namespace, a="1", b="2"))
        row = next(row for row in await kubectl.table("configmaps") if row["NAME"] == "one")
        assert row["DATA"] == "2"

    async def test_it_explains_and_applies(self, kubectl, namespace, admin):
        assert "Compute Resources required by this container" in await kubectl.explain("pod.spec.containers.resources")
        await kubectl.apply(config_map(namespace, a="1"))
        assert (await admin.get(CONFIG_MAP, "one", namespace))["data"] == {"a": "1"}

    async def test_a_refusal_is_told(self, kubectl):
        with pytest.raises(KubectlFailed, match="not found"):
            await kubectl("get", "pod", "nobody")


class TestNamespaces:
    async def test_one_is_gone_with_its_content_when_its_block_ends(self, admin):
        async with new_namespace(admin) as name:
            await admin.create(config_map(name))
            kept = config_map(name, "kept")
            kept["metadata"]["finalizers"] = ["example.com/never"]
            await admin.create(kept)
        assert await admin.find(NAMESPACE, name) is None
        assert await admin.find(CONFIG_MAP, "kept", name) is None

    async def test_pods_can_be_made_in_it(self, admin, namespace):
        container = {"name": "c", "image": "none"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": namespace}}
        await admin.create({**pod, "spec": {"containers": [container]}})
        assert [pod["metadata"]["name"] for pod in await admin.list(POD, namespace)] == ["p"]

    async def test_what_is_wrong_is_refused_in_the_servers_words(self, admin, namespace):
        with pytest.raises(Refused, match="a lowercase RFC 1123 subdomain"):
            await admin.create(config_map(namespace, "Not_A_Name"))
