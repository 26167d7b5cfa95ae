"""What may wait is bounded for each tenant and for the pool, and nobody can fill the pool for the others."""

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from support.admission_events import TENANTS, Enter, Play, bounded, events
from support.config import pool_config

from fairpool_gateway.admission import Admission, Upload
from fairpool_gateway.drain import DrainRate
from fairpool_gateway.errors import NoEndpoint, PoolSuspended, QueueFull, QueueTimeout, TenantSuspended

FIND = settings(
    max_examples=2000,
    database=None,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)


class RefusesWhoeverComesLate(Admission):
    """Broken: a full pool is closed to all, whoever filled it."""

    def _take_from_who_holds_most(self, now, *, a_place, size):
        raise QueueFull("full")


class TakesFromWhoHoldsLeast(Admission):
    """Broken: the poorest make room."""

    def _who_holds_most(self, measure):
        return super()._who_holds_most(lambda held: -measure(held) if measure(held) else -1_000_000)


class TakesMoreThanIsMissing(Admission):
    """Broken: one more than is needed makes room."""

    def _take_from_who_holds_most(self, now, *, a_place, size):
        turned_away = super()._take_from_who_holds_most(now, a_place=a_place, size=size)
        more = [held for held in self._held.values() if len(held.waiting) > 1]
        return [*turned_away, *(self._give_up_request(now, held) for held in more)]


class TakesTheOldest(Admission):
    """Broken: who has waited longest makes room."""

    def _give_up_request(self, now, held):
        oldest = next(iter(held.waiting))
        self.leave(oldest)
        return oldest, self._displaced(now)


class CountsWhatWaitsOnly(Admission):
    """Broken: bodies on their way in are not counted."""

    def receive(self, now, upload, piece):
        upload.body += piece
        return []


class KeepsEndedUploads(Admission):
    """Broken: the bytes of a body are counted for ever."""

    def release(self, upload):
        pass

    def _turn_upload_away(self, upload, refusal):
        super().release(upload)
        upload.body.clear()
        upload.refusal = refusal


class HoldsNobodyBack(Admission):
    """Broken: there are no bounds."""

    def _make_room(self, now, tenant, *, requests, size):
        return []


def fails(kind, played):
    try:
        Play(kind).run(played)
    except (AssertionError, KeyError):
        return True
    return False


class TestWhateverHappens:
    @given(events)
    @settings(deadline=None, max_examples=200)
    def test_bounds_hold_counts_are_right_and_nobody_within_its_part_is_refused_or_makes_room(self, played):
        Play().run(played)

    @pytest.mark.parametrize("what", ["requests_given_up", "uploads_given_up"])
    def test_tenants_do_make_room_in_these_plays(self, what):
        assert find(events, lambda played: getattr(Play().run(played), what) > 0, settings=FIND)

    @pytest.mark.parametrize(
        "broken",
        [
            RefusesWhoeverComesLate,
            TakesFromWhoHoldsLeast,
            TakesMoreThanIsMissing,
            TakesTheOldest,
            CountsWhatWaitsOnly,
            KeepsEndedUploads,
            HoldsNobodyBack,
        ],
    )
    def test_that_is_caught_where_it_does_not_hold(self, broken):
        assert find(events, lambda played: fails(broken, played), settings=FIND)

    @given(st.lists(st.one_of(st.builds(Enter, st.sampled_from(TENANTS), st.integers(1, 100)))), st.integers(1, 120))
    @settings(deadline=None)
    def test_a_newcomer_within_its_part_gets_in(self, played, size):
        play = Play().run(played)
        n = len(play.state().held) + 1
        assert play.enter("newcomer", size=min(size, 600 // n))


class TestAFullPool:
    def filled_by(self, *tenants, requests=100, size=1):
        """A pool of 8 requests and 600 bytes, as full as these tenants can make it, in turns."""
        play = Play()
        for _ in range(requests):
            for tenant in tenants:
                play.enter(tenant, size)
        return play

    def held(self, play):
        return {tenant: requests for tenant, (requests, _) in play.state().held.items()}

    def test_of_one_tenant_is_shared_with_the_next(self):
        play = self.filled_by("d")
        assert self.held(play) == {"d": 8}
        entered = [play.enter("a", 1) for _ in range(6)]
        assert entered == [True] * 4 + [False] * 2
        assert self.held(play) == {"d": 4, "a": 4}

    def test_tells_who_made_room_to_retry(self):
        admission = Admission(bounded(2, 600))
        admission.enter(0.0, "d", "old", 1)
        admission.enter(1.0, "d", "new", 1)
        ((request, refusal),) = admission.enter(2.0, "a", "newcomer", 1)
        assert request == "new"
        assert isinstance(refusal, QueueFull)
        assert refusal.message == (
            "The queue of this pool is full, and most of it is this tenant's. Send fewer at once, or retry later."
        )
        assert refusal.retry_after == 2

    def test_has_room_for_as_many_tenants_as_there_are_places(self):
        play = self.filled_by("d")
        assert all(play.enter(f"t{number}", 1) for number in range(7))
        assert not play.enter("one too many", 1)
        assert set(self.held(play).values()) == {1}

    def test_of_bytes_is_shared_by_bytes(self):
        admission = Admission(bounded(100, 600))
        for number in range(6):
            admission.enter(0.0, "d", number, 100)
        made_room = [len(admission.enter(1.0, "a", f"a{number}", 75)) for number in range(4)]
        assert made_room == [1, 1, 1, 0]
        with pytest.raises(QueueFull, match="The queue of this pool is full"):
            admission.enter(1.0, "a", "beyond its part", 75)

    def test_takes_from_bodies_on_their_way_in_before_what_waits(self):
        admission = Admission(bounded(8, 600))
        upload = Upload("d")
        admission.enter(0.0, "d", "waits", 100)
        for _ in range(5):
            admission.receive(0.0, upload, b"x" * 100)
        assert admission.bytes == 600
        assert admission.enter(1.0, "a", "newcomer", 60) == []
        assert isinstance(upload.refusal, QueueFull)
        assert not upload.body
        assert (admission.waiting, admission.bytes) == (2, 160)
        admission.release(upload)
        assert admission.bytes == 160

    def test_that_was_full_before_its_bound_was_lowered_gives_up_no_more_than_what_comes(self):
        play = self.filled_by("d")
        play.config = bounded(3, 600)
        play.admission.configure(play.config)
        assert play.enter("a", 1)
        assert self.held(play) == {"d": 7, "a": 1}


class TestATenantsOwnBounds:
    def test_hold_while_the_pool_has_room(self):
        play = Play()
        assert [play.enter("a", 1) for _ in range(6)] == [True] * 5 + [False]

    def test_are_those_that_it_has_of_its_own(self):
        play = Play()
        play.config = bounded(200, 20_000)
        play.admission.configure(play.config)
        assert [sum(play.enter(tenant, 1) for _ in range(120)) for tenant in ("d", "a")] == [100, 5]

    def test_are_told_with_what_there_is(self):
        admission = Admission(bounded(8, 600))
        for number in range(5):
            admission.enter(0.0, "a", number, 10)
        with pytest.raises(QueueFull) as refused:
            admission.enter(0.0, "a", "one too many", 10)
        assert refused.value.message == (
            "This tenant has 5 requests waiting, and 50 bytes in them and on their way here: no more may. "
            "Send fewer at once, or retry later."
        )

    def test_count_bodies_on_their_way_in(self):
        admission = Admission(bounded(8, 5000))
        upload, other = Upload("a"), Upload("a")
        for _ in range(5):
            admission.receive(0.0, upload, b"x" * 100)
        admission.receive(0.0, other, b"x")
        assert isinstance(other.refusal, QueueFull)
        assert upload.refusal is None
        with pytest.raises(QueueFull):
            admission.enter(0.0, "a", "r", 1)
        admission.release(upload)
        admission.enter(0.0, "a", "r", 500)
        assert admission.bytes == 500


class TestAnUpload:
    def test_that_was_turned_away_takes_nothing_more(self):
        admission = Admission(bounded(8, 600))
        upload = Upload("a")
        admission.receive(0.0, upload, b"x" * 501)
        admission.receive(0.0, upload, b"x")
        assert isinstance(upload.refusal, QueueFull)
        assert (admission.bytes, upload.body) == (0, b"")

    def test_is_released_once_however_often_it_is_asked(self):
        admission = Admission(bounded(8, 600))
        upload = Upload("a")
        admission.receive(0.0, upload, b"x" * 50)
        for _ in range(2):
            admission.release(upload)
        assert admission.bytes == 0

    def test_that_never_began_is_released_too(self):
        admission = Admission(bounded(8, 600))
        admission.release(Upload("a"))
        assert admission.bytes == 0


class TestSuspension:
    def config(self, *, pool=False, tenant=False):
        return pool_config(tenants=[{"name": "a", "suspend": tenant}, {"name": "b"}], suspend=pool)

    def test_of_a_tenant_turns_its_requests_away_and_no_others(self):
        admission = Admission(self.config())
        for request, tenant in enumerate("abab"):
            admission.enter(0.0, tenant, request, 10)
        turned_away = admission.configure(self.config(tenant=True))
        assert [(request, type(refusal)) for request, refusal in turned_away] == [
            (0, TenantSuspended),
            (2, TenantSuspended),
        ]
        assert (admission.waiting, admission.bytes) == (2, 20)
        with pytest.raises(TenantSuspended):
            admission.enter(1.0, "a", "new", 10)
        admission.enter(1.0, "b", "new", 10)

    def test_of_the_pool_turns_all_away(self):
        admission = Admission(self.config())
        for request, tenant in enumerate("ab"):
            admission.enter(0.0, tenant, request, 10)
        turned_away = admission.configure(self.config(pool=True))
        assert [(type(refusal), refusal.retry_after) for _, refusal in turned_away] == [(PoolSuspended, 60)] * 2
        assert admission.waiting == 0
        with pytest.raises(PoolSuspended, match="Pool llama is suspended"):
            admission.enter(1.0, "b", "new", 10)

    def test_ends_with_the_edit_that_ends_it(self):
        admission = Admission(self.config(pool=True, tenant=True))
        assert admission.configure(self.config()) == []
        admission.enter(0.0, "a", "r", 10)


class TestWaitingTooLong:
    def test_turns_away_the_oldest_first_and_says_why(self):
        admission = Admission(pool_config(queue={"timeout": "45s"}))
        for number in range(3):
            admission.enter(float(number), "a", number, 10)
        assert admission.next_expiry() == 45.0
        busy = admission.expire(46.0, endpoints=True)
        assert [(request, type(refusal)) for request, refusal in busy] == [(0, QueueTimeout), (1, QueueTimeout)]
        assert admission.next_expiry() == 47.0
        assert [type(refusal) for _, refusal in admission.expire(47.0, endpoints=False)] == [NoEndpoint]
        assert (admission.waiting, admission.bytes, admission.next_expiry()) == (0, 0, None)


rates = st.floats(0.5, 200.0)


def told_after(rate, waiting, seconds=60.0, drain=None):
    """What is told when requests have left at a steady rate for so long."""
    drain = drain or DrainRate()
    for number in range(int(seconds * rate)):
        drain.note(number / rate)
    return drain.seconds(seconds, waiting)


class RemembersAllTime(DrainRate):
    """Broken: the rate is that of all time, so one that has stopped is still told."""

    def _faded(self, now):
        return self._rate


class TestTheDrainRate:
    @given(rates, st.integers(1, 3000))
    def test_tells_when_what_waits_will_be_gone(self, rate, waiting):
        expected = waiting / rate
        told = told_after(rate, waiting)
        assert 1 <= told <= 60
        assert told == 60 or expected * 0.8 - 1 <= told <= expected * 1.35 + 1
        assert told < 60 or expected > 40

    def test_that_property_catches_a_rate_that_does_not_fade(self):
        assert told_after(1.0, 30, drain=RemembersAllTime()) < 30 * 0.8 - 1

    def test_tells_the_most_when_nothing_left_for_long(self):
        drain = DrainRate()
        for _ in range(100):
            drain.note(0.0)
        assert drain.seconds(0.0, 5) == 1
        assert drain.seconds(120.0, 10) == 60
        assert DrainRate().seconds(0.0, 1) == 60

    @pytest.mark.parametrize(("waited", "told"), [(0.0, 1), (0.2, 1), (7.5, 8), (300.0, 60)])
    def test_that_knows_nothing_yet_tells_as_long_again_as_it_has_lasted(self, waited, told):
        assert DrainRate().seconds(1000.0, 5, waited) == told
