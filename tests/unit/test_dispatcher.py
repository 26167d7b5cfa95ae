"""The dispatcher under every interleaving of events, on fake time."""

import json
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
from support.config import pool_config
from support.requests import request

from fairpool_gateway.admission import Upload
from fairpool_gateway.cost import Used
from fairpool_gateway.decision_log import DecisionLog
from fairpool_gateway.dispatcher import Dispatcher, Grant, Refuse, State
from fairpool_gateway.endpoints import EndpointSpec, Slot
from fairpool_gateway.errors import NoEndpoint, PoolSuspended, QueueFull, QueueTimeout, TenantSuspended
from fairpool_gateway.health import PROBE
from fairpool_gateway.placement import choose
from fairpool_gateway.sfq import OTHER

TENANTS = ("a", "b", "c", "stranger")
WEIGHTS = {"a": 1, "b": 2, "c": 1000}


def spec(number, slots=2):
    return EndpointSpec(f"e{number}", "127.0.0.1", 9000 + number, slots)


def config(weights=None, *, suspended=(), suspend=False, **queue):
    weights = WEIGHTS if weights is None else weights
    return pool_config(
        tenants=[{"name": name, "weight": weight, "suspend": name in suspended} for name, weight in weights.items()],
        suspend=suspend,
        queue=queue,
    )


def dispatcher(*, endpoints=(), dispatcher_class=Dispatcher, log=None, **queue):
    made = dispatcher_class(config(**queue), log=log)
    made.replace_endpoints(0.0, endpoints)
    return made


def granted(actions):
    return [action.request.id for action in actions if isinstance(action, Grant)]


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
        self.replaced = False
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

    @rule(made=requests, status=st.sampled_from([200, 400, 500, 502, 503]))
    def answer(self, made, status):
        if self.by_state[made] is State.IN_FLIGHT:
            self.carry_out(self.dispatcher.answered(self.now, status, made))

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

    def end(self, made, event):
        if self.by_state[made] is State.IN_FLIGHT:
            self.by_state[made] = State.DONE
            del self.slots[made.slot]
        self.carry_out(event(self.now, made))

    @rule(slots=st.lists(st.tuples(st.integers(1, 3), st.booleans()), max_size=3), first=st.integers(0, 2))
    def change_endpoints(self, slots, first):
        self.replaced = True
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
        endpoints = list(self.dispatcher.endpoints)
        assert not endpoints or self.replaced or not all(endpoint.is_out for endpoint in endpoints)

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

    def complete(self, now, made, used):
        if made.state is State.DONE and made.slot is not None:
            made.slot.endpoint.in_flight -= 1
        return super().complete(now, made, used)


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
        max_examples=300,
        stateful_step_count=40,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
    )
    with pytest.raises((AssertionError, KeyError)):
        run_state_machine_as_test(Broken, settings=found)


class TestArrival:
    def test_a_free_slot_is_given_at_once(self):
        pool = dispatcher(endpoints=[spec(0)])
        assert granted(pool.arrive(0.0, request("r1", "a"))) == ["r1"]

    def test_without_an_endpoint_it_waits(self):
        pool = dispatcher()
        assert pool.arrive(0.0, request("r1", "a")) == []
        assert granted(pool.replace_endpoints(1.0, [spec(0)])) == ["r1"]

    def test_beyond_the_tenants_bound_it_is_refused_and_leaves_no_trace(self):
        pool = dispatcher(perTenant={"maxRequests": 1})
        pool.arrive(0.0, request("r1", "a"))
        (refuse,) = pool.arrive(0.0, request("r2", "a"))
        assert isinstance(refuse.refusal, QueueFull)
        assert refuse.refusal.retry_after == 60
        assert pool.admission.waiting == 1
        assert pool.arrive(0.0, request("r3", "b")) == []

    def test_beyond_the_pools_bytes_it_is_refused(self):
        pool = dispatcher(maxBytes=100, maxRequestBytes=100)
        assert pool.arrive(0.0, request("r1", "a", size=60)) == []
        (refuse,) = pool.arrive(0.0, request("r2", "b", size=60))
        assert isinstance(refuse.refusal, QueueFull)


class TestAFullPool:
    def test_turns_the_newest_of_who_has_most_away_for_a_newcomer_uncharged(self):
        lines = []
        log = DecisionLog(lines.append, pool="p", weights=WEIGHTS, default_weight=100)
        pool = dispatcher(maxRequests=4, log=log)
        for number in range(4):
            pool.arrive(0.0, request(f"a{number}", "a"))
        v, meters = pool.ordering.v, {meter.tenant: meter.meter for meter in pool.ordering.meters()}
        newcomer = request("b", "b")
        (refuse,) = pool.arrive(1.0, newcomer)
        assert (refuse.request.id, type(refuse.refusal), refuse.request.state) == ("a3", QueueFull, State.DONE)
        assert newcomer.state is State.WAITING
        assert (pool.ordering.v, pool.counts.charged, pool.counts.removed) == (v, 0, 1)
        assert {meter.tenant: meter.meter for meter in pool.ordering.meters() if meter.tenant in meters} == meters
        assert [json.loads(line)["event"] for line in lines[-2:]] == ["remove", "arrive"]
        assert granted(pool.replace_endpoints(2.0, [spec(0, slots=4)])) == ["a0", "b", "a1", "a2"]

    def test_makes_room_for_a_body_on_its_way_in(self):
        pool = dispatcher(maxBytes=1000, maxRequestBytes=500)
        for number in range(2):
            pool.arrive(0.0, request(f"a{number}", "a", size=450))
        upload = Upload("b")
        assert pool.receive(1.0, upload, b"x" * 100) == []
        (refuse,) = pool.receive(1.0, upload, b"x" * 100)
        assert refuse.request.id == "a1"
        assert upload.refusal is None
        pool.release(upload)
        assert pool.admission.bytes == 450

    def test_counts_the_bodies_of_strangers_beyond_the_bound_as_one_tenants(self):
        pool = Dispatcher(pool_config(authentication={"type": "Anonymous", "maxTenants": 1}))
        pool.arrive(0.0, request("r", "stranger"))
        upload = Upload("another")
        pool.receive(0.0, upload, b"x")
        assert upload.tenant == OTHER


class TestSuspension:
    def waiting_and_running(self):
        pool = dispatcher(endpoints=[spec(0, slots=1)])
        requests = {name: request(name, tenant) for name, tenant in (("runs", "a"), ("waits", "a"), ("other", "b"))}
        for made in requests.values():
            pool.arrive(0.0, made)
        return pool, requests

    def test_of_a_tenant_refuses_what_waits_and_lets_what_runs_finish(self):
        pool, requests = self.waiting_and_running()
        (refuse,) = pool.configure(1.0, config(suspended={"a"}))
        assert (refuse.request.id, type(refuse.refusal)) == ("waits", TenantSuspended)
        assert requests["runs"].state is State.IN_FLIGHT
        (refused,) = pool.arrive(2.0, request("new", "a"))
        assert isinstance(refused.refusal, TenantSuspended)
        assert granted(pool.complete(3.0, requests["runs"], Used(1, 1))) == ["other"]

    def test_of_the_pool_refuses_what_waits_and_lets_what_runs_finish(self):
        pool, requests = self.waiting_and_running()
        refused = pool.configure(1.0, config(suspend=True))
        assert [(each.request.id, type(each.refusal)) for each in refused] == [
            ("waits", PoolSuspended),
            ("other", PoolSuspended),
        ]
        assert pool.complete(2.0, requests["runs"], Used(1, 1)) == []
        assert pool.counts.completed == 1
        assert pool.configure(3.0, config()) == []
        assert granted(pool.arrive(4.0, request("new", "a"))) == ["new"]

    def test_leaves_the_further_tries_of_what_ran_alone(self):
        pool = dispatcher(endpoints=[spec(0, slots=1), spec(1, slots=1)])
        made, other = request("r", "a"), request("other", "a")
        pool.arrive(0.0, made)
        pool.arrive(0.0, other)
        pool.retry(1.0, made, lost=False)
        assert pool.configure(1.0, config(suspend=True)) == []
        assert granted(pool.complete(2.0, other, None)) == ["r"]

    def test_moves_no_meter(self):
        pool, _ = self.waiting_and_running()
        v = pool.ordering.v
        pool.configure(1.0, config(suspend=True))
        assert pool.ordering.v == v


class TestPlacement:
    def test_the_endpoint_with_the_least_cost_outstanding_takes_the_next(self):
        pool = dispatcher(endpoints=[spec(0), spec(1)])
        pool.arrive(0.0, request("long", "a", text_bytes=40_000))
        pool.arrive(0.0, request("short", "a"))
        (grant,) = pool.arrive(0.0, request("next", "a"))
        assert grant.endpoint.spec.id == "e1"

    def test_an_endpoint_that_comes_back_with_another_identity_starts_empty(self):
        pool = dispatcher(endpoints=[spec(0, slots=1)])
        first = request("r1", "a")
        pool.arrive(0.0, first)
        again = EndpointSpec("e0-reborn", "127.0.0.1", 9000, 1)
        pool.replace_endpoints(1.0, [again])
        assert granted(pool.arrive(2.0, request("r2", "a"))) == ["r2"]
        pool.complete(3.0, first, None)
        (endpoint,) = pool.endpoints
        assert endpoint.in_flight == 1


class TestRetry:
    def two_endpoints(self):
        return dispatcher(endpoints=[spec(0, slots=1), spec(1, slots=1), spec(2, slots=1)])

    def test_it_goes_to_another_endpoint_at_once_and_is_not_charged_again(self):
        pool = self.two_endpoints()
        made = request("r", "a")
        pool.arrive(0.0, made)
        v, charged = pool.ordering.v, pool.counts.charged
        assert pool.may_retry(made, lost=False)
        (grant,) = pool.retry(1.0, made, lost=False)
        assert grant.endpoint.spec.id == "e1"
        assert (pool.ordering.v, pool.counts.charged) == (v, charged)

    def test_it_goes_ahead_of_those_who_wait(self):
        pool = self.two_endpoints()
        running = [request(str(number), "a") for number in range(3)]
        for made in running:
            pool.arrive(0.0, made)
        pool.arrive(0.0, request("waits", "b"))
        assert granted(pool.retry(1.0, running[0], lost=False)) == ["waits"]
        assert granted(pool.complete(2.0, running[1], None)) == ["0"]

    def test_two_other_endpoints_are_tried_at_most(self):
        pool = dispatcher(endpoints=[spec(number) for number in range(4)])
        made = request("r", "a")
        pool.arrive(0.0, made)
        for _ in range(2):
            assert pool.may_retry(made, lost=False)
            pool.retry(1.0, made, lost=False)
        assert not pool.may_retry(made, lost=False)

    def test_a_lost_connection_is_repeated_once_in_all(self):
        pool = self.two_endpoints()
        made = request("r", "a")
        pool.arrive(0.0, made)
        pool.retry(1.0, made, lost=True)
        assert not pool.may_retry(made, lost=True)
        assert pool.may_retry(made, lost=False)

    def test_retries_are_a_tenth_of_dispatches_in_the_long_run(self):
        pool = dispatcher(endpoints=[spec(0, slots=1), spec(1, slots=1)])
        for number in range(2000):
            made = request(str(number), "a")
            pool.arrive(0.0, made)
            if pool.may_retry(made, lost=False):
                pool.retry(0.0, made, lost=False)
            pool.complete(0.0, made, None)
        assert 200 <= pool.counts.retried <= 211

    def test_with_no_other_endpoint_there_is_none(self):
        pool = dispatcher(endpoints=[spec(0)])
        made = request("r", "a")
        pool.arrive(0.0, made)
        assert not pool.may_retry(made, lost=False)

    def test_it_waits_no_longer_than_others_do(self):
        pool = dispatcher(endpoints=[spec(0, slots=1), spec(1, slots=1)], timeout="45s")
        made, other = request("r", "a"), request("other", "a")
        pool.arrive(0.0, made)
        pool.arrive(0.0, other)
        pool.retry(1.0, made, lost=False)
        assert pool.next_tick() == 46.0
        (refuse,) = pool.tick(46.0)
        assert isinstance(refuse.refusal, NoEndpoint)


class TestEjection:
    def test_a_failed_connection_takes_an_endpoint_out_until_a_trial_request_succeeds(self):
        pool = dispatcher(endpoints=[spec(0), spec(1, slots=1)])
        made = request("r", "a")
        pool.arrive(0.0, made)
        pool.connect_failed(0.0, made)
        pool.complete(0.0, made, None)
        (sick, _) = pool.endpoints
        trial, waits = request("trial", "a"), request("waits", "a")
        pool.arrive(1.0, request("runs", "a"))
        pool.arrive(1.0, trial)
        pool.arrive(1.0, waits)
        assert sick.in_flight == 0
        assert granted(pool.tick(pool.next_tick())) == ["trial"]
        assert granted(pool.answered(6.0, 200, trial)) == ["waits"]

    def test_a_trial_that_fails_is_paid_with_twice_the_time(self):
        pool = dispatcher(endpoints=[spec(0), spec(1)])
        (sick, _) = pool.endpoints
        sick.health.connect_failed(0.0, may_eject=True)
        pool.tick(5.0)
        sick.health.connect_failed(5.0, may_eject=True)
        assert pool.next_tick() == 15.0

    def test_a_trial_that_is_cancelled_lets_another_one_go(self):
        pool = dispatcher(endpoints=[spec(0), spec(1, slots=1)])
        (sick, _) = pool.endpoints
        sick.health.connect_failed(0.0, may_eject=True)
        pool.tick(5.0)
        trial = request("trial", "a")
        pool.arrive(5.0, trial)
        assert trial.slot.endpoint is sick
        assert not sick.has_free_slot
        pool.cancel(6.0, trial)
        assert sick.has_free_slot

    def test_one_tenants_503s_do_not_take_it_out_but_two_tenants_do(self):
        pool = dispatcher(endpoints=[spec(0, slots=9), spec(1, slots=1)])
        (sick, _) = pool.endpoints
        for tenant, out in (("a", False), ("a", False), ("b", True)):
            sick.health.answered(0.0, 503, tenant, may_eject=True)
            assert sick.is_out is out

    def test_a_500_says_nothing(self):
        pool = dispatcher(endpoints=[spec(0), spec(1)])
        (sick, _) = pool.endpoints
        for tenant in "abc":
            sick.health.answered(0.0, 500, tenant, may_eject=True)
        assert not sick.is_out

    def test_a_connection_that_fails_is_no_reason_to_let_others_wait_beside_the_last_endpoint(self):
        pool = dispatcher(endpoints=[spec(0), spec(1)])
        (_, sick) = pool.endpoints
        sick.health.connect_failed(0.0, may_eject=True)
        pool.tick(5.0)
        pool.replace_endpoints(5.0, [spec(1)])
        trial, waits = request("trial", "a"), request("waits", "a")
        pool.arrive(5.0, trial)
        pool.arrive(5.0, waits)
        assert granted(pool.connect_failed(6.0, trial)) == ["waits"]

    def test_the_last_one_is_never_taken_out(self):
        pool = dispatcher(endpoints=[spec(0)])
        made = request("r", "a")
        pool.arrive(0.0, made)
        pool.connect_failed(0.0, made)
        pool.complete(0.0, made, None)
        assert granted(pool.arrive(0.0, request("next", "a"))) == ["next"]

    def test_one_that_drains_finishes_and_gets_no_more(self):
        pool = dispatcher(endpoints=[spec(0)])
        made = request("r", "a")
        pool.arrive(0.0, made)
        pool.replace_endpoints(1.0, [EndpointSpec("e0", "127.0.0.1", 9000, 2, draining=True), spec(1)])
        (grant,) = pool.arrive(1.0, request("next", "a"))
        assert grant.endpoint.spec.id == "e1"
        pool.complete(2.0, made, Used(1, 1))


class ForgetsWhoWaitsForAProbe(Dispatcher):
    """Broken: a probe that goes well lets an endpoint be tried, but nobody looks for who waits."""

    def probed(self, now, endpoint, status):
        endpoint.health.answered(now, status or 503, PROBE, may_eject=self.endpoints.others_than(endpoint))
        return []


class TestProbe:
    def sick(self, *, connected=True, dispatcher_class=Dispatcher):
        """A pool with an endpoint that was taken out, whose other one is full, and requests that wait."""
        pool = dispatcher(endpoints=[spec(0), spec(1, slots=1)], dispatcher_class=dispatcher_class)
        (sick, _) = pool.endpoints
        pool.probed(0.0, sick, 503 if connected else None)
        pool.arrive(0.0, request("runs", "a"))
        pool.arrive(0.0, request("waits", "a"))
        pool.arrive(0.0, request("waits too", "a"))
        return pool, sick

    @pytest.mark.parametrize("status", [None, 502, 503, 504])
    def test_that_goes_wrong_takes_an_endpoint_out(self, status):
        pool = dispatcher(endpoints=[spec(0), spec(1)])
        (sick, _) = pool.endpoints
        pool.probed(0.0, sick, status)
        assert sick.is_out
        assert pool.next_tick() == 5.0

    @pytest.mark.parametrize("status", [200, 204, 301, 401, 404, 500])
    def test_that_is_answered_at_all_takes_nobody_out(self, status):
        pool = dispatcher(endpoints=[spec(0), spec(1)])
        (well, _) = pool.endpoints
        pool.probed(0.0, well, status)
        assert not well.is_out

    @pytest.mark.parametrize("connected", [True, False])
    def test_that_goes_well_again_lets_one_request_prove_it_at_once(self, connected):
        pool, sick = self.sick(connected=connected)
        assert granted(pool.probed(1.0, sick, 200)) == ["waits"]
        assert granted(pool.probed(2.0, sick, 200)) == []

    def test_that_forgot_who_waits_would_leave_them_beside_a_free_slot(self):
        pool, sick = self.sick(dispatcher_class=ForgetsWhoWaitsForAProbe)
        assert granted(pool.probed(1.0, sick, 200)) == []
        assert sick.has_free_slot
        assert pool.ordering.waiting

    def test_that_goes_wrong_again_does_not_make_it_stay_out_for_longer(self):
        pool, sick = self.sick()
        pool.probed(4.0, sick, 503)
        assert pool.next_tick() == 5.0

    def test_that_goes_wrong_before_any_trial_makes_it_stay_out_for_longer(self):
        pool, sick = self.sick()
        other = [endpoint for endpoint in pool.endpoints if endpoint is not sick]
        pool.replace_endpoints(1.0, [sick.spec, replace(other[0].spec, slots=3)])
        pool.tick(5.0)
        pool.probed(5.0, sick, None)
        assert pool.next_tick() == 15.0

    def test_that_goes_well_cannot_excuse_what_tenants_saw(self):
        pool = dispatcher(endpoints=[spec(0), spec(1)])
        (sick, _) = pool.endpoints
        for tenant in "ab":
            sick.health.answered(0.0, 503, tenant, may_eject=True)
        pool.probed(1.0, sick, 200)
        assert sick.is_out

    def test_that_goes_well_does_not_take_back_what_one_tenant_saw(self):
        pool = dispatcher(endpoints=[spec(0), spec(1)])
        (sick, _) = pool.endpoints
        for tenant, out in (("a", False), ("b", True)):
            pool.probed(0.0, sick, 200)
            sick.health.answered(0.0, 503, tenant, may_eject=True)
            assert sick.is_out is out

    def test_never_takes_the_last_one_out(self):
        pool = dispatcher(endpoints=[spec(0), spec(1)])
        for endpoint in pool.endpoints:
            pool.probed(0.0, endpoint, None)
        assert [endpoint.is_out for endpoint in pool.endpoints] == [True, False]

    def test_of_an_endpoint_that_has_left_changes_nothing(self):
        pool = dispatcher(endpoints=[spec(0), spec(1)])
        (gone, _) = pool.endpoints
        pool.replace_endpoints(0.0, [spec(1)])
        pool.probed(1.0, gone, None)
        assert granted(pool.arrive(1.0, request("r", "a"))) == ["r"]


class TestTimeOut:
    def test_it_is_told_that_the_pool_is_busy_while_endpoints_are_there(self):
        pool = dispatcher(endpoints=[spec(0, slots=1)], timeout="45s")
        pool.arrive(0.0, request("runs", "a"))
        pool.arrive(1.0, request("waits", "a"))
        assert pool.next_tick() == 46.0
        assert pool.tick(45.9) == []
        (refuse,) = pool.tick(46.0)
        assert isinstance(refuse.refusal, QueueTimeout)
        assert 1 <= refuse.refusal.retry_after <= 60
        assert pool.next_tick() is None

    def test_it_is_told_that_no_endpoint_is_there_when_all_drain(self):
        pool = dispatcher(endpoints=[replace(spec(0), draining=True)], timeout="45s")
        pool.arrive(0.0, request("waits", "a"))
        (refuse,) = pool.tick(45.0)
        assert isinstance(refuse.refusal, NoEndpoint)

    def test_it_is_told_that_no_endpoint_is_there_when_none_is(self):
        pool = dispatcher(timeout="45s")
        pool.arrive(0.0, request("waits", "a"))
        (refuse,) = pool.tick(45.0)
        assert isinstance(refuse.refusal, NoEndpoint)


class TestOrder:
    def test_costs_are_fixed_at_dispatch_with_what_was_learned_by_then(self):
        pool = dispatcher(endpoints=[spec(0, slots=1)])
        runs, waits = request("runs", "a"), request("waits", "a")
        pool.arrive(0.0, runs)
        pool.arrive(0.0, waits)
        pool.complete(1.0, runs, Used(10, 10_000))
        (endpoint,) = pool.endpoints
        assert endpoint.outstanding > 10_000

    def test_a_removal_never_resets_the_meters(self):
        pool = dispatcher(endpoints=[spec(0, slots=1)])
        pool.arrive(0.0, request("runs", "a"))
        alone = request("waits", "a")
        pool.arrive(0.0, alone)
        before = pool.ordering.v
        pool.cancel(1.0, alone)
        assert pool.ordering.v == before

    def test_a_new_weight_counts_from_the_next_charge(self):
        lines = []
        log = DecisionLog(lines.append, pool="p", weights=WEIGHTS, default_weight=100)
        pool = dispatcher(endpoints=[spec(0, slots=1)], log=log)
        first = request("r1", "a")
        pool.arrive(0.0, first)
        pool.arrive(0.0, request("r2", "a"))
        pool.configure(1.0, config({"a": 4}))
        pool.complete(2.0, first, None)
        dispatches = [line for line in lines if b'"dispatch"' in line]
        assert b'"weight":1,' in dispatches[0]
        assert b'"weight":4,' in dispatches[1]


def test_a_slot_is_given_back_once_however_often_it_is_asked():
    pool = dispatcher(endpoints=[spec(0)])
    (endpoint,) = pool.endpoints
    slot = endpoint.take(7)
    assert isinstance(slot, Slot)
    slot.give_back()
    slot.give_back()
    assert (endpoint.in_flight, endpoint.outstanding) == (0, 0)
