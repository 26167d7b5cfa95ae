"""Order end to end: who waits behind busy endpoints is served by weight, and nobody waits beside a free slot."""

import asyncio
import contextlib
from collections import Counter

import pytest
from support.gateway import running_gateway
from support.scripted_endpoint import ScriptedEndpoint, until
from support.tenant import pool_over, request_bytes, wire

from fairpool_gateway.decision_log import DecisionLog
from fairpool_lab import decisions
from fairpool_lab.measures import gap
from fairpool_lab.policies.arrival_order import ArrivalOrder

WEIGHTS = {"a": 1, "b": 2, "c": 4}
TENANTS = [{"name": name, "weight": weight} for name, weight in WEIGHTS.items()]
ROUNDS = 5
EACH = ROUNDS * max(WEIGHTS.values())


def is_work_conserved(gateway):
    free = sum(endpoint.spec.slots - endpoint.in_flight for endpoint in gateway.dispatcher.endpoints)
    return not (free and gateway.dispatcher.admission.waiting)


async def serve(gateway, peer):
    """Answer whatever comes on this connection, each with the same."""
    while True:
        await peer.request()
        assert is_work_conserved(gateway)
        await peer.answer(b'{"usage": {"prompt_tokens": 1, "completion_tokens": 1}}', headers=b"Content-Type: a/b\r\n")


async def dispatched(slots, **options):
    """The log of a run in which all three tenants' requests wait behind the first ones; each tenant's cost the same."""
    lines = []
    log = DecisionLog(lines.append, pool="llama", weights=WEIGHTS, default_weight=100)
    async with contextlib.AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(ScriptedEndpoint.listening())
        config = pool_over(endpoint, tenants=TENANTS, slots={"perEndpoint": slots})
        gateway = await stack.enter_async_context(running_gateway(config, log=log, **options))
        asked = []
        for name in [*["a"] * slots, *sorted(WEIGHTS) * EACH]:
            line = await stack.enter_async_context(wire(gateway))
            await line.send(request_bytes(name=name))
            asked.append(line)
            await until(lambda: gateway.dispatcher.counts.arrived == len(asked))
        assert gateway.dispatcher.admission.waiting == len(asked) - slots
        serving = [asyncio.create_task(serve(gateway, await endpoint.accept())) for _ in range(slots)]
        for line in asked:
            assert (await line.answer())[0] == 200
        assert not any(task.done() for task in serving)
        for task in serving:
            task.cancel()
        await asyncio.wait(serving)
        assert gateway.in_flight == 0
    return decisions.read(lines)


def order_of(log):
    return [event.tenant for event in log.events if isinstance(event, decisions.Dispatch)]


@pytest.mark.parametrize("slots", [1, 3])
async def test_in_every_round_each_is_dispatched_by_its_weight(slots):
    log = await dispatched(slots)
    order = order_of(log)[slots:]
    for rounds in range(1, ROUNDS + 1):
        first = Counter(order[: rounds * sum(WEIGHTS.values())])
        assert first == {name: weight * rounds for name, weight in WEIGHTS.items()}
    assert gap.measure(log.events).within_bound


async def test_arrival_order_through_the_same_gateway_is_not_by_weight():
    log = await dispatched(1, ordering=ArrivalOrder)
    assert order_of(log)[1:] == sorted(WEIGHTS) * EACH
    assert not gap.measure(log.events).within_bound
