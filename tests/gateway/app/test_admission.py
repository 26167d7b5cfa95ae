"""What may wait and what may be on its way in, over HTTP: bounded, shared, and given back however a request ends."""

import asyncio
import contextlib
import json

import openai
import pytest
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import until
from support.tenant import QUESTION, pool_over, request_bytes, tenant, wire

JSON = b"Content-Type: application/json"
BODY = json.dumps({**QUESTION, "metadata": {"padding": "x" * 200_000}}).encode()
"""So long that it comes in several pieces."""


async def ask(client, **fields):
    return await client.chat.completions.create(**QUESTION, **fields)


@contextlib.asynccontextmanager
async def ending(tasks):
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def start(line, sent=100_000, *, name="a", framing=None):
    """The head and the beginning of a body whose rest does not come."""
    await line.send(request_bytes(BODY, JSON, name=name, framing=framing)[: -len(BODY)] + BODY[:sent])


async def begun(gateway, size):
    await until(lambda: gateway.dispatcher.admission.bytes >= size)


class TestAFullQueue:
    async def test_of_one_tenant_lets_another_in_and_tells_the_newest_to_retry(self):
        pool = pool_over(queue={"maxRequests": 4})
        async with running_gateway(pool) as gateway, tenant(gateway) as greedy, tenant(gateway, "b") as newcomer:
            tasks = []
            async with ending(tasks):
                for _ in range(4):
                    tasks.append(asyncio.create_task(ask(greedy)))
                    await until(lambda: gateway.dispatcher.admission.waiting == len(tasks))
                with pytest.raises(openai.RateLimitError) as told:
                    await ask(greedy)
                assert told.value.code == "queue_full"
                comes = asyncio.create_task(ask(newcomer))
                tasks.append(comes)
                with pytest.raises(openai.RateLimitError) as told:
                    await tasks[3]
                assert told.value.response.headers["x-fairpool-reason"] == "queue_full"
                assert 1 <= int(told.value.response.headers["retry-after"]) <= 60
                assert not comes.done()
                assert gateway.dispatcher.counts.charged == 0
            await until(lambda: gateway.dispatcher.admission.waiting == 0)
            assert gateway.dispatcher.admission.bytes == 0

    async def test_has_bounds_of_a_tenants_own(self):
        tenants = [{"name": "a", "queue": {"maxRequests": 1}}, {"name": "b"}]
        async with running_gateway(pool_over(tenants=tenants)) as gateway, tenant(gateway) as client:
            tasks = [asyncio.create_task(ask(client))]
            async with ending(tasks):
                await until(lambda: gateway.dispatcher.admission.waiting == 1)
                with pytest.raises(openai.RateLimitError) as told:
                    await ask(client)
                assert "This tenant has 1 requests waiting" in told.value.message


class TestABodyOnItsWayIn:
    async def test_counts_until_it_is_complete_and_then_with_its_request(self):
        async with running_gateway(pool_over()) as gateway, wire(gateway) as line:
            await start(line)
            await begun(gateway, 90_000)
            assert gateway.dispatcher.admission.waiting == 0
            await line.send(BODY[100_000:])
            await until(lambda: gateway.dispatcher.admission.waiting == 1)
            assert gateway.dispatcher.admission.bytes == len(BODY)
            line.leave()
            await until(lambda: gateway.dispatcher.admission.bytes == 0)

    async def test_reaches_the_engine_whole(self):
        async with running_engine() as engine, running_gateway(pool_over(engine.url)) as gateway, wire(gateway) as line:
            await start(line)
            await begun(gateway, 90_000)
            await line.send(BODY[100_000:])
            assert (await line.answer())[0] == 200
            assert gateway.dispatcher.admission.bytes == 0

    async def test_of_a_tenant_that_leaves_is_given_back(self):
        async with running_gateway(pool_over()) as gateway, wire(gateway) as line:
            await start(line)
            await begun(gateway, 90_000)
            line.leave()
            await until(lambda: gateway.dispatcher.admission.bytes == 0)

    async def test_that_turns_out_too_large_or_no_json_is_given_back(self):
        async with running_gateway(pool_over(queue={"maxRequestBytes": "120k"})) as gateway:
            for pieces, status in (((b"x" * 70_000, b"x" * 70_000), 413), ((b"x" * 70_000, b"x" * 30_000, b""), 400)):
                async with wire(gateway) as line:
                    head = request_bytes(b"", framing=b"Transfer-Encoding: chunked")
                    await line.send(head)
                    for piece in pieces:
                        await line.send(b"%x\r\n%b\r\n" % (len(piece), piece))
                    assert (await line.answer())[0] == status
                    await until(lambda: gateway.dispatcher.admission.bytes == 0)

    async def test_that_comes_whole_with_its_head_and_is_too_large_is_refused(self):
        async with running_gateway(pool_over(queue={"maxRequestBytes": "1Ki"})) as gateway, wire(gateway) as line:
            chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (2_000, b"x" * 2_000)
            await line.send(request_bytes(chunks, framing=b"Transfer-Encoding: chunked"))
            assert (await line.answer())[0] == 413

    async def test_beyond_the_tenants_bytes_is_refused_while_it_comes(self):
        pool = pool_over(queue={"maxRequestBytes": "150k", "perTenant": {"maxBytes": "150k"}})
        async with running_gateway(pool) as gateway, wire(gateway) as first, wire(gateway) as second:
            await start(first, framing=b"Transfer-Encoding: chunked", sent=0)
            await first.send(b"%x\r\n%b\r\n" % (100_000, BODY[:100_000]))
            await begun(gateway, 90_000)
            await start(second, framing=b"Transfer-Encoding: chunked", sent=0)
            await second.send(b"%x\r\n%b\r\n" % (100_000, BODY[:100_000]))
            status, headers, _ = await second.answer()
            assert (status, dict(headers)[b"x-fairpool-reason"]) == (429, b"queue_full")
            assert gateway.dispatcher.admission.bytes <= 100_000

    async def test_makes_room_for_a_newcomer_and_is_told_when_its_next_piece_comes(self):
        pool = pool_over(queue={"maxBytes": "100k", "maxRequestBytes": "100k", "perTenant": {"maxBytes": "100k"}})
        async with running_gateway(pool) as gateway, wire(gateway) as slow, tenant(gateway, "b") as newcomer:
            await start(slow, framing=b"Transfer-Encoding: chunked", sent=0)
            await slow.send(b"%x\r\n%b\r\n" % (99_950, BODY[:99_950]))
            await begun(gateway, 99_950)
            tasks = [asyncio.create_task(ask(newcomer))]
            async with ending(tasks):
                await until(lambda: gateway.dispatcher.admission.waiting == 1)
                assert gateway.dispatcher.admission.bytes < 1000
                await slow.send(b"1\r\nx\r\n")
                status, headers, _ = await slow.answer()
                assert (status, dict(headers)[b"x-fairpool-reason"]) == (429, b"queue_full")
        assert gateway.dispatcher.admission.bytes == 0

    async def test_that_never_ends_harms_no_other_tenant(self):
        """Half-open uploads of two tenants hold all that the pool may hold; a third one is served."""
        pool = pool_over(queue={"maxBytes": "1M", "maxRequestBytes": "500k", "perTenant": {"maxBytes": "500k"}})
        async with running_engine() as engine, contextlib.AsyncExitStack() as stack:
            edited = pool.model_copy(update={"endpoints": pool_over(engine.url).endpoints})
            gateway = await stack.enter_async_context(running_gateway(edited))
            for number in range(20):
                line = await stack.enter_async_context(wire(gateway))
                await start(line, name="ab"[number % 2])
            await begun(gateway, 900_000)
            async with wire(gateway) as line:
                await line.send(request_bytes(BODY, JSON, name="c"))
                assert (await line.answer())[0] == 200
            assert gateway.dispatcher.admission.bytes <= 1_000_000
        await until(lambda: gateway.dispatcher.admission.bytes == 0)
