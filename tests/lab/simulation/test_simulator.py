"""The simulator: every request ends once, engines keep their limits, and a run is the same each time."""

import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import simulations
from support.simulations import CROWD, SMALL, Watched, check, fixed, scenarios, told

from fairpool_gateway.decision_log import Arrive, Complete, Dispatch
from fairpool_gateway.sfq import OTHER
from fairpool_lab.decisions import Event
from fairpool_lab.engine.prefixes import PrefixCache
from fairpool_lab.errors import SettingsInvalid
from fairpool_lab.measures import gap, shares
from fairpool_lab.policies import POLICIES
from fairpool_lab.simulation import (
    ESTIMATORS,
    Ask,
    Clients,
    ContinuousBatching,
    End,
    FixedService,
    Replace,
    Reweigh,
    Run,
    Scenario,
    simulate,
)
from fairpool_lab.simulation.engines import Happened

SFQ = POLICIES["sfq"].factory
ORACLE = ESTIMATORS["oracle"].make
policies = st.sampled_from([listed.factory for listed in POLICIES.values()])


@given(scenarios(), policies)
@settings(max_examples=150, deadline=None)
def test_every_request_ends_once_and_gets_the_tokens_it_asked_for(scenario, policy):
    check(simulate(scenario, policy))


@given(scenarios(), policies)
@settings(max_examples=30, deadline=None)
def test_the_same_scenario_gives_the_same_run(scenario, policy):
    assert told(simulate(scenario, policy)) == told(simulate(scenario, policy))


def test_the_crowd_presses_on_every_limit():
    engines = []

    def engine():
        engines.append(Watched())
        return engines[-1]

    run = simulate(Scenario(engine, CROWD.asks, CROWD.clients, slots=4, seed=1), SFQ)
    check(run)
    assert engines[0].batcher.preemptions > 0
    assert sum(request.cached for request in run.requests) > 0
    assert run.ended(End.CANCELLED) == 1


class ForgetsOne(Watched):
    def advance(self):
        happened = super().advance()
        return Happened(happened.progress, [each for each in happened.finished if each.id != "3"])


class TellsTwice(Watched):
    def advance(self):
        happened = super().advance()
        return Happened(happened.progress + happened.progress[:1], happened.finished)


class KeepsWhatWasComputedToItself(Watched):
    def advance(self):
        happened = super().advance()
        return Happened([each._replace(input=0) for each in happened.progress], happened.finished)


class FinishesTwice(Watched):
    def advance(self):
        happened = super().advance()
        return Happened(happened.progress, happened.finished * 2)


class AdmitsOneTooMany(Watched):
    def look(self):
        if self.batcher.waiting_count:
            extra, _ = self.batcher._waiting.popitem()
            self.batcher._running.append(extra)
            extra.held = 1
            self.batcher.kv_used += 1
        super().look()


class NeverMakesWay(PrefixCache):
    def shrink(self, most):
        pass


class GivesNothingBack(PrefixCache):
    def give_back(self, blocks):
        pass


class CrowdsTheCache(Watched):
    def __init__(self):
        super().__init__()
        self.batcher.cache = NeverMakesWay(self.batcher.cache.block_tokens)


class HoldsOnToBlocks(Watched):
    def __init__(self):
        super().__init__()
        self.batcher.cache = GivesNothingBack(self.batcher.cache.block_tokens)


class LeaksOnAbort(Watched):
    def abort(self, request):
        held = self._works[request].held
        super().abort(request)
        self.batcher.kv_used += held
        self.look()


@pytest.mark.parametrize(
    ("broken", "caught"),
    [
        (ForgetsOne, "never ends"),
        (TellsTwice, "lost or invented"),
        (KeepsWhatWasComputedToItself, "input tokens are lost"),
        (FinishesTwice, "ends twice"),
        (AdmitsOneTooMany, "more run than may"),
        (LeaksOnAbort, "KV leaks"),
        (CrowdsTheCache, "no KV"),
        (HoldsOnToBlocks, "nobody uses"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_broken_engine_is_caught(broken, caught):
    with pytest.raises(AssertionError, match=caught):
        check(simulate(Scenario(broken, CROWD.asks, CROWD.clients, slots=4, seed=1), SFQ))


def test_another_seed_gives_another_run():
    clients = (Clients("a", 3, [(3, 2), (12, 5), (30, 1)], until=3.0),)
    runs = [told(simulate(Scenario(fixed, clients=clients, seed=seed), SFQ)) for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]


def test_the_same_scenario_gives_the_same_run_in_every_process():
    code = "from support import simulations; print(simulations.digest())"
    tests = str(Path(simulations.__file__).parents[1])
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": tests, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert said == {simulations.digest() + "\n"}


class TestDemand:
    def test_tenants_may_be_called_whatever_a_trace_calls_them(self):
        names = ("Team Ä / 1", "", "_other", "[red]")
        asks = [Ask(0.0, name, 5, 1) for name in names]
        run = simulate(Scenario(fixed, asks, weights=dict.fromkeys(names, 3)), SFQ)
        assert [request.tenant for request in run.requests] == list(names)
        assert run.ended(End.COMPLETED) == 4

    def test_a_closed_loop_has_one_request_outstanding_for_each_client(self):
        run = simulate(Scenario(fixed, clients=(Clients("a", 3, [(10, 5)], until=2.0),), slots=2), SFQ)
        for request in run.requests:
            outstanding = [each for each in run.requests if each.arrived <= request.arrived < each.ended]
            assert len(outstanding) <= 3
        assert max(request.arrived for request in run.requests) < 2.0
        assert len(run.requests) == pytest.approx(2 * 2.0 / 0.2, abs=3)

    def test_a_client_that_was_refused_asks_again_when_it_was_told_to(self):
        scenario = Scenario(
            fixed, clients=(Clients("a", 2, [(100, 0)], until=4.5),), slots=1,
            queue=Scenario(fixed).queue.model_copy(update={"max_requests": 0}),
        )  # fmt: skip
        run = simulate(scenario, SFQ)
        refused = [request for request in run.requests if request.end is End.REFUSED]
        assert {request.reason for request in refused} == {"queue_full"}
        assert len(refused) == len(run.requests) <= 2 * 5

    def test_a_client_leaves_the_queue_or_the_engine_after_its_time(self):
        asks = [Ask(0.0, "a", 100, 0), Ask(0.0, "a", 100, 0, leaves_after=0.5), Ask(2.0, "a", 100, 0, leaves_after=0.5)]
        served, waited, cut = simulate(Scenario(fixed, asks, slots=1), SFQ).requests
        assert (served.end, served.ended) == (End.COMPLETED, 1.0)
        assert (waited.end, waited.ended, waited.dispatched) == (End.CANCELLED, 0.5, None)
        assert (cut.end, cut.ended, cut.dispatched) == (End.CANCELLED, 2.5, 2.0)

    def test_a_client_that_is_impatient_leaves_the_queue_and_no_engine(self):
        asks = [Ask(0.0, "a", 100, 0, patience=0.5), Ask(0.0, "a", 100, 0, patience=0.5)]
        served, waited = simulate(Scenario(fixed, asks, slots=1), SFQ).requests
        assert (served.end, served.ended) == (End.COMPLETED, 1.0)
        assert (waited.end, waited.ended) == (End.CANCELLED, 0.5)

    def test_a_client_that_has_enough_leaves_at_that_token(self):
        asks = [Ask(0.0, "a", 5, 9, enough=3), Ask(0.0, "a", 5, 2, enough=3), Ask(0.0, "a", 5, 3, enough=3)]
        cut, *whole = simulate(Scenario(Watched, asks), SFQ).requests
        assert (cut.end, cut.generated) == (End.CANCELLED, 3)
        assert [(request.end, request.generated) for request in whole] == [(End.COMPLETED, 2), (End.COMPLETED, 3)]

    def test_a_closed_loop_asks_for_what_its_clients_mean(self):
        scenario = Scenario(Watched, clients=(Clients("a", 1, [(5, 9)], until=0.5, max_tokens=40, enough=2),))
        run = simulate(scenario, SFQ)
        assert {(request.max_tokens, request.generated) for request in run.requests} == {(40, 2)}

    def test_strangers_beyond_the_bound_are_one_tenant(self):
        asks = [Ask(0.0, name, 100, 0) for name in "abcd"]
        run = simulate(Scenario(fixed, asks, slots=1, weights={"a": 1}, max_tenants=1), SFQ)
        assert [request.tenant for request in run.requests] == ["a", "b", OTHER, OTHER]

    def test_a_slot_that_a_leaving_client_gives_up_is_taken_at_once(self):
        asks = [Ask(0.0, "a", 100, 0, leaves_after=0.25), Ask(0.1, "b", 100, 0)]
        _, after = simulate(Scenario(fixed, asks, slots=1), SFQ).requests
        assert (after.dispatched, after.ended) == (0.25, 1.25)

    def test_a_slot_that_comes_free_at_the_moment_of_an_arrival_is_there_for_it(self):
        run = simulate(Scenario(fixed, [Ask(0.0, "a", 100, 0), Ask(1.0, "b", 100, 0)], slots=1), SFQ)
        at_once = [type(event) for event in run.log.events if event.t == 1.0]
        assert at_once.index(Complete) < at_once.index(Arrive) < at_once.index(Dispatch)


class TestChanges:
    def test_a_weight_counts_from_its_time_on(self):
        clients = (Clients("a", 9, [(10, 0)], until=20.0), Clients("b", 9, [(10, 0)], until=20.0))
        scenario = Scenario(
            fixed,
            clients=clients,
            slots=1,
            weights={"a": 1, "b": 1},
            changes=(Reweigh(10.0, "a", 3),),
            estimator=ORACLE,
        )
        run = simulate(scenario, SFQ)
        early, late = served(run, 0.0, 10.0), served(run, 10.0, 20.0)
        assert early["a"] == pytest.approx(early["b"], abs=1)
        assert late["a"] == pytest.approx(3 * late["b"], abs=6)
        assert gap.measure(run.log.events).within_bound

    def test_an_endpoint_that_leaves_finishes_what_it_runs_and_gets_no_more(self):
        asks = [Ask(0.0, "a", 100, 0), *(Ask(0.1, "a", 100, 0) for _ in range(3))]
        changes = (Replace(0.5, ()), Replace(3.0, ("engine-1",)))
        run = simulate(Scenario(fixed, asks, slots=1, changes=changes), SFQ)
        assert [request.ended for request in run.requests] == [1.0, 4.0, 5.0, 6.0]
        assert {each.endpoint for each in dispatches(run.log.events)} == {"engine-0", "engine-1"}

    def test_one_that_comes_back_is_the_one_that_left(self):
        asks = [Ask(0.0, "a", 100, 0), Ask(0.1, "a", 100, 0)]
        changes = (Replace(0.2, ()), Replace(0.4, ("engine-0",)))
        run = simulate(Scenario(fixed, asks, slots=1, changes=changes), SFQ)
        assert [request.dispatched for request in run.requests] == [0.0, 1.0]


class TestPolicies:
    def test_one_that_limits_rates_is_asked_again_when_somebody_may_go(self):
        run = simulate(Scenario(fixed, [Ask(0.0, "a", 10, 0)] * 50, slots=4), POLICIES["rpm"].factory)
        check(run)
        times = sorted(request.dispatched for request in run.requests)
        assert max(later - earlier for earlier, later in pairwise(times)) > 50
        assert all(times[number + 20] >= times[number] + 60 for number in range(30))

    @pytest.mark.parametrize(
        ("prompt", "cached"), [(12, 8), (8, 4)], ids=["all its blocks", "not its last token, which is computed anyway"]
    )
    def test_one_that_looks_into_the_cache_sees_the_endpoints_own(self, prompt, cached):
        looked = []

        class Looks(POLICIES["arrival-order"].factory):
            def __init__(self, price, *, sight, **pool):
                super().__init__(price, **pool)
                self.sight = sight

            def dispatch(self):
                decision = super().dispatch()
                if decision is not None:
                    looked.append(self.sight.cached(decision.request))
                return decision

        asks = [Ask(number * 1.0, "a", prompt, 1, prefix=(1, 2)) for number in range(3)]
        simulate(Scenario(Watched, asks), Looks)
        assert looked == [0, cached, cached]

    def test_one_that_counts_tokens_is_told_each_of_them_once(self):
        counted = Counter()

        class Counts(POLICIES["vtc"].factory):
            def progressed(self, request, input_tokens, output_tokens):
                super().progressed(request, input_tokens, output_tokens)
                counted[request.id] += input_tokens + output_tokens

        run = simulate(CROWD, Counts)
        assert +counted == Counter({each.id: each.computed + each.generated for each in run.requests if each.computed})


class TestFairness:
    CLIENTS = (Clients("small", 16, [(4, 4)], until=60.0), Clients("large", 16, [(30, 10)], until=60.0))

    @pytest.mark.parametrize("engine", [fixed, lambda: ContinuousBatching(SMALL)], ids=["fixed", "batching"])
    def test_backlogged_tenants_get_shares_by_weight_in_sfq_and_not_in_order_of_arrival(self, engine):
        scenario = Scenario(engine, clients=self.CLIENTS, slots=3, weights={"small": 1, "large": 2}, estimator=ORACLE)
        fair = shares.shares(simulate(scenario, SFQ).log, until=59.0)
        unfair = shares.shares(simulate(scenario, POLICIES["arrival-order"].factory).log, until=59.0)
        assert received(fair) == pytest.approx({"small": 1 / 3, "large": 2 / 3}, abs=0.02)
        assert received(unfair) == pytest.approx({"small": 12 / 62, "large": 50 / 62}, abs=0.02)

    def test_one_server_is_a_queue_as_theory_has_it(self):
        asks = [Ask(number * 1.0, "a", 150, 0) for number in range(10)]
        run = simulate(Scenario(fixed, asks, slots=1), SFQ)
        assert [request.waited for request in run.requests] == pytest.approx([0.5 * number for number in range(10)])


def received(measured: shares.Shares) -> dict[str, float]:
    return {each.tenant: each.received_share for each in measured.tenants}


def dispatches(events: tuple[Event, ...]) -> list[Dispatch]:
    return [event for event in events if isinstance(event, Dispatch)]


def served(run: Run, since: float, until: float) -> Counter[str]:
    return Counter(each.tenant for each in dispatches(run.log.events) if since <= each.t < until)


def test_the_events_of_a_run_grow_as_its_requests_do():
    runs = [simulate(Scenario(fixed, [Ask(n / 10, "abc"[n % 3], 9, 0) for n in range(size)], slots=1), SFQ)
            for size in (100, 1000)]  # fmt: skip
    assert runs[1].events <= 10.5 * runs[0].events


@pytest.mark.parametrize(
    "build",
    [
        lambda: Scenario(fixed, slots=0),
        lambda: Scenario(fixed, weights={"a": 0}),
        lambda: Scenario(fixed, changes=(Reweigh(1.0, "a", 1001),)),
        lambda: FixedService(0.0, sum),
        lambda: Clients("a", 0, [(1, 1)]),
        lambda: Clients("a", 1, []),
        lambda: Clients("a", 1, [(5, 5), (0, 5)]),
        lambda: Clients("a", 1, [(1, 1)], leaves_after=0.0),
        lambda: Clients("a", 1, [(1, 1)], patience=0.0),
    ],
)
def test_a_scenario_that_makes_no_sense_is_refused(build):
    with pytest.raises(SettingsInvalid):
        build()
