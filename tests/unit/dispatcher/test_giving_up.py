"""An endpoint that gives up answers which it began, and what it must do to be believed again."""

import pytest
from support.dispatchers import dispatcher, granted, spec
from support.requests import request

from fairpool_gateway.health import PROBE, Health, Standing


class BelievesBeginnings(Health):
    """Broken: the beginning of an answer is taken for a good one, though those before it were given up."""

    def answered(self, now, status, witness, *, may_eject):
        self._gave_up = False
        super().answered(now, status, witness, may_eject=may_eject)


def gives_up(health, *tenants, now=0.0, may_eject=True):
    """Each tenant's answer begins and is given up, as those that are no stream are in one moment."""
    for tenant in tenants:
        health.answered(now, 200, tenant, may_eject=may_eject)
        health.ended(now, tenant, aborted=True, may_eject=may_eject)


def test_one_tenants_answers_do_not_take_it_out_but_two_tenants_do():
    health = Health()
    gives_up(health, "a", "a")
    assert health.standing is Standing.GOOD
    gives_up(health, "b")
    assert health.standing is Standing.EJECTED


@pytest.mark.parametrize("first", ["503", "gave up"])
def test_giving_up_and_503_are_evidence_of_the_same_kind(first):
    health = Health()
    if first == "503":
        health.answered(0.0, 503, "a", may_eject=True)
        health.ended(0.0, "b", aborted=True, may_eject=True)
    else:
        gives_up(health, "a")
        health.answered(0.0, 503, "b", may_eject=True)
    assert health.standing is Standing.EJECTED


@pytest.mark.parametrize("tenants", ["ab", "abc", "abcd", "abcab"])
def test_it_stays_out_however_many_answers_it_gives_up(tenants):
    health = Health()
    gives_up(health, *tenants)
    assert health.standing is Standing.EJECTED


@pytest.mark.parametrize("tenants", ["ab", "abc", "abcd", "abcab"])
def test_believing_beginnings_would_leave_it_in(tenants):
    health = BelievesBeginnings()
    gives_up(health, *tenants)
    assert health.standing is Standing.GOOD


def test_an_answer_that_comes_to_its_end_makes_up_for_it():
    health = Health()
    gives_up(health, "a")
    health.ended(0.0, "b", aborted=False, may_eject=True)
    assert health.spotless
    gives_up(health, "b")
    assert health.standing is Standing.GOOD


def test_its_trial_lasts_to_the_end_of_an_answer():
    pool = dispatcher(endpoints=[spec(0), spec(1, slots=1)])
    (sick, _) = pool.endpoints
    gives_up(sick.health, "a", "b")
    runs, trial, waits = request("runs", "a"), request("trial", "a"), request("waits", "a")
    for made in (runs, trial, waits):
        pool.arrive(1.0, made)
    assert granted(pool.tick(pool.next_tick())) == ["trial"]
    assert granted(pool.answered(6.0, 200, trial)) == []
    assert granted(pool.ended(7.0, trial, aborted=False)) == ["waits"]


def test_a_trial_that_it_gives_up_is_paid_with_twice_the_time():
    pool = dispatcher(endpoints=[spec(0), spec(1, slots=1)])
    (sick, _) = pool.endpoints
    gives_up(sick.health, "a", "b")
    trial = request("trial", "a")
    pool.arrive(1.0, request("runs", "a"))
    pool.arrive(1.0, trial)
    pool.tick(5.0)
    pool.answered(6.0, 200, trial)
    pool.ended(6.0, trial, aborted=True)
    assert pool.next_tick() == 16.0


def test_what_listens_after_a_connection_failed_is_believed_at_its_first_byte():
    pool = dispatcher(endpoints=[spec(0), spec(1)])
    (sick, _) = pool.endpoints
    gives_up(sick.health, "a", "b")
    pool.tick(5.0)
    pool.probed(6.0, sick, None)
    pool.probed(7.0, sick, 200)
    sick.health.answered(8.0, 200, "a", may_eject=True)
    assert sick.health.spotless


def test_a_probe_that_goes_well_cannot_excuse_it():
    health = Health()
    gives_up(health, "a", "b")
    health.answered(1.0, 200, PROBE, may_eject=True)
    assert health.standing is Standing.EJECTED


def test_the_last_one_is_never_taken_out():
    health = Health()
    gives_up(health, "a", "b", "c", may_eject=False)
    assert health.standing is Standing.GOOD
