"""The debug pages: who got what, and what became of a request."""

import asyncio
import contextlib

import openai
import pytest
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, refusing_port, until
from support.tenant import QUESTION, pool_over, request_bytes, tenant, wire

from fairpool_gateway.tallies import KEPT


async def view(gateway, path, **query):
    answer = await gateway.admin(path + "?" + "&".join(f"{name}={value}" for name, value in query.items()))
    assert answer.status_code == 200
    return answer.json()


@pytest.fixture
async def gateway():
    async with running_engine() as engine, running_gateway(pool_over(engine.url)) as running:
        yield running


class TestTenants:
    async def test_each_shows_what_it_got_beside_its_share(self):
        tenants = [{"name": "a", "weight": 300}, {"name": "b"}]
        async with running_engine() as engine, running_gateway(pool_over(engine.url, tenants=tenants)) as gateway:
            async with tenant(gateway, "b") as client:
                used = (await client.chat.completions.create(**QUESTION)).usage
            async with tenant(gateway, "a", api_key="wrong") as client:
                with contextlib.suppress(openai.AuthenticationError):
                    await client.chat.completions.create(**QUESTION)
            await until(lambda: gateway.outcomes.total() == 2)
            shown = await view(gateway, "/debug/tenants")
        a, b, others, nobody = shown["tenants"]
        assert [each["tenant"] for each in (a, b, others, nobody)] == ["a", "b", "_other", None]
        assert [(each["weight"], each["share"], each["charged_share"]) for each in (a, b)] == [
            (300, 0.75, 0.0),
            (100, 0.25, 1.0),
        ]
        assert (b["arrived"], b["dispatched"], b["completed"], b["in_flight"]) == (1, 1, 1, 0)
        assert (b["input"], b["output"]) == (used.prompt_tokens, used.completion_tokens)
        assert b["charged"] == shown["charged_tokens"] > 0
        assert [each["debt"] for each in (a, b, others, nobody)] == [None] * 4
        assert (b["outcomes"], nobody["outcomes"]) == ({"answered": 1}, {"unauthenticated": 1})


class TestRequests:
    async def test_a_dispatch_is_found_by_the_id_of_its_answer_or_by_that_of_the_decision_log(self, gateway):
        async with tenant(gateway) as client:
            answer = await client.chat.completions.with_raw_response.create(
                **QUESTION, extra_headers={"x-request-id": "mine"}
            )
            await client.chat.completions.create(**QUESTION)
        assert answer.headers["x-request-id"] == "mine"
        (dispatch,) = (await view(gateway, "/debug/requests", request="mine"))["dispatches"]
        (endpoint,) = gateway.dispatcher.endpoints
        assert dispatch.pop("dispatched") < (await newest(gateway))["dispatched"]
        assert dispatch.pop("cost") == dispatch.pop("estimate") > 0
        assert dispatch.pop("waited_seconds") == 0
        used = answer.parse().usage
        assert dispatch.pop("used").items() >= {"input": used.prompt_tokens, "output": used.completion_tokens}.items()
        identity = dispatch.pop("id")
        assert dispatch == {
            "request": "mine",
            "tenant": "a",
            "model": "sim",
            "endpoint": endpoint.spec.id,
            "failed_on": [],
            "state": "done",
        }
        (same,) = (await view(gateway, "/debug/requests", request=identity))["dispatches"]
        assert same["request"] == "mine"

    async def test_what_runs_is_shown_and_where_it_failed_before(self):
        async with ScriptedEndpoint.listening() as endpoint:
            config = pool_over(f"http://{refusing_port()}", endpoint)
            async with running_gateway(config) as gateway, wire(gateway) as line:
                await line.send(request_bytes())
                await (await endpoint.accept()).request()
                sick, good = gateway.dispatcher.endpoints
                shown = await newest(gateway)
                assert (shown["state"], shown["endpoint"], shown["used"]) == ("in_flight", good.spec.id, None)
                assert shown["failed_on"] == [sick.spec.id]
                (first, _) = (await view(gateway, "/debug/pool"))["endpoints"]
                assert (first["standing"], first["ejected"]) == ("ejected", 1)
                assert 4 < first["out_for_seconds"] <= 5

    async def test_refusals_are_found_by_tenant_and_by_the_id_of_their_answer(self, gateway):
        told = {}
        for name, key, model in (("a", None, "none"), ("b", None, "none"), ("a", "wrong", "sim")):
            async with tenant(gateway, name, **({} if key is None else {"api_key": key})) as client:
                with pytest.raises(openai.APIStatusError) as refused:
                    await client.chat.completions.create(**{**QUESTION, "model": model})
                told[name, key] = refused.value.request_id
        shown = (await view(gateway, "/debug/requests"))["refusals"]
        assert [(each["tenant"], each["reason"], each["request"]) for each in shown] == [
            (None, "unauthenticated", told["a", "wrong"]),
            ("b", "model_not_found", told["b", None]),
            ("a", "model_not_found", told["a", None]),
        ]
        for query in ({"tenant": "b"}, {"request": told["b", None]}):
            (only,) = (await view(gateway, "/debug/requests", **query))["refusals"]
            assert only["request"] == told["b", None]

    async def test_one_that_sends_much_does_not_push_out_what_others_sent(self, gateway):
        async with tenant(gateway, "b") as quiet, tenant(gateway) as loud:
            await quiet.chat.completions.create(**QUESTION)
            await asyncio.gather(*(loud.chat.completions.create(**QUESTION) for _ in range(KEPT + 5)))
        shown = (await view(gateway, "/debug/requests"))["dispatches"]
        assert [each["tenant"] for each in shown] == ["a"] * KEPT + ["b"]

    async def test_whoever_is_not_known_has_no_requests(self, gateway):
        assert await view(gateway, "/debug/requests", tenant="nobody") == {"dispatches": [], "refusals": []}


async def newest(gateway):
    return (await view(gateway, "/debug/requests"))["dispatches"][0]
