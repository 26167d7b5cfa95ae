"""Carry: charges and debts keep within their bounds, and in the long run nothing is off, whatever ends how."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.carry_broken import ChargedAgain, OnlyWhatIsWhole, RefundForLeaving, Unclipped
from support.sfq_checks import check_gap
from support.sfq_events import End, Request, events, long_run
from support.sfq_oracle import Oracle
from support.slots import SlottedPool

from fairpool_gateway.cost import Carry
from fairpool_gateway.sfq import Decision, Scheduler, charge

MOST = 1000
"""Of an estimate, and of what is used."""

SLOTS = 4


class Dispatch(NamedTuple):
    estimate: int


class Ended(NamedTuple):
    """One of those in flight, at this place modulo their number, ended or was cut short when it had used so much."""

    place: int
    used: int
    whole: bool


Event = Dispatch | Ended

TOKENS = st.integers(1, 5) | st.integers(1, MOST)
EVENTS = st.lists(
    st.builds(Dispatch, TOKENS) | st.builds(Ended, st.integers(0, SLOTS), TOKENS, st.booleans()), max_size=60
)
WHOLE = st.lists(
    st.builds(Dispatch, TOKENS) | st.builds(Ended, st.integers(0, SLOTS), TOKENS, st.just(True)), max_size=60
)


class Tenant:
    """One tenant with a few slots, and the books of what it was charged and what it used."""

    def __init__(self, carry: Carry) -> None:
        self.carry = carry
        self.in_flight: list[int] = []
        self.charged = self.used = self.greatest = 0

    @property
    def debt(self) -> int:
        return dict(self.carry.debts()).get("a", 0)

    def play(self, events: Iterable[Event]) -> Tenant:
        for event in events:
            match event:
                case Dispatch(estimate) if len(self.in_flight) < SLOTS:
                    self._dispatch(estimate)
                case Ended(place, used, whole) if self.in_flight:
                    self._end(self.in_flight.pop(place % len(self.in_flight)), used, whole=whole)
            assert abs(self.debt) <= SLOTS * MOST, "the debt exceeds its bound"
        return self

    def _dispatch(self, estimate: int) -> None:
        charged = self.carry.price("a", estimate)
        assert 1 <= charged <= estimate + max(estimate, self.greatest), "the charge exceeds its bounds"
        self.carry.dispatched("a", estimate, charged)
        self.in_flight.append(estimate)
        self.charged += charged

    def _end(self, estimate: int, used: int, *, whole: bool) -> None:
        self.greatest = max(self.greatest, used)
        if whole:
            self.carry.completed("a", estimate, used)
            self.used += used
        else:
            self.carry.cut_short("a", estimate, used)
            self.used += max(estimate, used)


def check_nothing_is_lost(carry: Carry, sequence: Iterable[Event]) -> None:
    """What was charged is what was used, but for the debt and what is in flight; so in the long run nothing is off."""
    tenant = Tenant(carry).play(sequence)
    assert tenant.charged == tenant.used + sum(tenant.in_flight) - tenant.debt, "the books do not balance"


CANCELLED = [Dispatch(1), Ended(0, MOST, whole=False)] * 20
"""Each far longer than it is taken for, and each cancelled: what a cheat would send."""

SHORT = [Dispatch(MOST), Ended(0, 1, whole=True), Dispatch(3)]
LONG = [*[Dispatch(1)] * 3, *[Ended(0, 9, whole=True)] * 3, Dispatch(1)]
"""More is to one's credit than the next request is taken for; more is owed than any has used."""


class TestTheBooks:
    @given(sequence=EVENTS)
    def test_they_balance_and_charges_and_debts_keep_within_their_bounds(self, sequence):
        check_nothing_is_lost(Carry(), sequence)

    @given(sequence=WHOLE)
    def test_what_is_off_in_the_end_is_less_than_a_few_requests_however_many_there_were(self, sequence):
        tenant = Tenant(Carry()).play([*sequence, *[Ended(0, 1, whole=True)] * SLOTS])
        assert abs(tenant.charged - tenant.used) <= SLOTS * MOST

    def test_a_request_costs_at_least_a_token_so_what_uses_none_saves_nothing_up(self):
        assert Tenant(Carry()).play([Dispatch(1), Ended(0, 0, whole=True)] * (2 * SLOTS * MOST)).debt == 0

    @pytest.mark.parametrize(
        ("broken", "sequence", "why"),
        [
            (Unclipped, SHORT, "the charge exceeds"),
            (Unclipped, LONG, "the charge exceeds"),
            (ChargedAgain, [*[Dispatch(1), Ended(0, 9, whole=True)] * 3], "balance"),
            (RefundForLeaving, [Dispatch(9), Ended(0, 1, whole=False)], "balance"),
            (OnlyWhatIsWhole, CANCELLED, "the debt exceeds"),
        ],
    )
    def test_broken_ones_are_caught(self, broken, sequence, why):
        check_nothing_is_lost(Carry(), sequence)
        with pytest.raises(AssertionError, match=why):
            check_nothing_is_lost(broken(), sequence)


def used_by(request: Request) -> int:
    """What a request really uses: anything from far less to far more than it is taken for."""
    return 1 + request.number * 7919 % (2 * request.cost)


class Carrying(Scheduler[Request]):
    """The product's order, at prices that carry."""

    def __init__(self) -> None:
        super().__init__(lambda request: self.carry.price(self.of[request], request.cost), weights={"a": 1000, "b": 3})
        self.carry = Carry()
        self.of: dict[Request, str] = {}

    def arrive(self, tenant: str, request: Request) -> str:
        self.of[request] = tenant
        return super().arrive(tenant, request)

    def dispatch(self) -> Decision[Request] | None:
        decision = super().dispatch()
        if decision is None:
            self.carry.begin_anew()
        else:
            self.carry.dispatched(decision.tenant, decision.request.cost, decision.cost)
        return decision

    def ended(self, decision: Decision[Request], *, failed: bool) -> None:
        end = self.carry.cut_short if failed else self.carry.completed
        end(decision.tenant, decision.request.cost, used_by(decision.request))


class CorrectsMeters(Oracle):
    """What a request was charged too little or too much moves its tenant's meter as soon as that is known."""

    def ended(self, decision: Decision[Request], *, failed: bool) -> None:
        off = used_by(decision.request) - decision.request.cost
        if not failed and decision.tenant in self.tags:
            self.tags[decision.tenant] += charge(abs(off), decision.weight) * (1 if off > 0 else -1)


class TestTheGap:
    """The bound of §3.2 stands, in these charges, for they are made where and when all charges are."""

    @given(sequence=events(slotted=True), slots=st.integers(1, 5))
    @settings(deadline=None, max_examples=50)
    def test_it_keeps_within_its_bound(self, sequence, slots):
        check_gap(SlottedPool(Carrying(), slots).play(sequence))

    @pytest.mark.parametrize("seed", range(4))
    def test_in_long_runs_too(self, seed):
        sequence = list(long_run(seed, 800, slotted=True))
        assert any(isinstance(event, End) for event in sequence)
        check_gap(SlottedPool(Carrying(), 1 + seed).play(sequence))

    def test_correcting_meters_instead_is_caught(self):
        with pytest.raises(AssertionError, match="the gap"):
            for seed in range(12):
                oracle = CorrectsMeters(lambda request: request.cost, weights={"a": 1000, "b": 3})
                check_gap(SlottedPool(oracle, 1 + seed % 4).play(long_run(seed, 800, slotted=True)))


def owing(carry: Carry, tenant: str, estimate: int, used: int) -> None:
    """A request of the tenant is charged by its estimate, and turns out to use something else."""
    carry.dispatched(tenant, estimate, estimate)
    carry.completed(tenant, estimate, used)


class TestForgetting:
    def test_a_free_slot_that_finds_nobody_clears_what_is_owed_and_what_is_to_ones_credit(self):
        carry = Carry()
        owing(carry, "a", 10, 90)
        owing(carry, "b", 90, 10)
        carry.begin_anew()
        assert (carry.price("a", 20), carry.price("b", 20), list(carry.debts())) == (20, 20, [])

    def test_who_rejoins_behind_the_others_loses_its_credit_and_keeps_its_debt(self):
        carry = Carry()
        owing(carry, "a", 10, 90)
        owing(carry, "b", 90, 10)
        for tenant in "ab":
            carry.rejoined(tenant)
        assert (carry.price("a", 100), carry.price("b", 100)) == (180, 100)

    def test_who_has_left_is_forgotten_and_what_still_ends_of_it_counts_for_nothing(self):
        carry = Carry()
        owing(carry, "a", 10, 90)
        carry.dispatched("a", 10, 10)
        carry.forget("a")
        carry.completed("a", 10, 90)
        carry.cut_short("a", 10, 90)
        assert (carry.price("a", 10), list(carry.debts())) == (10, [])

    def test_nothing_is_kept_of_more_tenants_than_there_may_be(self):
        carry = Carry(max_tenants=3)
        for number in range(100):
            owing(carry, f"t{number}", 10, 90)
        assert sorted(tenant for tenant, _ in carry.debts()) == ["t97", "t98", "t99"]
        assert len(carry._greatest) == 3

    def test_who_was_dispatched_least_recently_goes_first(self):
        carry = Carry(max_tenants=2)
        for tenant in ("a", "b", "a", "c"):
            owing(carry, tenant, 10, 90)
        assert sorted(tenant for tenant, _ in carry.debts()) == ["a", "c"]
