"""What was received beside what was due, from the log alone; and how long it took, and how loaded the pool was."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from support import lab_pool
from support.log_events import Step, completed, log_of, steps

from fairpool_gateway.cost import Used
from fairpool_gateway.decision_log import Arrive, Dispatch, Remove
from fairpool_lab import decisions, traces
from fairpool_lab.decisions import Log
from fairpool_lab.measures import history
from fairpool_lab.measures.load import contention, throughput
from fairpool_lab.measures.shares import Shares, shares
from fairpool_lab.policies.arrival_order import ArrivalOrder
from fairpool_lab.traces import TraceRequest


def of(tenant: str, found: Shares):
    return next(share for share in found.tenants if share.tenant == tenant)


def split_by_weight_at_each_instant(log: Log) -> Counter[str]:
    """The entitlement that DESIGN warns of: each dispatch split among the tenants that wait, whatever they ask for."""
    waiting: Counter[str] = Counter()
    entitled: Counter[str] = Counter()
    for event in log.events:
        match event:
            case Arrive(tenant=tenant):
                waiting[tenant] += 1
            case Remove(tenant=tenant):
                waiting[tenant] -= 1
            case Dispatch(tenant=tenant, cost=cost):
                backlogged = [name for name in waiting if waiting[name]]
                for name in backlogged:
                    entitled[name] += cost / len(backlogged)
                waiting[tenant] -= 1
    return entitled


class TestShares:
    @given(steps)
    @settings(max_examples=100, deadline=None)
    def test_all_that_is_given_is_somebodys_entitlement_and_nobody_is_entitled_to_more_than_it_asked(self, steps):
        log = log_of(steps)
        found = shares(log, until=float(len(log.events)))
        records = history.requests(log.events)
        asked: Counter[str] = Counter()
        for event in log.events:
            if isinstance(event, Arrive):
                asked[event.tenant] += history.charged(records[event.seq])
        assert sum(share.entitled for share in found.tenants) == pytest.approx(found.served)
        assert found.served == sum(event.cost for event in log.events if isinstance(event, Dispatch))
        assert all(share.entitled <= asked[share.tenant] + 1e-9 for share in found.tenants)
        assert sum(share.difference for share in found.tenants) == pytest.approx(0)

    def test_splitting_by_weight_at_each_instant_would_entitle_a_light_tenant_to_more_than_it_asked(self):
        log = log_of(
            [
                Step("arrive", "b", 3, 0),
                *(Step("arrive", "a", 10, 0) for _ in range(4)),
                *(Step("dispatch", "a", 10, 0) for _ in range(3)),
            ]
        )
        assert split_by_weight_at_each_instant(log)["b"] == 15
        found = shares(log, until=99.0)
        assert (of("b", found).entitled, of("a", found).entitled) == (3, 27)
        assert found.greatest_difference == pytest.approx(0.1)

    def test_a_request_arrives_in_the_fluid_at_what_it_is_charged_for_later(self):
        log = log_of([Step("arrive", "a", 1, 0), Step("arrive", "b", 1, 0), Step("dispatch", "a", 12, 0)])
        found = shares(log, until=99.0)
        assert (of("a", found).entitled, of("b", found).entitled) == (11, 1)

    def test_the_cut_is_at_the_last_arrival_unless_told_otherwise(self):
        log = log_of(
            [
                Step("arrive", "a", 4, 0),
                Step("dispatch", "a", 4, 0),
                Step("arrive", "b", 4, 0),
                Step("dispatch", "b", 4, 0),
            ]
        )
        assert (shares(log).until, shares(log).served, of("b", shares(log)).requests) == (2.0, 4, 1)
        assert (shares(log, until=1.5).served, [share.tenant for share in shares(log, until=1.5).tenants]) == (4, ["a"])
        assert shares(log, until=3.0).served == 8

    def test_weights_count_from_their_change(self):
        log = log_of(
            [
                *(Step("arrive", tenant, 12, 0) for tenant in "aabb"),
                Step("reweigh", "b", 3, 0),
                Step("dispatch", "a", 12, 0),
            ]
        )
        found = shares(log, until=99.0)
        assert (of("a", found).entitled, of("b", found).entitled) == pytest.approx((3, 9))
        assert of("b", found).weight == 3

    def test_who_takes_a_request_back_is_entitled_to_nothing_for_it(self):
        log = log_of(
            [
                *(Step("arrive", tenant, 12, 0) for tenant in "ab"),
                Step("remove", "b", 12, 0),
                Step("dispatch", "a", 12, 0),
            ]
        )
        found = shares(log, until=99.0)
        assert (of("a", found).entitled, of("b", found).entitled) == (12, 0)

    def test_the_same_in_tokens_really_used(self):
        asked = [Step("arrive", tenant, 5, 0) for tenant in "ab"]
        log = completed(
            log_of([*asked, Step("dispatch", "a", 5, 0), Step("dispatch", "b", 5, 0)]), [Used(10, 10), None]
        )
        found = shares(log, until=99.0, measure=history.really_used(1, 2))
        assert (of("a", found).received, of("b", found).received, found.untold) == (30, 5, 1)
        assert of("a", found).entitled == 30

    def test_an_empty_log_has_no_shares(self):
        found = shares(log_of([]))
        assert (found.served, found.tenants, found.greatest_difference) == (0, (), 0)

    def test_a_fair_order_comes_much_closer_to_what_is_due_than_order_of_arrival(self):
        trace = traces.busiest(traces.read(traces.EXCERPT), 120)
        weights = traces.weights(trace)
        fair, arrival = (
            shares(decisions.read(lab_pool.run(trace, weights=weights, **order))).greatest_difference
            for order in ({}, {"ordering": ArrivalOrder})
        )
        assert fair < arrival / 5


class TestLoad:
    def test_contention_is_the_time_so_many_tenants_are_backlogged(self):
        log = log_of(
            [
                Step("arrive", "a", 1, 0),
                Step("arrive", "b", 1, 0),
                Step("arrive", "b", 1, 0),
                Step("dispatch", "a", 1, 0),
                Step("remove", "b", 1, 0),
            ]
        )
        assert contention(log.events).seconds == (0.0, 2.0, 2.0)
        assert [contention(log.events).part(tenants) for tenants in (0, 1, 2, 3)] == [1, 1, 0.5, 0]
        assert contention(log.events, until=1.5).seconds == (0.0, 1.0)

    def test_an_empty_run_has_no_contention(self):
        assert contention(()).part(0) == 0

    def test_throughput_counts_what_was_completed(self):
        lines = lab_pool.run([TraceRequest(0.0, "a", 10, 5), TraceRequest(0.0, "b", 10, 5)], weights={}, slots=1)
        done = throughput(decisions.read(lines).events)
        assert (done.requests, done.tokens, done.seconds) == (2, 40, pytest.approx(0.1))
        assert done.tokens_per_second == pytest.approx(400)
        assert done.requests_per_second == pytest.approx(20)

    def test_what_failed_is_no_work_done(self):
        log = completed(log_of([Step("arrive", "a", 1, 0), Step("dispatch", "a", 1, 0)]), [None])
        assert throughput(log.events).requests_per_second == 0
