"""The broker on a real event loop: who waits, who leaves, and what crosses in between."""

import asyncio

import pytest
from support.config import pool_config
from support.requests import request

from fairpool_gateway.broker import Broker
from fairpool_gateway.cost import Used
from fairpool_gateway.dispatcher import Dispatcher, State
from fairpool_gateway.endpoints import EndpointSpec
from fairpool_gateway.errors import NoEndpoint, QueueFull, QueueTimeout

ONE_SLOT = EndpointSpec("e", "127.0.0.1", 9000, 1)


@pytest.fixture
async def broker():
    made = Broker(Dispatcher(pool_config(queue={"timeout": "5m", "perTenant": {"maxRequests": 4}})))
    yield made
    made.close()


def in_flight(broker):
    return sum(endpoint.in_flight for endpoint in broker.dispatcher.endpoints)


async def waiting_task(broker, made):
    """A task that waits for a slot."""
    task = asyncio.create_task(broker.acquire(made))
    await asyncio.sleep(0)  # The task runs until it waits.
    assert made.state is State.WAITING
    return task


class TestWaiting:
    async def test_a_free_slot_is_given_without_waiting(self, broker):
        broker.replace_endpoints([ONE_SLOT])
        endpoint = await broker.acquire(request("r", "a"))
        assert endpoint.spec == ONE_SLOT

    async def test_who_waits_gets_the_slot_that_another_gives_back(self, broker):
        broker.replace_endpoints([ONE_SLOT])
        first = request("first", "a")
        await broker.acquire(first)
        task = await waiting_task(broker, request("second", "a"))
        broker.complete(first, Used(1, 1))
        assert (await task).spec == ONE_SLOT

    async def test_who_waits_goes_on_when_an_endpoint_appears(self, broker):
        task = await waiting_task(broker, request("r", "a"))
        broker.replace_endpoints([ONE_SLOT])
        assert (await task).spec == ONE_SLOT

    async def test_a_full_queue_refuses_at_once(self, broker):
        tasks = [await waiting_task(broker, request(str(number), "a")) for number in range(4)]
        with pytest.raises(QueueFull):
            await broker.acquire(request("one too many", "a"))
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


class TestTimeOut:
    async def test_one_timer_refuses_each_when_its_time_has_come(self):
        broker = Broker(Dispatcher(pool_config(queue={"timeout": "50ms"})))
        tasks = [await waiting_task(broker, request(str(number), "a")) for number in range(3)]
        await asyncio.wait(tasks, timeout=5)
        assert [type(task.exception()) for task in tasks] == [NoEndpoint] * 3
        broker.close()

    async def test_a_shorter_time_out_counts_for_those_who_wait_already(self, broker):
        broker.replace_endpoints([ONE_SLOT])
        await broker.acquire(request("runs", "a"))
        task = await waiting_task(broker, request("waits", "a"))
        broker.configure(pool_config(queue={"timeout": "10ms"}))
        with pytest.raises(QueueTimeout):
            async with asyncio.timeout(5):
                await task


class TestLeaving:
    async def test_a_cancelled_task_frees_its_place(self, broker):
        task = await waiting_task(broker, request("r", "a"))
        task.cancel()
        await asyncio.wait([task])
        assert broker.dispatcher.admission.waiting == 0

    async def test_a_grant_that_crosses_a_cancellation_is_given_back(self, broker):
        broker.replace_endpoints([ONE_SLOT])
        first, second = request("first", "a"), request("second", "a")
        await broker.acquire(first)
        task = await waiting_task(broker, second)
        broker.complete(first, None)
        assert second.state is State.IN_FLIGHT
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert in_flight(broker) == 0
        assert second.state is State.DONE

    async def test_a_cancellation_that_crosses_a_grant_gives_the_slot_back(self, broker):
        broker.replace_endpoints([ONE_SLOT])
        first, second = request("first", "a"), request("second", "a")
        await broker.acquire(first)
        task = await waiting_task(broker, second)
        task.cancel()
        broker.complete(first, None)
        assert second.state is State.IN_FLIGHT
        with pytest.raises(asyncio.CancelledError):
            await task
        assert in_flight(broker) == 0

    async def test_completing_twice_counts_once(self, broker):
        broker.replace_endpoints([ONE_SLOT])
        made = request("r", "a")
        await broker.acquire(made)
        broker.complete(made, Used(1, 1))
        broker.complete(made, None)
        assert in_flight(broker) == 0
        assert broker.dispatcher.counts.completed == 1
