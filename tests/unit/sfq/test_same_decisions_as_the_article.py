"""The scheduler decides as the article does, read by the slow oracle: same requests, tags, meters and `v`."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import sfq_broken
from support.sfq_checks import CHECKS
from support.sfq_events import HUGE, TENANTS, WEIGHTS, Arrive, Ask, Remove, Reweigh, events, long_run, price
from support.sfq_history import History
from support.sfq_oracle import Oracle

from fairpool_gateway.sfq import OTHER, Scheduler

WEIGHTED = {"a": 1000, "b": 300, "c": 1}


def check_agreement(product, oracle, sequence):
    """Play to both and compare after every event; the oracle is told under which tenant strangers were queued."""
    fast, slow = History(product), History(oracle)
    for event in sequence:
        identity = product.identify(event.tenant) if isinstance(event, Arrive) else None
        fast.play([event])
        now = fast.moments[-1]
        assert identity in {None, now.tenant}, f"identified otherwise than queued at {event}"
        slow.play([event._replace(tenant=now.tenant) if isinstance(event, Arrive) else event])
        assert fast.moments[-1].decision == slow.moments[-1].decision, f"decided otherwise at {event}"
        assert product.v == oracle.v, f"virtual time is otherwise after {event}"
        assert product.waiting == oracle.waiting
        remembered = {meter.tenant: meter for meter in product.meters()}
        for meter in oracle.meters():
            if meter.tenant in remembered:
                assert remembered.pop(meter.tenant) == meter, f"remembered otherwise after {event}"
            else:
                assert not meter.waiting, f"{meter.tenant} was forgotten while it waits, after {event}"
                assert meter.meter <= oracle.v, f"the lead of {meter.tenant} was forgotten after {event}"
        assert not remembered, f"remembers what never was, after {event}"
    return fast


@given(events(), st.dictionaries(st.sampled_from(TENANTS), st.sampled_from(WEIGHTS)), st.sampled_from(WEIGHTS))
@settings(deadline=None, max_examples=150)
def test_decides_as_the_article_on_random_events(sequence, weights, default):
    check_agreement(
        Scheduler(price, weights=weights, default_weight=default),
        Oracle(price, weights=weights, default_weight=default),
        sequence,
    )


@pytest.mark.parametrize("seed", range(4))
def test_decides_as_the_article_in_long_runs(seed):
    check_agreement(Scheduler(price, weights=WEIGHTED), Oracle(price, weights=WEIGHTED), long_run(seed, 1500))


def test_decides_as_the_article_among_many_tenants():
    names = [f"t{number:02d}" for number in range(60)]
    check_agreement(Scheduler(price, weights=WEIGHTED), Oracle(price, weights=WEIGHTED), long_run(7, 1500, names))


def test_decides_as_the_article_after_most_have_left_at_once():
    """Removals of a majority rebuild the order."""
    names = [f"t{number:02d}" for number in range(60)]
    for seed in range(5):
        chance = random.Random(seed)
        arrivals = [Arrive(name, chance.randint(1, 1000)) for name in names * 3]
        leave = [Remove(chance.randrange(1000)) for _ in range(90)]
        sequence = [*arrivals, *[Ask()] * 50, *leave, *[Ask()] * 5]
        check_agreement(Scheduler(price, weights=WEIGHTED), Oracle(price, weights=WEIGHTED), sequence * 2)


@given(events(), st.integers(0, 3))
@settings(deadline=None, max_examples=100)
def test_decides_as_the_article_when_strangers_share_a_tenant(sequence, bound):
    check_agreement(Scheduler(price, max_tenants=bound), Oracle(price), sequence)


def test_strangers_do_share_a_tenant_in_long_runs():
    names = [f"t{number:02d}" for number in range(20)]
    fast = check_agreement(Scheduler(price, max_tenants=5), Oracle(price), long_run(3, 1500, names))
    assert {decision.tenant for decision in fast.decisions} >= {OTHER, "t00"}


def test_ties_go_by_tenant_id_whatever_the_order_of_arrival():
    for order in (TENANTS, TENANTS[::-1]):
        sequence = [*(Arrive(tenant, 5) for tenant in order), *(Ask() for _ in TENANTS)]
        fast = check_agreement(Scheduler(price), Oracle(price), sequence)
        assert [decision.tenant for decision in fast.decisions] == sorted(TENANTS)


def test_huge_costs_stay_exact():
    sequence = [Arrive("a", HUGE), Arrive("b", HUGE + 1), Arrive("a", 1), Arrive("b", 1), *[Ask()] * 5]
    fast = check_agreement(
        Scheduler(price, default_weight=1), Oracle(price, default_weight=1), [*sequence * 50, Arrive("c", 1), Ask()]
    )
    assert fast.scheduler.v > 2**53 * 1000


def test_shifting_all_meters_by_v_changes_no_choice():
    """§7.2. The product is never rebased; the oracle at every tenth event."""
    check_shift_invariance(Oracle)


def test_shift_check_catches_a_rebase_that_leaves_the_idle_behind():
    with pytest.raises(AssertionError, match="another choice"):
        check_shift_invariance(sfq_broken.RebaseWithoutTheIdle)


def check_shift_invariance(rebased):
    for seed in range(3):
        product, oracle = History(Scheduler(price, weights=WEIGHTED)), History(rebased(price, weights=WEIGHTED))
        offset = 0
        for number, event in enumerate(long_run(seed, 1000)):
            if number % 10 == 0:
                offset += oracle.scheduler.rebase()
            product.play([event])
            oracle.play([event])
            for decision, shifted in zip(product.decisions[-1:], oracle.decisions[-1:], strict=True):
                assert decision.tenant == shifted.tenant, "another choice"
        assert product.scheduler.v == oracle.scheduler.v + offset
        assert offset > 0


@pytest.mark.parametrize(
    "broken",
    [
        sfq_broken.ResetOnReturn,
        sfq_broken.NoIdleReset,
        sfq_broken.ResetOnRemoval,
        sfq_broken.LeastServedFirst,
        sfq_broken.ChargeOnCompletion,
        sfq_broken.RescaleOnReweigh,
        sfq_broken.WeightAtArrival,
        sfq_broken.FloatMeters,
        sfq_broken.ArrivalOrder,
    ],
)
def test_agreement_catches(broken):
    with pytest.raises(AssertionError):
        for seed in range(4):
            check_agreement(broken(price, weights=WEIGHTED), Oracle(price, weights=WEIGHTED), long_run(seed, 1500))


def test_agreement_catches_a_lead_that_is_forgotten():
    class Forgetful(Scheduler):
        def _retire(self, known):
            known.listed = False
            if not known.parked:
                self._forget(known)

    leads = [Arrive("a", 10), Arrive("b", 1), Ask()]
    check_agreement(Scheduler(price), Oracle(price), leads)
    with pytest.raises(AssertionError, match="lead of a was forgotten"):
        check_agreement(Forgetful(price), Oracle(price), leads)


def test_every_check_holds_of_the_oracle_itself():
    for seed in range(4):
        moments = History(Oracle(price, weights=WEIGHTED)).play([*long_run(seed, 400), Reweigh("a", None)])
        for check in CHECKS:
            check(moments)
