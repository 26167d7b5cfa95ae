"""The pages' commands that need a node, and the overlay for a cluster on one's own machine, as people type them."""

import asyncio

import openai
import pytest
from support.cluster.client import FAIR_POOL, SERVICE
from support.cluster.namespaces import remove_namespace
from support.cluster.resources import says
from support.cluster.waiting import eventually
from support.commands import ELSEWHERE, all_commands
from support.node.asking import PATIENCE
from support.node.load import client_of, question
from support.node.pools import POOL
from support.pages import ROOT
from support.shell import kubectl_command, shell

BLOCKS = [block for block in all_commands() if ELSEWHERE.get(block.first) == "tests/node/test_commands.py"]
KIND = ROOT / "manifests" / "overlays" / "kind" / "pool"

UNTIL_IT_ANSWERS = """
until curl --silent --fail http://localhost:8081/debug/pool; do kill -0 $!; sleep 0.1; done
kill $!
"""
"""What the comment at the end of the page's command says to do then."""


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.first.split(" -n")[0])
async def test_a_block_does_what_it_says(block, serving, kubectl, node, tmp_path):
    programs = kubectl_command(tmp_path / "programs", node.control_plane.programs.kubectl)
    environment = {"KUBECONFIG": str(kubectl.kubeconfig), "NAMESPACE": serving.namespace, "POOL": POOL}
    async with shell(tmp_path, programs, environment) as typed:
        assert "serving pool" in await typed.run(block.text)
        assert f'"pool":"{POOL}"' in await typed.run(UNTIL_IT_ANSWERS)


@pytest.fixture
async def tried(installed, kubectl, admin):
    """The pool of the overlay for kind, applied as its page says."""
    await kubectl("apply", "--server-side", "--warnings-as-errors", "-k", str(KIND))
    yield
    await remove_namespace(admin, "try")


async def test_the_pool_of_the_overlay_for_kind_answers_both_tenants(tried, admin):
    await eventually(admin, FAIR_POOL, "sim", "try", says("EndpointsAvailable", "True"), within=PATIENCE)
    service = await eventually(admin, SERVICE, "sim-fairpool", "try", lambda _: True)
    for key in ("search", "batch"):
        async with client_of(f"http://{service['spec']['clusterIP']}/v1", key) as client:
            assert await answer(client)


async def answer(client):
    """Ask until there is one: what has just been applied is with the gateway a moment later."""
    async with asyncio.timeout(30):
        while True:
            try:
                said = await client.chat.completions.create(**question(4))
            except openai.APIError:
                await asyncio.sleep(0.05)
            else:
                return said.choices[0].message.content
