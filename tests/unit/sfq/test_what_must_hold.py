"""What holds after every event of every run (§3; DESIGN §4), but not of schedulers that break a rule."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import sfq_broken, sfq_checks
from support.sfq_checks import CHECKS, check_gap
from support.sfq_events import TENANTS, WEIGHTS, Arrive, events, long_run, price
from support.sfq_history import History
from support.slots import SlottedPool

from fairpool_gateway.sfq import OTHER, Scheduler, charge

WEIGHTED = {"a": 1000, "b": 300, "c": 1}
SEEDS = range(4)
each_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)


@each_check
class TestTheProduct:
    @given(sequence=events(), weights=st.dictionaries(st.sampled_from(TENANTS), st.sampled_from(WEIGHTS)))
    @settings(deadline=None, max_examples=25)
    def test_on_random_events(self, check, sequence, weights):
        check(History(Scheduler(price, weights=weights)).play(sequence))

    @given(sequence=events(slotted=True), slots=st.integers(1, 5))
    @settings(deadline=None, max_examples=25)
    def test_with_several_slots(self, check, sequence, slots):
        check(SlottedPool(Scheduler(price, weights=WEIGHTED), slots).play(sequence))

    @pytest.mark.parametrize("seed", SEEDS)
    def test_in_long_runs(self, check, seed):
        check(History(Scheduler(price, weights=WEIGHTED)).play(long_run(seed, 1200)))

    @pytest.mark.parametrize("seed", SEEDS)
    def test_in_long_runs_with_several_slots(self, check, seed):
        check(SlottedPool(Scheduler(price, weights=WEIGHTED), 1 + seed).play(long_run(seed, 1200, slotted=True)))


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (sfq_broken.ResetOnReturn, sfq_checks.check_come_and_go),
        (sfq_broken.ResetOnReturn, sfq_checks.check_tags),
        (sfq_broken.ResetOnRemoval, sfq_checks.check_meters_rest),
        (sfq_broken.ChargeOnCompletion, sfq_checks.check_gap),
        (sfq_broken.RefundOnFailure, sfq_checks.check_gap),
        (sfq_broken.RefundOnFailure, sfq_checks.check_meters_rest),
        (sfq_broken.LeastServedFirst, sfq_checks.check_bands),
        (sfq_broken.RescaleOnReweigh, sfq_checks.check_meters_rest),
        (sfq_broken.WeightAtArrival, sfq_checks.check_charges),
        (sfq_broken.FloatMeters, sfq_checks.check_tags),
        (sfq_broken.ArrivalOrder, sfq_checks.check_gap),
    ],
    ids=lambda named: named.__name__,
)
def test_a_broken_rule_is_caught(broken, check):
    with pytest.raises(AssertionError):
        for seed in range(12):
            pool = SlottedPool(broken(price, weights=WEIGHTED), 1 + seed % 4)
            check(pool.play(long_run(seed, 800, slotted=True)))


class TestSeveralSlotsComeFreeAtOnce:
    @staticmethod
    def check(pool_class):
        pool = pool_class(Scheduler(price), 0)
        for _ in range(4):
            pool.arrive("a")
        pool.slots = 3
        pool.play([Arrive("b", 1)])

    def test_as_many_are_dispatched(self):
        self.check(SlottedPool)

    def test_one_placement_per_event_is_caught(self):
        with pytest.raises(AssertionError, match="free slots"):
            self.check(sfq_broken.OnePlacementPerEvent)


def test_the_bound_is_reached_with_the_last_charge_before_the_interval():
    """So neither `l_i(t2)` nor `l_j(t1)` can be dropped, though the latter was charged before both waited."""
    run = History(Scheduler(price, default_weight=1))
    run.arrive("late", 100)
    run.dispatch()
    run.arrive("late", 1)
    for _ in range(101):
        run.arrive("a", 1)
    joined = run.moments[-1]
    while run.dispatch().tenant == "a":
        now = run.moments[-1]
    assert {"a", "late"} == joined.backlogged
    assert now.charged["a"] == now.last["a"] + joined.last["late"] == charge(101, 1)
    check_gap(run.moments)


class TestCharge:
    @given(cost=st.integers(0, 10**15), weight=st.integers(1, 1000))
    def test_it_is_rounded_up_by_less_than_a_unit_and_never_free(self, cost, weight):
        units = charge(cost, weight)
        assert units >= 1
        assert (units - 1) * weight < max(1, cost << 32) <= max(units * weight, 1)

    @pytest.mark.parametrize("weight", [0, -1, 1001])
    def test_a_weight_outside_its_range_is_refused(self, weight):
        with pytest.raises(ValueError, match="1 to 1000"):
            Scheduler(price, weights={"a": weight})
        scheduler = Scheduler(price)
        with pytest.raises(ValueError, match="1 to 1000"):
            scheduler.reweigh("a", weight)
        with pytest.raises(ValueError, match="1 to 1000"):
            scheduler.reweigh_default(weight)


class TestRemoval:
    def test_a_request_can_be_taken_out_from_anywhere_in_its_queue(self):
        run = History(Scheduler(price))
        first, second, third = (run.arrive("a") for _ in range(3))
        run.remove(second)
        assert [run.dispatch().request, run.dispatch().request] == [first, third]

    def test_what_does_not_wait_cannot_be_taken_out(self):
        run = History(Scheduler(price))
        made = run.arrive("a")
        run.dispatch()
        with pytest.raises(KeyError):
            run.scheduler.remove("a", made)


class TestWhoLags:
    def test_who_is_unknown_does_and_who_waits_or_leads_does_not(self):
        run = History(Scheduler(price))
        assert run.scheduler.lags("a")
        run.arrive("a")
        assert not run.scheduler.lags("a")
        run.dispatch()
        assert not run.scheduler.lags("a")

    def test_who_is_still_remembered_when_virtual_time_has_passed_it_does(self):
        run = History(Scheduler(price))
        led = "abcde"
        for tenant in led:
            run.arrive(tenant)
        run.arrive("z", 9)
        run.arrive("z")
        while (went := run.dispatch()).tenant != "z" or went.start_tag == 0:
            pass
        assert {meter.tenant for meter in run.scheduler.meters()} & set(led)
        assert all(run.scheduler.lags(tenant) for tenant in led)


class TestStrangers:
    @staticmethod
    def check_nobody_starves(bound):
        """An attacker sends each request under a fresh identity; who is known gets a fifth, three being told apart."""
        run = History(Scheduler(price, weights={"known": 100}, max_tenants=bound))
        for number in range(500):
            run.arrive("known", 10)
            run.arrive(f"fresh-{number}", 1)
        for number in range(500, 1000):
            run.arrive(f"fresh-{number}", 1)
            run.dispatch()
        assert run.charged.get("known", 0) / sum(run.charged.values()) == pytest.approx(1 / 5, abs=0.02)

    def test_fresh_identities_starve_nobody(self):
        self.check_nobody_starves(3)

    def test_without_a_bound_they_would(self):
        with pytest.raises(AssertionError):
            self.check_nobody_starves(10**6)

    def test_beyond_the_bound_they_share_one_tenant_and_one_share(self):
        run = History(Scheduler(price, weights={"known": 100}, max_tenants=3))
        for number in range(1000):
            run.arrive(f"fresh-{number}")
        for _ in range(1000):
            run.arrive("known")
        went = [run.dispatch().tenant for _ in range(500)]
        assert set(went) == {"known", "fresh-0", "fresh-1", "fresh-2", OTHER}
        assert went.count("known") >= (500 - 3) // 2

    def test_who_has_a_weight_is_never_among_them(self):
        scheduler = Scheduler(price, weights={"known": 7}, max_tenants=0)
        assert scheduler.identify("known") == "known"
        assert scheduler.identify("stranger") == OTHER
        scheduler.reweigh("stranger", 5)
        assert scheduler.identify("stranger") == "stranger"
