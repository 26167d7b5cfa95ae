"""From `kubectl apply` to the first answer, on a node with nothing of the pool on it before."""

import asyncio
import time

import httpx
import openai
from support.cluster.client import POD
from support.node.installation import NAMESPACE, OPERATOR
from support.node.load import client_of, question


async def first_answer(url, key):
    """Ask until there is an answer; returns its text."""
    async with client_of(url, key) as client:
        while True:
            try:
                answer = await client.chat.completions.create(**question(4))
            except openai.APIError:
                await asyncio.sleep(0.05)
            else:
                return answer.choices[0].message.content


class TestTheOperator:
    async def test_is_told_of_edits_and_does_not_only_look_for_them(self, installed, admin):
        """Its watches stay open: an edit is known at once, not at the next list."""
        pods = await admin.list(POD, NAMESPACE, labelSelector=f"app.kubernetes.io/name={OPERATOR}")
        async with httpx.AsyncClient(trust_env=False) as http:
            for pod in pods:
                said = (await http.get(f"http://{pod['status']['podIP']}:8081/metrics")).text
                assert "fairpool_operator_watch_restarts_total 0.0" in said


class TestAPool:
    async def test_that_is_applied_answers_its_tenants_through_its_service(self, pool, tell):
        began = time.monotonic()
        await pool.apply(pool.documents(2))
        url = await pool.url()
        for key in pool.keys.values():
            assert await first_answer(url, key)
        tell(f"from kubectl apply (engines too) to the first answer: {time.monotonic() - began:.1f} s")
        await pool.ready()
        shown = await pool.kubectl.table("fairpool", "sim", "-n", pool.namespace)
        assert shown[0]["READY"] == "True"
