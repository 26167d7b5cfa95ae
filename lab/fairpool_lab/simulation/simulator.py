"""The simulator: the product's own dispatcher on fake time, between the demand of a scenario and its engines.

Discrete events, nothing in between: the clock jumps from one entry of the agenda to the next. What always holds: every
request that arrives ends exactly once, completed, cancelled or refused; the same scenario and policy give the same run,
event for event, in every process. The time that a run takes grows with its events, times the logarithm of those that
wait to happen.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from random import Random
from typing import Any

from fairpool_gateway.cost import Used
from fairpool_gateway.dispatcher import Action, Dispatcher, Grant, Request
from fairpool_gateway.errors import RETRY_AFTER_LEAST
from fairpool_gateway.ordering import OrderingFactory
from fairpool_lab.policies import Policy, PolicyFactory, Sight, Unmoved
from fairpool_lab.simulation.agenda import Agenda, Rank
from fairpool_lab.simulation.demand import Ask, Clients
from fairpool_lab.simulation.engines import Engine, Happened
from fairpool_lab.simulation.keeping import KeptDecisions
from fairpool_lab.simulation.request import End, SimulatedRequest
from fairpool_lab.simulation.run import Run, Service
from fairpool_lab.simulation.scenario import MODEL, POOL, Replace, Reweigh, Scenario

Watch = Callable[[SimulatedRequest], None]
"""Told of each request that has ended."""

Price = Callable[[Any], int]
"""What a policy asks for the cost of a request."""


def simulate(scenario: Scenario, policy: PolicyFactory[SimulatedRequest], *, watch: Watch | None = None) -> Run:
    """Run a scenario under a policy, to its end."""
    simulation = _Simulation(scenario, policy, watch)
    with _uncollected():
        return simulation.run()


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collection: a run keeps what it makes, so there is ever more to look through and none to free."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Station:
    """One endpoint: its engine, and when the agenda will look at it."""

    __slots__ = ("engine", "expected")

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.expected: float | None = None


class _Client:
    """One closed loop, and the chance by which it draws."""

    __slots__ = ("chance", "loops")

    def __init__(self, loops: Clients, chance: Random) -> None:
        self.loops = loops
        self.chance = chance


class _Simulation:
    """One run."""

    def __init__(self, scenario: Scenario, policy: PolicyFactory[SimulatedRequest], watch: Watch | None) -> None:
        self._scenario = scenario
        self._watch = watch
        self._weights = dict(scenario.weights)
        self._decisions = KeptDecisions(pool=POOL, weights=scenario.weights, default_weight=scenario.default_weight)
        self._stations: dict[str, _Station] = {}
        self._agenda = Agenda()
        self._asks = iter(scenario.asks)
        self._clients = [
            _Client(loops, Random(f"{scenario.seed}/{number}/{loops.tenant}/{client}"))  # noqa: S311 - to be repeatable
            for number, loops in enumerate(scenario.clients)
            for client in range(loops.count)
        ]
        self._requests: list[SimulatedRequest] = []
        self._service: list[Service] = []
        self._ticks_at = self._looks_at = math.inf
        self._events = 0
        self._dispatcher = Dispatcher(
            scenario.config(self._weights),
            ordering=self._order(policy),
            estimator=scenario.estimator(scenario.cost),
            log=self._decisions,
        )

    def run(self) -> Run:
        """From the first event to the last."""
        self._replace(0.0, self._scenario.endpoints)
        for change in self._scenario.changes:
            self._agenda.add(change.at, Rank.CHANGE, partial(self._change, change))
        for number, client in enumerate(self._clients):
            self._agenda.add(client.loops.begin, Rank.ARRIVAL, partial(self._ask_again, number))
        self._expect_ask()
        unmoved = self._unmoved
        while (entry := self._agenda.next()) is not None:
            now, action = entry
            self._events += 1
            if not unmoved:
                self._policy.advance(now)
            action(now)
            if not unmoved:
                self._expect_change(now)
        return Run(self._decisions.log(), tuple(self._requests), tuple(self._service), self._events)

    def _order(self, policy: PolicyFactory[SimulatedRequest]) -> OrderingFactory[Request]:
        """The policy as the dispatcher wants it made; it is kept, to be told what happens later."""

        def make(price: Price, *, weights: Mapping[str, int], default_weight: int, max_tenants: int) -> Policy[Any]:
            sight = Sight(
                attrgetter("input_tokens"),
                attrgetter("output_tokens"),
                self._cached,
                self._scenario.cost.input_weight,
                self._scenario.cost.output_weight,
            )
            self._policy = policy(
                price, weights=weights, default_weight=default_weight, max_tenants=max_tenants, sight=sight
            )
            self._unmoved = isinstance(self._policy, Unmoved)
            return self._policy

        return make

    def _cached(self, request: SimulatedRequest) -> int:
        """How many tokens of the request's prompt are in that prefix cache which has most of them."""
        names = (endpoint.spec.id for endpoint in self._dispatcher.endpoints)
        return max((self._stations[name].engine.cached(request) for name in names), default=0)

    def _expect_ask(self) -> None:
        ask = next(self._asks, None)
        if ask is not None:
            self._agenda.add(ask.arrival, Rank.ARRIVAL, partial(self._ask, ask))

    def _ask(self, ask: Ask, now: float) -> None:
        """The open loop's next request arrives."""
        self._expect_ask()
        self._arrive(now, ask, None)

    def _ask_again(self, number: int, now: float) -> None:
        """A closed loop's client is free to ask."""
        client = self._clients[number]
        if (ask := client.loops.ask(now, client.chance)) is not None:
            self._arrive(now, ask, number)

    def _arrive(self, now: float, ask: Ask, client: int | None) -> None:
        request = SimulatedRequest(str(len(self._requests)), ask, MODEL, client)
        self._requests.append(request)
        if ask.leaves_after is not None:
            self._agenda.add(now + ask.leaves_after, Rank.DEPARTURE, partial(self._leave, request))
        if ask.patience is not None:
            self._agenda.add(now + ask.patience, Rank.DEPARTURE, partial(self._give_up, request))
        self._carry_out(now, self._dispatcher.arrive(now, request))
        self._expect_tick(now)

    def _give_up(self, request: SimulatedRequest, now: float) -> None:
        """A client has waited for a slot for as long as it would, and takes its request back if that has none."""
        if request.slot is None:
            self._leave(request, now)

    def _leave(self, request: SimulatedRequest, now: float) -> None:
        """A client has waited for as long as it would, and takes its request back if that has not ended."""
        if request.end is not None:
            return
        request.finish(now, End.CANCELLED)
        if request.slot is not None:
            station = self._stations[request.slot.endpoint.spec.id]
            station.engine.abort(request)
            self._policy.finished(request)
            self._expect(station)
        seen = Used(request.input_tokens, request.generated)
        self._carry_out(now, self._dispatcher.cancel(now, request, seen=seen))
        self._over(now, request)

    def _carry_out(self, now: float, actions: list[Action]) -> None:
        """Do what the dispatcher says, in order."""
        for action in actions:
            request = action.request
            assert isinstance(request, SimulatedRequest), "the dispatcher returns what it was given"
            if isinstance(action, Grant):
                station = self._stations[action.endpoint.spec.id]
                station.engine.submit(now, request)
                self._expect(station)
            else:
                request.finish(now, End.REFUSED, action.refusal.reason)
                self._over(now, request, pause=action.refusal.retry_after or RETRY_AFTER_LEAST)

    def _expect(self, station: _Station) -> None:
        """See to it that what happens next in an engine is on the agenda."""
        due = station.engine.due
        if due is not None and due != station.expected:
            station.expected = due
            self._agenda.add(due, Rank.ENGINE, partial(self._advance, station))

    def _advance(self, station: _Station, now: float) -> None:
        """Something happens in an engine, unless a client left with what was expected of it."""
        if station.engine.due != now:
            return
        station.expected = None
        happened = station.engine.advance()
        self._note(now, happened)
        for request in happened.finished:
            request.finish(now, End.COMPLETED)
            if not self._unmoved:
                self._policy.finished(request)
            used = Used(request.input_tokens, request.output_tokens)
            self._carry_out(now, self._dispatcher.complete(now, request, used))
            self._over(now, request)
        self._expect(station)

    def _note(self, now: float, happened: Happened) -> None:
        """Count what was done, for each request and each tenant."""
        done: dict[str, list[int]] = {}
        for request, computed, cached, output in happened.progress:
            request.computed += computed
            request.cached += cached
            request.generated += output
            if output and request.first_token is None:
                request.first_token = now
            if output and request.enough is not None and request.generated >= request.enough:
                self._agenda.add(now, Rank.DEPARTURE, partial(self._leave, request))
            if not self._unmoved:
                self._policy.progressed(request, computed, output)
            sums = done.get(request.tenant)
            if sums is None:
                done[request.tenant] = [computed, cached, output]
            else:
                sums[0] += computed
                sums[1] += cached
                sums[2] += output
        self._service += [Service(now, tenant, *sums) for tenant, sums in done.items()]

    def _over(self, now: float, request: SimulatedRequest, *, pause: float = 0.0) -> None:
        """A request has ended: its client, if it is a closed loop's, asks again."""
        if self._watch is not None:
            self._watch(request)
        if request.client is not None:
            loops = self._clients[request.client].loops
            self._agenda.add(now + loops.pause + pause, Rank.ARRIVAL, partial(self._ask_again, request.client))

    def _change(self, change: Reweigh | Replace, now: float) -> None:
        """What the scenario has change now changes."""
        if isinstance(change, Replace):
            self._replace(now, change.endpoints)
            return
        self._weights.pop(change.tenant, None)
        if change.weight is not None:
            self._weights[change.tenant] = change.weight
        self._carry_out(now, self._dispatcher.configure(now, self._scenario.config(self._weights)))

    def _replace(self, now: float, endpoints: Sequence[str]) -> None:
        for name in endpoints:
            if name not in self._stations:
                self._stations[name] = _Station(self._scenario.engine())
        self._carry_out(now, self._dispatcher.replace_endpoints(now, self._scenario.specs(endpoints)))

    def _expect_tick(self, now: float) -> None:
        """Have the dispatcher look at its clock when the first request will have waited for too long.

        All wait equally long, so who arrives later expires later, and one entry on the agenda is enough.
        """
        if self._ticks_at <= now or self._ticks_at == math.inf:
            due = self._dispatcher.next_tick()
            self._ticks_at = math.inf if due is None else due
            if due is not None:
                self._agenda.add(due, Rank.CLOCK, self._tick)

    def _tick(self, now: float) -> None:
        self._carry_out(now, self._dispatcher.tick(now))
        self._expect_tick(now)

    def _expect_change(self, now: float) -> None:
        """Have the policy asked again when a request that it holds back may go."""
        due = self._policy.next_change()
        if due is not None and due < self._looks_at:
            assert due > now, "a policy holds a request back until a time that is past"
            self._looks_at = due
            self._agenda.add(due, Rank.CLOCK, self._look)

    def _look(self, now: float) -> None:
        self._looks_at = math.inf
        self._carry_out(now, self._dispatcher.tick(now))
