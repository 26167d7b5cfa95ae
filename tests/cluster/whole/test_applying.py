"""From `kubectl apply` to answers, and what is then to be seen of the pool, with the operator and the gateway."""

import time

from support.cluster.client import FAIR_POOL, TENANT_WEIGHT
from support.cluster.resources import condition, says
from support.cluster.waiting import eventually
from support.cluster.whole import PROMPT, places, pool_of, tenant_with_key


def table(text):
    """What `kubectl get` printed: the rows, as dicts by the words of its first line."""
    head, *rows = text.splitlines()
    names = head.split()
    starts = [head.index(name) for name in names]
    ends = [*starts[1:], None]
    return [{n: row[a:b].strip() for n, a, b in zip(names, starts, ends, strict=True)} for row in rows]


class TestWhatIsApplied:
    async def test_is_answered_and_comes_to_be_ready(
        self, running_gateway, admin, kubectl, namespace, pods, key, capsys
    ):
        await pods.serve("gpu-0", "sim")
        await pods.serve("gpu-1", "sim", gpus=2)
        documents = [pool_of(namespace, pods), *tenant_with_key(namespace, "search", key, weight=300)]
        began = time.monotonic()
        await kubectl.apply(documents)
        applied = time.monotonic()
        async with running_gateway() as gateway:
            await gateway.accepts(key)
            answered = time.monotonic()
            with capsys.disabled():
                print(f"\nfrom kubectl apply to the first answer: {answered - began:.2f} s")
                print(f"of these kubectl itself: {applied - began:.2f} s")
            pool = await eventually(admin, FAIR_POOL, "llama", namespace, says("Ready", "True", "Ready"))
            for type_, reason in (
                ("Accepted", "Accepted"),
                ("ResolvedRefs", "Resolved"),
                ("EndpointsAvailable", "EndpointsReady"),
                ("GatewayAvailable", "Available"),
                ("Programmed", "Programmed"),
            ):
                pool = await eventually(admin, FAIR_POOL, "llama", namespace, says(type_, "True", reason))
            assert not condition(pool, "Stalled")
            assert pool["status"]["observedGeneration"] == pool["metadata"]["generation"]
            tenant = await eventually(admin, TENANT_WEIGHT, "search", namespace, says("Ready", "True", "Ready"))
            for type_, reason in (("Accepted", "Accepted"), ("ResolvedRefs", "Resolved"), ("Programmed", "Programmed")):
                assert says(type_, "True", reason)(tenant)
            pools, tenants = (await kubectl("get", "fp,tw")).split("\n\n")
            (shown,) = table(pools)
            assert shown.pop("AGE")
            assert shown == {
                "NAME": "fairpool.fairpool.dev/llama",
                "READY": "True",
                "ENDPOINTS": "2/2",
                "GPUS": "3",
                "TENANTS": "1",
                "URL": f"http://llama-fairpool.{namespace}.svc/v1",
                "REASON": "Ready",
            }
            (shown,) = table(tenants)
            assert shown.pop("AGE")
            assert shown == {
                "NAME": "tenantweight.fairpool.dev/search",
                "POOL": "llama",
                "TENANT": "search",
                "WEIGHT": "300",
                "READY": "True",
                "REASON": "Ready",
            }

    async def test_is_found_nowhere_else_if_it_is_secret(self, gateway, operator, admin, namespace, key):
        """Every value is looked for in all forms and places; that keys are found in their own Secret shows how."""
        await gateway.refuses("sk-wrong-" + key, 401)
        logs = [gateway.said, operator.said]
        assert all(logs)
        assert await places([key], admin, namespace, logs) == {"Secret search-key"}
        assert await places([PROMPT], admin, namespace, logs) == set()


class TestPodsThatAreLeftOut:
    async def test_are_named_and_why(self, gateway, admin, namespace, pods):
        await pods.add("starting", ready=False)
        await pods.add("without-gpu", gpus=0)
        await pods.label("gpu-1", {"fairpool.dev/drain": "true"})

        def names_them(pool):
            message = condition(pool, "EndpointsAvailable").get("message", "")
            return all(
                words in message
                for words in (
                    "1 pod not Ready: starting",
                    "1 pod without an accelerator: without-gpu",
                    f"1 endpoint draining: gpu-1:{pods.port}",
                )
            )

        pool = await eventually(admin, FAIR_POOL, "llama", namespace, names_them)
        assert says("EndpointsAvailable", "True", "EndpointsReady")(pool)
        assert pool["status"]["endpoints"]["draining"] == 1
        await pods.label("gpu-1", {"fairpool.dev/drain": None})
        await pods.status("starting", phase="Failed")
        for name in ("starting", "without-gpu"):
            await pods.delete(name)
        pool = await eventually(
            admin,
            FAIR_POOL,
            "llama",
            namespace,
            lambda pool: condition(pool, "EndpointsAvailable")["message"] == "2 of 2 endpoints are ready.",
        )
