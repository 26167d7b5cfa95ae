"""What holds of the dispatcher after every event of any interleaving, on fake time."""

from dataclasses import replace

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from support.dispatchers import TENANTS, WEIGHTS, config, spec
from support.requests import request

from fairpool_gateway.cost import Used
from fairpool_gateway.decision_log import DecisionLog
from fairpool_gateway.dispatcher import Dispatcher, Grant, Refuse, State
from fairpool_gateway.health import PROBE
from fairpool_gateway.placement import choose


class Interleavings(RuleBasedStateMachine):
    """Random events; what must hold is checked after each."""

    dispatcher_class = Dispatcher
    requests = Bundle("requests")

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.made = 0
        self.by_state = {}
        self.slots = {}
        self.granted = set()
        self.lines = []
        log = DecisionLog(self.lines.append, pool="p", weights=WEIGHTS, default_weight=100)
        self.dispatcher = self.dispatcher_class(
            config(maxRequests=12, perTenant={"maxRequests": 6}, timeout="5s"), log=log
        )

    def carry_out(self, actions):
        for action in actions:
            made = action.request
            if isinstance(action, Grant):
                assert self.by_state[made] in {State.WAITING, State.RETRYING}
                assert action.endpoint not in made.tried
                self.by_state[made] = State.IN_FLIGHT
                self.granted.add(made)
                assert made.slot not in self.slots
                self.slots[made.slot] = action.endpoint
            else:
                assert isinstance(action, Refuse)
                assert self.by_state[made] in {State.WAITING, State.RETRYING}
                self.by_state[made] = State.DONE

    @initialize(slots=st.integers(1, 3), count=st.integers(0, 3))
    def start(self, slots, count):
        self.carry_out(self.dispatcher.replace_endpoints(self.now, [spec(n, slots) for n in range(count)]))

    @rule(target=requests, tenant=st.sampled_from(TENANTS), text=st.integers(0, 5000))
    def arrive(self, tenant, text):
        self.made += 1
        made = request(f"r{self.made}", tenant, text_bytes=text)
        self.by_state[made] = State.WAITING
        self.carry_out(self.dispatcher.arrive(self.now, made))
        return made

    @rule(made=requests)
    def leave(self, made):
        if self.by_state[made] in {State.WAITING, State.RETRYING}:
            self.by_state[made] = State.DONE
        self.end(made, self.dispatcher.cancel)

    @rule(
        made=consumes(requests), used=st.one_of(st.none(), st.builds(Used, st.integers(0, 5000), st.integers(0, 900)))
    )
    def complete(self, made, used):
        if self.by_state[made] in {State.WAITING, State.RETRYING}:
            return
        self.end(made, lambda now, ended: self.dispatcher.complete(now, ended, used))

    @rule(
        made=requests, status=st.sampled_from([200, 400, 500, 502, 503]), aborted=st.sampled_from([None, False, True])
    )
    def answer(self, made, status, aborted):
        if self.by_state[made] is State.IN_FLIGHT:
            self.carry_out(self.dispatcher.answered(self.now, status, made))
            if status == 200 and aborted is not None:
                self.carry_out(self.dispatcher.ended(self.now, made, aborted=aborted))

    @rule(made=requests, lost=st.booleans(), connected=st.booleans())
    def fail_and_retry(self, made, lost, connected):
        if self.by_state[made] is not State.IN_FLIGHT:
            return
        if not connected:
            self.carry_out(self.dispatcher.connect_failed(self.now, made))
        if self.dispatcher.may_retry(made, lost=lost):
            del self.slots[made.slot]
            self.by_state[made] = State.RETRYING
            self.carry_out(self.dispatcher.retry(self.now, made, lost=lost))

    @rule(number=st.integers(0, 2), status=st.sampled_from([None, 200, 404, 500, 503]))
    def probe(self, number, status):
        endpoints = list(self.dispatcher.endpoints)
        if endpoints:
            self.carry_out(self.dispatcher.probed(self.now, endpoints[number % len(endpoints)], status))

    @rule(number=st.integers(0, 2), models=st.sampled_from([None, frozenset(), {"tiny"}, {"other"}]))
    def list_models(self, number, models):
        endpoints = list(self.dispatcher.endpoints)
        if endpoints:
            self.carry_out(self.dispatcher.listed(self.now, endpoints[number % len(endpoints)], models))

    def end(self, made, event):
        if self.by_state[made] is State.IN_FLIGHT:
            self.by_state[made] = State.DONE
            del self.slots[made.slot]
        self.carry_out(event(self.now, made))

    @rule(slots=st.lists(st.tuples(st.integers(1, 3), st.booleans()), max_size=3), first=st.integers(0, 2))
    def change_endpoints(self, slots, first):
        specs = [
            replace(spec(first + number, count), draining=draining) for number, (count, draining) in enumerate(slots)
        ]
        self.carry_out(self.dispatcher.replace_endpoints(self.now, specs))

    @rule(
        weights=st.dictionaries(st.sampled_from(TENANTS), st.integers(1, 1000)),
        timeout=st.sampled_from(["1s", "9s"]),
        most=st.sampled_from([5, 12]),
    )
    def edit_config(self, weights, timeout, most):
        edited = config(weights, maxRequests=most, perTenant={"maxRequests": 6}, timeout=timeout)
        self.carry_out(self.dispatcher.configure(self.now, edited))

    @rule(suspended=st.sets(st.sampled_from(sorted(WEIGHTS)), min_size=1), pool=st.booleans())
    def suspend_for_a_moment(self, suspended, pool):
        rules = self.dispatcher.config
        settings = {"maxRequests": rules.queue.max_requests, "perTenant": {"maxRequests": 6}}
        self.carry_out(self.dispatcher.configure(self.now, config(suspended=suspended, suspend=pool, **settings)))
        waiting = {made.tenant for made, state in self.by_state.items() if state is State.WAITING}
        assert not (waiting if pool else waiting & suspended)
        self.carry_out(self.dispatcher.configure(self.now, rules))

    @rule(seconds=st.floats(0.0, 6.0))
    def tick(self, seconds):
        self.now += seconds
        self.carry_out(self.dispatcher.tick(self.now))
        due = self.dispatcher.next_tick()
        assert due is None or due > self.now

    @invariant()
    def nobody_who_had_its_turn_waits_beside_a_slot_it_could_have(self):
        for made, state in self.by_state.items():
            if state is State.RETRYING:
                assert choose(self.dispatcher.endpoints, besides=made.tried) is None

    @invariant()
    def each_request_is_charged_once_however_often_it_is_tried(self):
        assert self.dispatcher.counts.dispatched == len(self.granted)

    @invariant()
    def an_endpoint_is_left_while_there_is_one(self):
        may_serve = [each for each in self.dispatcher.endpoints if not each.spec.draining and each.wanting is None]
        assert not may_serve or not all(endpoint.is_out for endpoint in may_serve)

    @invariant()
    def nobody_waits_beside_a_free_slot(self):
        assert not (self.dispatcher.ordering.waiting and choose(self.dispatcher.endpoints))

    @invariant()
    def what_was_taken_is_what_is_out(self):
        for endpoint in self.dispatcher.endpoints:
            mine = [slot for slot, owner in self.slots.items() if owner is endpoint]
            assert endpoint.in_flight == len(mine)
            assert endpoint.outstanding >= 0

    @invariant()
    def every_request_is_where_it_was_said_to_be(self):
        waiting = sum(state is State.WAITING for state in self.by_state.values())
        assert self.dispatcher.ordering.waiting == self.dispatcher.admission.waiting == waiting
        assert all(made.state is state for made, state in self.by_state.items())

    def teardown(self):
        for made, state in list(self.by_state.items()):
            if state in {State.WAITING, State.RETRYING}:
                self.leave(made)
        for made in [made for made, state in self.by_state.items() if state is State.IN_FLIGHT]:
            self.end(made, self.dispatcher.cancel)
        assert not self.slots
        assert all(endpoint.in_flight == endpoint.outstanding == 0 for endpoint in self.dispatcher.endpoints)
        assert self.dispatcher.admission.bytes == 0
        counts = self.dispatcher.counts
        assert counts.dispatched <= counts.completed <= counts.dispatched + counts.retried


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


class OnePlacementPerEvent(Dispatcher):
    """Broken: looks for one free slot only, however many came free."""

    def _fill(self, now):
        endpoint = choose(self.endpoints)
        decision = self.ordering.dispatch() if endpoint else None
        return [self._grant(now, decision, endpoint)] if decision else []


class KeepsSlotOnCancel(Dispatcher):
    """Broken: a client that leaves while its request runs keeps the slot."""

    def cancel(self, now, made):
        return super().cancel(now, made) if made.state is State.WAITING else []


class GivesBackTwice(Dispatcher):
    """Broken: a slot is given back whenever a completion is told, also of a request that is done."""

    def complete(self, now, made, used, *, seen=None):
        if made.state is State.DONE and made.slot is not None:
            made.slot.endpoint.in_flight -= 1
        return super().complete(now, made, used, seen=seen)


class ChargesRetriesAgain(Dispatcher):
    """Broken: a failed attempt goes back to the order, to be charged again."""

    def retry(self, now, made, *, lost):
        self._give_back(now, made, made.slot, None)
        made.state = State.WAITING
        self.admission.enter(now, made.tenant, made, made.size)
        self.ordering.arrive(made.tenant, made)
        return self._fill(now)


class EjectsTheLast(Dispatcher):
    """Broken: the last endpoint can be ejected like any other."""

    def connect_failed(self, now, made):
        made.slot.endpoint.health.connect_failed(now, may_eject=True)
        return []


class EjectsTheLastByProbe(Dispatcher):
    """Broken: a probe takes an endpoint out whoever is left."""

    def probed(self, now, endpoint, status):
        endpoint.health.answered(now, status or 503, PROBE, may_eject=True)
        return self._fill(now)


class StaysInTheOrder(Dispatcher):
    """Broken: a request that expires is refused, but keeps its place in the order."""

    def _remove(self, now, made):
        made.state = State.DONE


class LetsTheSuspendedWait(Dispatcher):
    """Broken: a suspension stops what comes, but not what waits."""

    def configure(self, now, edited):
        waiting = dict(self.admission._places)
        self.admission._places.clear()
        try:
            return super().configure(now, edited)
        finally:
            self.admission._places.update(waiting)


@pytest.mark.parametrize(
    "broken",
    [
        OnePlacementPerEvent,
        KeepsSlotOnCancel,
        GivesBackTwice,
        StaysInTheOrder,
        ChargesRetriesAgain,
        EjectsTheLast,
        EjectsTheLastByProbe,
        LetsTheSuspendedWait,
    ],
)
def test_the_state_machine_catches(broken):
    class Broken(Interleavings):
        dispatcher_class = broken

    found = settings(
        max_examples=1000,
        stateful_step_count=40,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
    )
    with pytest.raises((AssertionError, KeyError)):
        run_state_machine_as_test(Broken, settings=found)
