"""The pods of a real API server become endpoints, and cease to be, with the rights of the gateway's own Role."""

import asyncio

import openai
from support.cluster.gateway import readiness
from support.cluster.pods import GPU
from support.config import key_of
from support.scripted_endpoint import until

from fairpool_lab.engine.batching import Limits

SLOW = Limits(step_base=0.05)
"""Twenty steps a second: an answer takes as long as the test needs."""


class TestWhichPodsAreEndpoints:
    async def test_is_reported_and_the_others_are_named(self, pool, pods, start, ask):
        await pods.serve("gpu-0", "sim", gpus=2)
        await pods.serve("gpu-1", "other")
        await pods.add("cpu-0", gpus=0)
        await pods.add("young-0", ready=False)
        await pods.add("dead-0", phase="Failed")
        await pods.serve("idle-0", "sim", labels={"app": "vllm", "fairpool.dev/drain": "true"})
        config_hash = await pool.write()
        async with start(uid="u-1") as gateway:
            await ask(gateway)
            said = await pool.reports(lambda said: said["endpointsReady"] == 1)
            assert said == {
                "podUID": "u-1",
                "configHash": config_hash,
                "endpointsReady": 1,
                "endpointsTotal": 5,
                "endpointsDraining": 1,
                "accelerators": 4,
                "models": ["sim"],
                "leftOut": (
                    f"1 endpoint that serves other, not sim: gpu-1:{pods.port}; "
                    f"1 endpoint draining: idle-0:{pods.port}; 1 pod ended: dead-0; "
                    "1 pod not Ready: young-0; 1 pod without an accelerator: cpu-0"
                ),
            }
            await readiness(gateway, lambda status, detail: status == 200 and detail["leftOut"] == said["leftOut"])

    async def test_is_reported_whatever_they_ask_for(self, pool, pods, start):
        """Of init containers only the most counts, and a number that the status cannot hold is the greatest it can."""
        asks = {"name": "prepares", "image": "p", "resources": {"limits": {GPU: "3"}, "requests": {GPU: "3"}}}
        await pods.serve("gpu-0", "sim", gpus=2, spec={"initContainers": [asks]})
        await pool.write()
        async with start():
            await pool.reports(lambda said: (said["endpointsReady"], said["accelerators"]) == (1, 3))
            await pods.add("greedy-0", gpus=9_999_999_999)
            await pool.reports(lambda said: (said["endpointsTotal"], said["accelerators"]) == (2, 2**31 - 1))

    async def test_changes_with_them(self, pool, pods, start, ask):
        await pool.write()
        async with start() as gateway:
            answer = asyncio.create_task(ask(gateway))
            await pool.reports(lambda said: said["endpointsTotal"] == 0)
            await pods.serve("gpu-0", "sim")
            await answer
            await pods.status("gpu-0", ready=False)
            await pool.reports(lambda said: said["leftOut"] == "1 pod not Ready: gpu-0")
            await pods.status("gpu-0", ready=True)
            await pool.reports(lambda said: said["endpointsReady"] == 1)
            await pods.start_deleting("gpu-0")
            await pool.reports(lambda said: said["leftOut"] == "1 pod about to end: gpu-0")
            await pods.finish_deleting("gpu-0")
            await pool.reports(lambda said: not said["leftOut"] and not said["endpointsTotal"])

    async def test_is_the_same_of_those_that_have_an_address_of_ipv6(self, pool, pods, start, ask):
        engine = await pods.serve("six-0", "sim", address="::1")
        await pods.add("young-0", ready=False)
        await pool.write()
        async with start() as gateway:
            await ask(gateway)
            said = await pool.reports(lambda said: (said["endpointsReady"], said["endpointsTotal"]) == (1, 2))
            assert said["leftOut"] == "1 pod not Ready: young-0"
        assert engine.tokens()

    async def test_is_decided_by_the_models_that_all_serve_where_none_are_listed(self, pool, pods, start, ask):
        await pods.serve("gpu-0", "a", "b")
        await pods.serve("gpu-1", "b", "c")
        await pool.write(models=[])
        async with start() as gateway:
            await pool.reports(lambda said: said["models"] == ["b"] and said["endpointsReady"] == 2)
            await ask(gateway, model="b")
            await pods.delete("gpu-0")
            await pool.reports(lambda said: said["models"] == ["b", "c"])

    async def test_is_chosen_anew_by_an_edit_of_the_selector(self, pool, pods, start, ask):
        await pods.serve("old-0", "sim")
        await pods.serve("new-0", "sim", labels={"app": "new"})
        await pods.add("young-0", ready=False, labels={"app": "new"})
        await pool.write()
        async with start() as gateway:
            await ask(gateway)
            discovery = {"selector": {"matchLabels": {"app": "new"}}, "targetPorts": [{"name": "http"}]}
            await pool.write(discovery=discovery)
            await pool.reports(lambda said: said["leftOut"] == "1 pod not Ready: young-0")
            await pods.stop_engine("old-0")
            for _ in range(3):
                await ask(gateway)
            assert pods.engines["new-0"].tokens()


async def keep_asking(gateway, tenant, answers, failures, stop):
    """One tenant's client, one request after the other, without a single retry of its own."""
    async with openai.AsyncOpenAI(
        base_url=f"{gateway.url}/v1", api_key=key_of(tenant), max_retries=0, timeout=60
    ) as client:
        while not stop.is_set():
            try:
                answer = await client.chat.completions.create(
                    model="sim", messages=[{"role": "user", "content": "hi"}], max_tokens=8
                )
            except openai.APIError as failed:
                failures.append(failed)
            else:
                answers.append(answer.id)


class TestAPodThatIsToldToEnd:
    async def test_brings_the_stream_it_has_to_its_end(self, pool, pods, start):
        engine = await pods.serve("gpu-0", "sim", engine={"limits": SLOW})
        await pool.write()
        async with (
            start() as gateway,
            openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=key_of("a"), max_retries=0, timeout=60) as client,
        ):
            stream = await client.chat.completions.create(
                model="sim", messages=[{"role": "user", "content": "hi"}], max_tokens=60, stream=True
            )
            pieces = aiter(stream)
            await anext(pieces)
            await pods.start_deleting("gpu-0")
            await pool.reports(lambda said: "about to end" in said["leftOut"])
            assert engine.running == 1
            finish = [piece.choices[0].finish_reason async for piece in pieces if piece.choices]
            assert finish[-1] is not None


class TestUnderLoad:
    async def test_pods_come_drain_and_die_and_no_request_is_lost(self, pool, pods, start):
        """A pod that drains, is told to end, or dies before it answers costs nobody an answer."""
        await pods.serve("gpu-0", "sim")
        await pool.write(slots={"perEndpoint": 4})
        answers, failures, stop = [], [], asyncio.Event()

        async def more():
            so_far = len(answers)
            await until(lambda: len(answers) > so_far + 10)

        async with start() as gateway, asyncio.TaskGroup() as tasks:
            try:
                for number in range(12):
                    tasks.create_task(keep_asking(gateway, "ab"[number % 2], answers, failures, stop))
                await more()
                for number in range(1, 5):
                    await pods.serve(f"gpu-{number}", "sim")
                    await pool.reports(lambda said, ready=number + 1: said["endpointsReady"] == ready)
                    await more()
                await pods.label("gpu-0", {"fairpool.dev/drain": "true"})
                await pool.reports(lambda said: said["endpointsDraining"] == 1)
                await pods.engines["gpu-0"].until(lambda engine: not engine.running)
                await pods.stop_engine("gpu-0")
                await pods.delete("gpu-0")
                await pods.start_deleting("gpu-1")
                await pool.reports(lambda said: "about to end" in said["leftOut"])
                await pods.engines["gpu-1"].until(lambda engine: not engine.running)
                await pods.stop_engine("gpu-1")
                await pods.finish_deleting("gpu-1")
                await more()
                await pods.stop_engine("gpu-2")
                await more()
                await pods.delete("gpu-2")
                await pool.reports(lambda said: (said["endpointsReady"], said["endpointsTotal"]) == (2, 2))
                await more()
            finally:
                stop.set()
        assert not failures
        assert len(answers) == len(set(answers))
