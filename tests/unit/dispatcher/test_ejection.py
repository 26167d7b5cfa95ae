"""When an endpoint is taken out, by requests and by probes, and how it comes back."""

from dataclasses import replace

import pytest
from support.dispatchers import dispatcher, granted, spec
from support.requests import request

from fairpool_gateway.cost import Used
from fairpool_gateway.dispatcher import Dispatcher
from fairpool_gateway.endpoints import EndpointSpec
from fairpool_gateway.health import PROBE


class LeavesTheEjectedAlone(Dispatcher):
    """Broken: an endpoint that was ejected stays out though all others have left."""

    def replace_endpoints(self, now, specs):
        standings = {endpoint: endpoint.health.standing for endpoint in self.endpoints}
        self.endpoints.replace(specs)
        for endpoint in self.endpoints:
            endpoint.health.standing = standings.get(endpoint, endpoint.health.standing)
        return self._fill(now)


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

    @pytest.mark.parametrize("other", [[], [replace(spec(1), draining=True)]], ids=["leaves", "drains"])
    def test_one_that_was_taken_out_is_tried_at_once_when_the_last_other_one(self, other):
        pool = dispatcher(endpoints=[spec(0), spec(1)])
        (sick, _) = pool.endpoints
        sick.health.connect_failed(0.0, may_eject=True)
        pool.replace_endpoints(1.0, [spec(0), *other])
        trial, waits = request("trial", "a"), request("waits", "a")
        assert granted(pool.arrive(1.0, trial)) == ["trial"]
        assert granted(pool.arrive(1.0, waits)) == []
        assert granted(pool.connect_failed(2.0, trial)) == ["waits"]

    def test_leaving_it_alone_would_let_requests_wait_for_nobody(self):
        pool = dispatcher(endpoints=[spec(0), spec(1)], dispatcher_class=LeavesTheEjectedAlone)
        (sick, _) = pool.endpoints
        sick.health.connect_failed(0.0, may_eject=True)
        pool.replace_endpoints(1.0, [spec(0)])
        assert granted(pool.arrive(1.0, request("trial", "a"))) == []
        assert all(endpoint.is_out for endpoint in pool.endpoints)

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
