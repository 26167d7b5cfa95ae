"""What is counted of tenants: bounded in number, and never going back."""

import dataclasses

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from support.config import pool_config

from fairpool_gateway import tallies
from fairpool_gateway.cost import Used
from fairpool_gateway.sfq import OTHER
from fairpool_gateway.tallies import KEPT, MOST_TENANTS, WAIT_BOUNDS, Tallies, Waits


def config(*names, **fields):
    return pool_config(tenants=[{"name": name} for name in names], **fields)


class TestWhoHasATally:
    def test_each_listed_tenant_has_one_and_all_others_share_one(self):
        pool = Tallies(config("a", "b"))
        assert pool.of("a") is not pool.of("b")
        assert pool.of("stranger") is pool.of("another") is pool.of(OTHER)
        assert [tally.tenant for tally in pool] == ["a", "b", OTHER, ""]

    def test_beyond_the_bound_listed_tenants_share_one_too(self):
        pool = Tallies(config(*(f"t{number}" for number in range(MOST_TENANTS + 5))))
        assert len(list(pool)) == MOST_TENANTS + 2
        assert pool.of(f"t{MOST_TENANTS - 1}").tenant == f"t{MOST_TENANTS - 1}"
        assert pool.of(f"t{MOST_TENANTS}").tenant == OTHER

    def test_where_nobody_needs_a_key_there_is_one_for_everybody(self):
        pool = Tallies(pool_config())
        assert [tally.tenant for tally in pool] == ["anonymous", OTHER, ""]

    def test_whoever_stays_listed_keeps_its_figures_and_whoever_goes_loses_them(self):
        pool = Tallies(config("a", "b"))
        pool.of("a").counts.arrived = pool.of("b").counts.arrived = 3
        pool.configure(config("b", "c"))
        assert [(tally.tenant, tally.counts.arrived) for tally in pool] == [("b", 3), ("c", 0), (OTHER, 0), ("", 0)]
        assert pool.total().arrived == 6


class TestWhatIsCounted:
    @pytest.mark.parametrize(
        ("seconds", "bucket"), [(0.0, 0), (0.001, 0), (0.0011, 1), (45.0, len(WAIT_BOUNDS) - 1), (46.0, -1)]
    )
    def test_a_wait_counts_in_the_least_bucket_that_holds_it(self, seconds, bucket):
        waits = Waits()
        waits.note(seconds)
        assert waits.buckets[bucket] == sum(waits.buckets) == 1
        assert waits.microseconds == round(seconds * 1e6)

    def test_estimates_over_and_under_do_not_cancel_out(self):
        tally = Tallies(config("a")).of("a")
        tally.used(10, 25, Used(5, 10))
        tally.used(40, 25, Used(5, 10))
        counts = tally.counts
        assert (counts.used, counts.input, counts.output) == (50, 10, 20)
        assert (counts.underestimated, counts.overestimated) == (15, 15)

    def test_only_the_last_few_are_remembered(self):
        tally = Tallies(config("a")).of("a")
        for number in range(3 * KEPT):
            tally.dispatched(number, 0.0, 1)
            tally.refused(float(number), "a", str(number), "queue_full")
        assert list(tally.dispatches) == list(range(2 * KEPT, 3 * KEPT))
        assert [refusal.at for refusal in tally.refusals] == list(range(2 * KEPT, 3 * KEPT))
        assert tally.outcomes == {"queue_full": 3 * KEPT}


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("dispatch"), st.sampled_from("abcd")),
        st.tuples(st.just("give back"), st.integers(0, 20)),
        st.tuples(st.just("configure"), st.sets(st.sampled_from("abc"), min_size=1).map(sorted)),
    ),
    max_size=30,
)


def play(events, made=Tallies):
    """Dispatches and slots given back while tenants come and go; the pool's sums are right and never go back."""
    pool, running = made(config("a")), []
    dispatched = completed = 0
    before = pool.total()
    for event, about in events:
        if event == "configure":
            pool.configure(config(*about))
        elif event == "dispatch":
            running.append(pool.of(about))
            running[-1].dispatched(object(), 0.0, 7)
            dispatched += 1
        elif running:
            running.pop(about % len(running)).gave_back()
            completed += 1
        total = pool.total()
        assert (total.dispatched, total.completed, total.charged) == (dispatched, completed, 7 * dispatched)
        pairs = zip(dataclasses.astuple(before), dataclasses.astuple(total), strict=True)
        assert all(one <= other for one, other in pairs)
        assert len(list(pool)) <= tallies.MOST_TENANTS + 2
        before = total
    assert sum(tally.in_flight for tally in {id(each): each for each in running}.values()) == len(running)


@given(EVENTS)
@settings(deadline=None)
def test_the_sums_of_the_pool_are_right_whoever_comes_and_goes(events):
    play(events)


class ForgetsWhoGoes(Tallies):
    """Figures of tenants that are listed no longer are lost to the pool."""

    def configure(self, config):
        super().configure(config)
        self._gone = tallies.Counts()


class LosesWhatRuns(Tallies):
    """What tenants do after they are listed no longer is lost to the pool."""

    def configure(self, config):
        before = dict(self._listed)
        super().configure(config)
        for name in before.keys() - self._listed.keys():
            before[name].counts = dataclasses.replace(before[name].counts)


@pytest.mark.parametrize("broken", [ForgetsWhoGoes, LosesWhatRuns])
def test_a_broken_one_is_caught(broken):
    def fails(events):
        try:
            play(events, broken)
        except AssertionError:
            return True
        return False

    assert find(EVENTS, fails, settings=settings(max_examples=2000, phases=[Phase.generate], derandomize=True))
