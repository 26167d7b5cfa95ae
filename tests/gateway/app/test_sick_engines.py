"""Engines that are killed, stop or break off in the middle of everything: each request ends as it should, at once."""

import asyncio
import contextlib
import signal

import openai
from support.engine import engine_process, running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, deaf_port, until
from support.tenant import QUESTION, pool_over, tenant

from fairpool_gateway.health import Standing

LONG = {**QUESTION, "max_tokens": 100, "extra_body": {"ignore_eos": True}}
"""Takes a slow engine a minute, and a fast one no time."""

SLOW = ("--step-base", "0.6")
QUICK = {"connect": "500ms"}
IMPATIENT = {"firstByteUnary": "200ms"}


@contextlib.asynccontextmanager
async def serving(*endpoints, **fields):
    """A gateway over these, and clients of two tenants."""
    config = pool_over(*endpoints, **fields)
    async with running_gateway(config) as gateway, tenant(gateway, "a") as a, tenant(gateway, "b") as b:
        yield gateway, a, b


def is_out(gateway):
    return [endpoint.is_out for endpoint in gateway.dispatcher.endpoints]


def nothing_is_left(gateway):
    return gateway.in_flight == gateway.dispatcher.admission.waiting == gateway.dispatcher.retrying == 0


async def end_of(client, *, begun=None, **fields):
    """How one question ends: `answered`, or by what the official client raises; `begun` is set with its first event."""
    try:
        answer = await client.chat.completions.create(**{**QUESTION, **fields})
        if fields.get("stream"):
            async for _ in answer:
                if begun is not None:
                    begun.set()
    except openai.APIStatusError as error:
        return error.response.headers["x-fairpool-reason"]
    except openai.APIError as error:
        return error.message.partition(": ")[0]
    return "answered"


async def streams_that_flow(*clients):
    """One for each of these, once their first events came."""
    begun = [asyncio.Event() for _ in clients]
    tasks = [
        asyncio.create_task(end_of(client, begun=event, **LONG, stream=True))
        for client, event in zip(clients, begun, strict=True)
    ]
    for event in begun:
        await event.wait()
    return tasks


class TestOneThatIsKilled:
    async def test_breaks_what_it_had_begun_and_has_the_rest_done_elsewhere(self):
        async with (
            running_engine() as engine,
            engine_process(*SLOW) as victim,
            serving(victim.url, slots={"perEndpoint": 4}) as (gateway, a, b),
        ):
            flow = await streams_that_flow(a, b)
            begin = [asyncio.create_task(end_of(client, **LONG)) for client in (a, b)]
            await until(lambda: gateway.in_flight == 4)
            wait = [asyncio.create_task(end_of(client)) for client in (a, b)]
            await until(lambda: gateway.dispatcher.admission.waiting == 2)
            gateway.gateway.apply(pool_over(victim.url, engine.url, slots={"perEndpoint": 4}))
            assert await asyncio.gather(*wait) == ["answered"] * 2
            await victim.die()
            assert await asyncio.gather(*flow) == ["The stream broke"] * 2
            assert await asyncio.gather(*begin) == ["answered"] * 2
            assert [await end_of(client) for client in (a, b, a)] == ["answered"] * 3
            assert is_out(gateway) == [True, False]
            await until(lambda: nothing_is_left(gateway))

    async def test_and_was_the_only_one_leaves_nobody_without_an_answer(self):
        async with engine_process(*SLOW) as victim, serving(victim.url, slots={"perEndpoint": 2}) as (gateway, a, b):
            flow = await streams_that_flow(a)
            rest = [asyncio.create_task(end_of(client, **LONG)) for client in (b, a, b)]
            await until(lambda: gateway.dispatcher.admission.waiting == 2)
            await victim.die()
            assert await asyncio.gather(*flow) == ["The stream broke"]
            assert await asyncio.gather(*rest) == ["upstream_failed"] * 3
            assert is_out(gateway) == [False]
            await until(lambda: nothing_is_left(gateway))


class TestOneThatStops:
    async def test_is_out_once_two_tenants_saw_its_silence_and_is_tried_again_when_it_goes_on(self):
        async with (
            running_engine() as engine,
            engine_process() as victim,
            serving(victim.url, engine.url, timeouts=IMPATIENT) as (gateway, a, b),
        ):
            sick, _ = gateway.dispatcher.endpoints
            victim.process.send_signal(signal.SIGSTOP)
            assert [await end_of(client) for client in (a, a)] == ["upstream_timeout"] * 2
            assert is_out(gateway) == [False, False]
            assert await end_of(b) == "upstream_timeout"
            assert is_out(gateway) == [True, False]
            gateway.gateway.apply(pool_over(victim.url, engine.url))
            assert [await end_of(client) for client in (a, b)] == ["answered"] * 2
            victim.process.send_signal(signal.SIGCONT)
            gateway.dispatcher.tick(sick.health.until)
            assert sick.health.standing is Standing.ON_TRIAL
            assert await end_of(a) == "answered"
            assert sick.health.standing is Standing.GOOD
            await until(lambda: nothing_is_left(gateway))

    async def test_for_a_while_within_a_stream_ends_nothing(self):
        async with engine_process("--step-base", "0.01") as engine, serving(engine.url) as (gateway, a, b):
            flow = await streams_that_flow(a, b)
            engine.process.send_signal(signal.SIGSTOP)
            await asyncio.wait(flow, timeout=0.5)
            engine.process.send_signal(signal.SIGCONT)
            assert await asyncio.gather(*flow) == ["answered"] * 2
            await until(lambda: nothing_is_left(gateway))


class TestOneThatAcceptsAndBreaksOff:
    async def test_is_out_once_two_tenants_saw_it(self):
        async with ScriptedEndpoint.listening() as broken, running_engine() as engine:

            async def break_off():
                while True:
                    peer = await broken.accept()
                    await peer.request()
                    peer.end()

            breaking = asyncio.create_task(break_off())
            async with serving(broken, engine.url) as (gateway, a, b):
                assert [await end_of(client) for client in (a, a, b)] == ["answered"] * 3
                assert is_out(gateway) == [True, False]
                assert broken.accepted == 3
            breaking.cancel()


class TestOneThatTakesNoConnection:
    async def test_is_passed_over_and_out(self):
        with deaf_port() as deaf:
            async with (
                running_engine() as engine,
                serving(f"http://{deaf}", engine.url, timeouts=QUICK) as (gateway, a, _),
            ):
                assert [await end_of(a) for _ in range(2)] == ["answered"] * 2
                assert is_out(gateway) == [True, False]
                assert gateway.dispatcher.counts.retried == 1

    async def test_and_is_the_only_one_is_a_502(self):
        with deaf_port() as deaf:
            async with serving(f"http://{deaf}", timeouts=QUICK) as (gateway, a, _):
                assert await end_of(a) == "upstream_failed"
                assert nothing_is_left(gateway)
