"""The control plane that the other tests stand on: the release that it should be, and as strict as a real one."""

import asyncio
import dataclasses
import os
import signal
import sys
from pathlib import Path

import pytest
from support.cluster import build
from support.cluster.client import CONFIG_MAP, NAMESPACE, POD, SECRET, Kind, Refused, running_client
from support.cluster.kubectl import Kubectl, KubectlFailed
from support.cluster.namespaces import new_namespace
from support.cluster.waiting import eventually, eventually_all, gone
from support.processes import descendants, held

READS_CONFIG = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}


def config_map(namespace, name="one", **data):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


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


class TestAccounts:
    async def test_one_may_do_what_its_roles_say_and_nothing_else(self, account, namespace, control_plane, admin):
        await admin.create(config_map(namespace))
        async with running_client(await account("reader", rules=[READS_CONFIG])) as reader:
            assert await reader.get(CONFIG_MAP, "one", namespace)
            for forbidden in (
                reader.delete(CONFIG_MAP, "one", namespace),
                reader.list(SECRET, namespace),
                reader.get(CONFIG_MAP, "one", "default"),
            ):
                with pytest.raises(Refused) as refused:
                    await forbidden
                assert refused.value.status == 403

    async def test_rights_everywhere_end_with_the_test(self, admin, control_plane, namespace, account):
        async with running_client(await account("reader", cluster_rules=[READS_CONFIG])) as reader:
            assert await reader.list(CONFIG_MAP, "kube-system")
            roles = Kind("rbac.authorization.k8s.io/v1", "ClusterRole")
            assert await admin.find(roles, f"{namespace}-reader")

    async def test_a_kubeconfig_written_for_one_is_understood_by_kubectl(
        self, account, namespace, control_plane, tmp_path
    ):
        kubeconfig = (await account("reader", rules=[READS_CONFIG])).write(tmp_path / "reader", namespace)
        as_reader = Kubectl(control_plane.programs.kubectl, kubeconfig, tmp_path)
        assert f"system:serviceaccount:{namespace}:reader" in await as_reader("auth", "whoami")


class TestWaiting:
    async def test_it_goes_on_when_an_object_is_as_it_should_be(self, admin, namespace):
        await admin.create(config_map(namespace, step="1"))
        waiting = [
            eventually(admin, CONFIG_MAP, "one", namespace, lambda found: found["data"]["step"] == "2"),
            gone(admin, CONFIG_MAP, "one", namespace),
            eventually_all(admin, CONFIG_MAP, namespace, lambda found: set(found) == {"two"}),
        ]
        tasks = [asyncio.create_task(each) for each in waiting]
        await admin.apply(config_map(namespace, step="2"))
        await tasks[0]
        await admin.create(config_map(namespace, "two"))
        await admin.delete(CONFIG_MAP, "one", namespace)
        await asyncio.gather(*tasks)

    async def test_it_says_what_is_there_when_it_gives_up(self, admin, namespace):
        await admin.create(config_map(namespace, step="one step"))
        with pytest.raises(AssertionError, match="one step"):
            await eventually(admin, CONFIG_MAP, "one", namespace, lambda found: False, within=0.2)


class TestRestarts:
    async def test_objects_outlive_the_servers(self, admin, namespace, control_plane):
        made = await admin.create(config_map(namespace))
        control_plane.etcd.kill()
        await control_plane.restart_apiserver()
        assert await admin.get(CONFIG_MAP, "one", namespace) == made

    async def test_a_frozen_server_answers_nothing_until_it_is_thawed(self, admin, namespace, control_plane):
        with control_plane.apiserver.frozen():
            asked = asyncio.create_task(admin.list(CONFIG_MAP, namespace))
            assert not (await asyncio.wait([asked], timeout=0.3))[0]
        assert await asked == []

    async def test_after_a_compaction_a_watch_cannot_go_on_from_before(self, admin, namespace, control_plane):
        before = (await admin.create(config_map(namespace)))["metadata"]["resourceVersion"]
        await admin.apply(config_map(namespace, a="2"))
        async with admin.watch(CONFIG_MAP, namespace, before) as events:
            assert (await anext(events))["object"]["data"] == {"a": "2"}
        await control_plane.compact()
        with pytest.raises(Refused) as refused:
            async with admin.watch(CONFIG_MAP, namespace, before) as events:
                await anext(events)
        assert refused.value.status == 410

    async def test_nothing_outlives_the_tests_even_if_they_are_killed_and_a_server_is_frozen(self, programs, tmp_path):
        script = (
            "import os, pathlib, signal\n"
            "from support.cluster.control_plane import ControlPlane\n"
            "from support.cluster.programs import Programs\n"
            f"plane = ControlPlane(Programs{dataclasses.astuple(programs)!r}, pathlib.Path({str(tmp_path)!r}))\n"
            "plane.launch()\n"
            "plane.etcd.until(plane.etcd.log.read_text)\n"
            "os.kill(plane.etcd.pid, signal.SIGSTOP)\n"
            "print('launched', flush=True)\n"
            "signal.pause()\n"
        )
        tests = str(Path(__file__).parents[1])
        parent = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", script), env={**os.environ, "PYTHONPATH": tests}, stdout=asyncio.subprocess.PIPE
        )
        try:
            assert await parent.stdout.readline() == b"launched\n"
            children = descendants(parent.pid)
            assert len(children) == 2
            with held(children) as staying:
                parent.send_signal(signal.SIGKILL)
                assert staying() == []
        finally:
            await parent.communicate()


class TestControllers:
    async def test_they_collect_what_has_lost_its_owner(self, controllers, admin, namespace):
        owner = await admin.create(config_map(namespace, "owner"))
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
        owned = config_map(namespace, "owned")
        owned["metadata"]["ownerReferences"] = [reference]
        await admin.create(owned)
        await admin.delete(CONFIG_MAP, "owner", namespace)
        await gone(admin, CONFIG_MAP, "owned", namespace)
