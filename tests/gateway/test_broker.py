"""The broker on a real event loop: who waits, who leaves, and what crosses in between."""

import asyncio
from dataclasses import replace

import pytest
from support.config import pool_config
from support.requests import request
from support.scripted_endpoint import until

from fairpool_gateway import health
from fairpool_gateway.broker import Broker
from fairpool_gateway.cost import Used
from fairpool_gateway.dispatcher import Dispatcher, State
from fairpool_gateway.endpoints import EndpointSpec
from fairpool_gateway.errors import NoEndpoint, QueueFull, QueueTimeout
from fairpool_gateway.health import Standing

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


class TestHealth:
    @pytest.fixture
    def quick(self, monkeypatch):
        monkeypatch.setattr(health, "FIRST_EJECTION", 0.01)

    @pytest.fixture
    async def two(self, broker, quick):
        """Two endpoints, and requests of two tenants that run on the first."""
        broker.replace_endpoints([replace(ONE_SLOT, slots=9), replace(ONE_SLOT, id="f")])
        running = [request("of a", "a", text_bytes=0), request("of b", "b", text_bytes=0)]
        for made in running:
            made.slot = next(iter(broker.dispatcher.endpoints)).take(1)
        return running

    @pytest.mark.parametrize("seen_by", ["the probe", "two tenants", "a connection"])
    async def test_one_that_was_taken_out_is_tried_again_though_nobody_waits(self, broker, two, seen_by):
        sick = next(iter(broker.dispatcher.endpoints))
        match seen_by:
            case "the probe":
                broker.probed(sick, 503)
            case "two tenants":
                for made in two:
                    broker.answered(made, 503)
            case _:
                broker.connect_failed(two[0])
        assert sick.health.standing is Standing.EJECTED
        await until(lambda: sick.health.standing is Standing.ON_TRIAL)

    async def test_who_waits_goes_to_an_endpoint_that_its_probe_finds_well_again(self, broker):
        broker.replace_endpoints([ONE_SLOT, replace(ONE_SLOT, id="f")])
        sick, _ = broker.dispatcher.endpoints
        broker.probed(sick, None)
        await broker.acquire(request("runs", "a"))
        task = await waiting_task(broker, request("waits", "a"))
        broker.probed(sick, 200)
        assert await task is sick
