"""The admin port: whether it lives, what it counts, and why a request waits."""

import asyncio
import contextlib

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.config import key_of
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, until
from support.tenant import QUESTION, pool_over, request_bytes, tenant, wire

from fairpool_gateway.errors import ConfigInvalid
from fairpool_gateway.sfq import Q

WEIGHTS = {"a": 1, "b": 2, "c": 4}
TENANTS = [{"name": name, "weight": weight} for name, weight in WEIGHTS.items()]


async def metrics(gateway):
    """Every sample by its name and labels."""
    answer = await gateway.admin("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = text_string_to_metric_families(answer.text)
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


@contextlib.asynccontextmanager
async def crowd():
    """A gateway of one slot that `a` holds, behind which `a`, `b` and twice `c` wait."""
    async with contextlib.AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(ScriptedEndpoint.listening())
        config = pool_over(endpoint, tenants=TENANTS, slots={"perEndpoint": 1})
        gateway = await stack.enter_async_context(running_gateway(config))
        for name in "aabcc":
            line = await stack.enter_async_context(wire(gateway))
            await line.send(request_bytes(name=name))
        await until(lambda: gateway.dispatcher.admission.waiting == 4)
        yield gateway, endpoint


async def test_healthz_says_that_it_lives():
    async with running_gateway(pool_over()) as gateway:
        answer = await gateway.admin("/healthz")
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


class TestReadyz:
    async def test_ready_and_how_many_endpoints_there_are(self):
        async with running_gateway(pool_over("http://127.0.0.1:1")) as gateway:
            answer = await gateway.admin("/readyz")
            assert (answer.status_code, answer.json()["endpoints"]) == (200, 1)
            assert "config" not in answer.json()

    async def test_an_edit_that_cannot_be_used_leaves_it_ready_and_is_told_until_a_good_one_comes(self):
        async with running_gateway(pool_over()) as gateway:
            gateway.gateway.refuse_config(ConfigInvalid(["slots: is wrong"]))
            answer = await gateway.admin("/readyz")
            assert answer.status_code == 200
            assert answer.json()["config"] == "the last good configuration stays in force: slots: is wrong"
            assert (await metrics(gateway))["fairpool_config_current",] == 0
            gateway.gateway.apply(pool_over())
            assert "config" not in (await gateway.admin("/readyz")).json()
            assert (await metrics(gateway))["fairpool_config_current",] == 1


class TestDebugPool:
    async def test_it_shows_who_waits_in_the_order_in_which_they_go_and_what_is_in_flight(self):
        async with crowd() as (gateway, endpoint):
            view = (await gateway.admin("/debug/pool")).json()
            assert (view["pool"], view["q"], view["waiting"]) == ("llama", Q, 4)
            assert [(each["tenant"], each["weight"], each["waiting"]) for each in view["tenants"]] == [
                ("b", 2, 1),
                ("c", 4, 2),
                ("a", 1, 1),
            ]
            *level, ahead = view["tenants"]
            (one,) = view["endpoints"]
            assert all(each["meter"] == view["v"] and each["lead"] == 0 for each in level)
            assert ahead["meter"] == view["v"] + one["outstanding"] * Q
            assert ahead["lead"] == one["outstanding"]
            assert (one["address"], one["slots"], one["in_flight"]) == (str(endpoint.target), 1, 1)

    async def test_at_rest_it_is_empty(self):
        async with running_engine() as engine, running_gateway(pool_over(engine.url)) as gateway:
            async with tenant(gateway) as client:
                await client.chat.completions.create(**QUESTION)
            view = (await gateway.admin("/debug/pool")).json()
            assert (view["waiting"], view["tenants"], view["endpoints"][0]["in_flight"]) == (0, [], 0)


class TestMetrics:
    async def test_what_waits_and_runs(self):
        async with crowd() as (gateway, _):
            seen = await metrics(gateway)
            (endpoint,) = gateway.dispatcher.endpoints
            waiting = {name: seen["fairpool_waiting_requests", name] for name in "abc"}
            assert waiting == {"a": 1, "b": 1, "c": 2}
            assert seen["fairpool_in_flight_requests", "a"] == 1
            assert seen["fairpool_endpoint_slots", endpoint.spec.id] == 1
            assert seen["fairpool_endpoint_in_flight_requests", endpoint.spec.id] == 1
            assert seen["fairpool_endpoint_outstanding_tokens", endpoint.spec.id] == endpoint.outstanding > 0

    async def test_what_has_happened(self):
        async with running_engine() as engine, running_gateway(pool_over(engine.url)) as gateway:
            async with tenant(gateway) as client:
                for _ in range(3):
                    await client.chat.completions.create(**QUESTION)
            seen = await metrics(gateway)
            for name in ("arrivals", "dispatches"):
                assert seen[f"fairpool_{name}_total", "a"] == 3
            assert seen["fairpool_outcomes_total", "answered", "a"] == 3
            assert seen["fairpool_charged_tokens_total", "a"] > 0
            counted = engine.tokens()[""]
            assert seen["fairpool_input_tokens_total", "a"] == counted["prompt"]
            assert seen["fairpool_output_tokens_total", "a"] == counted["generation"]
            assert seen["fairpool_used_tokens_total", "a"] == counted["prompt"] + 2 * counted["generation"]


async def test_tenants_cannot_reach_it():
    async with running_gateway(pool_over()) as gateway, tenant(gateway) as client:
        for path in ("/healthz", "/readyz", "/metrics", "/debug/pool"):
            answer = await client._client.get(gateway.url + path, headers={"authorization": f"Bearer {key_of('a')}"})
            assert answer.status_code == 404


@pytest.mark.parametrize("path", ["/metrics", "/debug/pool", "/readyz"])
async def test_it_answers_while_requests_flow(path):
    async with running_engine() as engine, running_gateway(pool_over(engine.url)) as gateway, tenant(gateway) as client:
        asked = [asyncio.create_task(client.chat.completions.create(**QUESTION)) for _ in range(10)]
        assert (await gateway.admin(path)).status_code == 200
        await asyncio.gather(*asked)
