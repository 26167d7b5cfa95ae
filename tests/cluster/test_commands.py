"""The pages' commands with kubectl, each page's from its top in one shell, on a real API server with a real operator.

No kubelet runs here. So the operator's Deployment is said to be rolled out, and a pool's gateway is started as its own
Deployment describes it, as soon as there is one.
"""

import asyncio
from itertools import chain

import pytest
from support.cluster.client import (
    CLUSTER_ROLE_BINDING,
    CRD,
    DEPLOYMENT,
    FAIR_POOL,
    NAMESPACE,
    Refused,
)
from support.cluster.definitions import install
from support.cluster.namespaces import remove_namespace
from support.cluster.other_projects import install_other_projects
from support.cluster.waiting import eventually, gone
from support.cluster.whole import gateway_of_pool
from support.commands import in_sentences, pages_to_run
from support.shell import PATIENCE, checkout, kubectl_command, shell

PAGES = pages_to_run(with_kubectl=True)
IN_SENTENCES = in_sentences(with_kubectl=True)
NAMESPACES = ("argocd", "flux-system")
MADE = ("fairpool-system", "inference", "try", *NAMESPACES)


@pytest.fixture
async def cluster(admin, control_plane, crds, operator, tmp_path):
    """What pages take for granted: Argo CD's kinds and Flux's, pods that run, and all gone in the end."""
    await install_other_projects(admin)
    for name in NAMESPACES:
        await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    stand_ins = [
        asyncio.create_task(roll_out(admin, "fairpool-system")),
        asyncio.create_task(serve(admin, control_plane.access, tmp_path)),
    ]
    yield
    for each in stand_ins:
        each.cancel()
    failed = [each for each in await asyncio.gather(*stand_ins, return_exceptions=True) if isinstance(each, Exception)]
    for each in ("fairpools.fairpool.dev", "tenantweights.fairpool.dev"):
        if (await admin.find(CRD, each) or {"metadata": {}})["metadata"].get("deletionTimestamp"):
            await gone(admin, CRD, each, None)
    await install(admin)
    for name in MADE:
        if await admin.find(NAMESPACE, name) is not None:
            await remove_namespace(admin, name)
    await without(admin, CLUSTER_ROLE_BINDING, "fairpool-operator")
    assert failed == []


@pytest.mark.parametrize("page", PAGES)
async def test_the_commands_of_a_page_do_what_they_say(page, cluster, control_plane, tmp_path):
    async with typing(control_plane, tmp_path) as typed:
        for block in PAGES[page]:
            print(await typed.run(block.text))


async def test_the_commands_in_sentences_do_something(cluster, control_plane, tmp_path):
    async with typing(control_plane, tmp_path) as typed:
        for command in sorted(set(chain.from_iterable(IN_SENTENCES.values()))):
            print(await typed.run(command))


def typing(control_plane, directory):
    """A shell as the administrator's, in a checkout."""
    environment = {
        "KUBECONFIG": str(control_plane.access.write(directory / "kubeconfig")),
        "NAMESPACE": "inference",
        "POOL": "llama",
    }
    programs = kubectl_command(directory / "programs", control_plane.programs.kubectl)
    return shell(checkout(directory / "checkout"), programs, environment)


async def roll_out(admin, namespace):
    """Say of every Deployment there that its newest edition runs, as controllers and kubelets would."""
    version = (await admin.listing(DEPLOYMENT, namespace))["metadata"]["resourceVersion"]
    async with admin.watch(DEPLOYMENT, namespace, version) as events:
        async for event in events:
            found = event["object"]
            generation, replicas = found["metadata"]["generation"], found["spec"]["replicas"]
            if event["type"] == "DELETED" or found.get("status", {}).get("observedGeneration") == generation:
                continue
            counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), replicas)
            status = {"observedGeneration": generation, **counts}
            await admin.patch(DEPLOYMENT, found["metadata"]["name"], namespace, {"status": status}, "status")


async def serve(admin, access, directory):
    """Run the gateway of the pool `llama` in `inference`, from when there is one."""
    await eventually(admin, FAIR_POOL, "llama", "inference", lambda _: True, within=PATIENCE)
    async with gateway_of_pool(admin, access, "inference", directory):
        await asyncio.Event().wait()


async def without(admin, kind, name):
    """Delete it, if it is there."""
    try:
        await admin.delete(kind, name)
    except Refused as refused:
        if refused.status != 404:
            raise
