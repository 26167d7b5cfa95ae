"""What the configuration says of endpoints: several on one host, and some that are to get no more."""

import asyncio
import contextlib

import pytest
from support.answering import answering_endpoint
from support.config import pool_config
from support.engine import running_engine
from support.gateway import running_gateway
from support.scripted_endpoint import until
from support.tenant import QUESTION, tenant

HANG = {"x-engine-fault": "hang-before"}


def pool(**endpoints):
    """A pool over these endpoints, by name, with one slot on each."""
    return pool_config(
        models=["sim"],
        tenants=[{"name": "a"}],
        slots={"perEndpoint": 1},
        queue={"timeout": "5m"},
        endpoints=[{"name": name, "url": engine.url, **fields} for name, (engine, fields) in endpoints.items()],
    )


@pytest.fixture
async def engines():
    """Two, at ports of one host."""
    async with running_engine() as one, running_engine() as other:
        yield one, other


@pytest.fixture
async def slow():
    """One that answers when it is told to."""
    async with answering_endpoint() as endpoint:
        endpoint.may_answer.clear()
        endpoint.answer = b'{"id": "slow"}'
        yield endpoint


@contextlib.asynccontextmanager
async def serving(config):
    async with running_gateway(config) as gateway, tenant(gateway) as client:
        yield gateway, lambda **extra: asyncio.create_task(client.chat.completions.create(**QUESTION, **extra))


async def leave(*tasks):
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def in_flight(gateway):
    return [endpoint.in_flight for endpoint in gateway.dispatcher.endpoints]


def requests(engine):
    return sum(counted["requests"] for counted in engine.tokens().values())


def waiting(gateway):
    return gateway.dispatcher.ordering.waiting


class TestTwoPortsOfOneHost:
    async def test_are_two_endpoints_with_slots_of_their_own(self, engines):
        one, other = engines
        async with serving(pool(rank0=(one, {}), rank1=(other, {}))) as (gateway, ask):
            hanging = [ask(extra_headers=HANG) for _ in range(2)]
            await until(lambda: in_flight(gateway) == [1, 1])
            third = ask()
            await until(lambda: waiting(gateway) == 1)
            await leave(hanging[0])
            assert (await third).usage.completion_tokens == 3
            await leave(hanging[1])
            await until(lambda: in_flight(gateway) == [0, 0])

    async def test_under_one_name_one_after_the_other_are_two_as_well(self, engines):
        one, other = engines
        async with serving(pool(engine=(one, {}))) as (gateway, ask):
            hangs = ask(extra_headers=HANG)
            await until(lambda: in_flight(gateway) == [1])
            (before,) = gateway.dispatcher.endpoints
            gateway.gateway.apply(pool(engine=(other, {})))
            assert in_flight(gateway) == [0]
            assert (await ask()).usage.completion_tokens == 3
            assert before.in_flight == 1
            await leave(hangs)
            await until(lambda: before.in_flight == 0)


class TestAnEndpointThatDrains:
    async def test_finishes_what_it_runs_and_gets_no_more(self, engines, slow):
        _, other = engines
        async with serving(pool(one=(slow, {}), other=(other, {}))) as (gateway, ask):
            runs = ask()
            await until(lambda: in_flight(gateway) == [1, 0])
            gateway.gateway.apply(pool(one=(slow, {"drain": True}), other=(other, {})))
            for _ in range(3):
                await ask()
            assert in_flight(gateway) == [1, 0]
            slow.may_answer.set()
            assert (await runs).id == "slow"
            await asyncio.gather(*(ask() for _ in range(3)))
            assert (len(slow.asked), requests(other)) == (1, 6)

    async def test_and_is_the_only_one_lets_requests_wait_until_it_drains_no_longer(self, engines):
        one, _ = engines
        async with serving(pool(one=(one, {"drain": True}))) as (gateway, ask):
            task = ask()
            await until(lambda: waiting(gateway) == 1)
            gateway.gateway.apply(pool(one=(one, {})))
            assert (await task).usage.completion_tokens == 3


class TestNoEndpoint:
    async def test_requests_wait_for_the_first_one_that_comes_and_then_go_on(self, engines):
        """As after a pool was scaled to zero."""
        one, _ = engines
        async with serving(pool()) as (gateway, ask):
            tasks = [ask() for _ in range(3)]
            await until(lambda: waiting(gateway) == 3)
            gateway.gateway.apply(pool(one=(one, {})))
            assert [(await task).usage.completion_tokens for task in tasks] == [3] * 3

    async def test_when_the_last_one_leaves_what_it_runs_is_finished_and_the_rest_waits(self, engines, slow):
        _, other = engines
        async with serving(pool(one=(slow, {}))) as (gateway, ask):
            runs = ask()
            await until(lambda: in_flight(gateway) == [1])
            waits = ask()
            await until(lambda: waiting(gateway) == 1)
            gateway.gateway.apply(pool())
            slow.may_answer.set()
            assert (await runs).id == "slow"
            assert waiting(gateway) == 1
            gateway.gateway.apply(pool(other=(other, {})))
            assert (await waits).usage.completion_tokens == 3
