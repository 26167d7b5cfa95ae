"""Where requests go: placement, tries elsewhere, and slots that come back."""

from support.dispatchers import dispatcher, granted, spec
from support.requests import request

from fairpool_gateway.endpoints import EndpointSpec, Slot
from fairpool_gateway.errors import NoEndpoint


class TestPlacement:
    def test_the_endpoint_with_the_least_cost_outstanding_takes_the_next(self):
        pool = dispatcher(endpoints=[spec(0), spec(1)])
        pool.arrive(0.0, request("long", "a", text_bytes=40_000))
        pool.arrive(0.0, request("short", "a"))
        (grant,) = pool.arrive(0.0, request("next", "a"))
        assert grant.endpoint.spec.id == "e1"

    def test_one_with_more_slots_takes_more(self):
        pool = dispatcher(endpoints=[spec(0, slots=2), spec(1, slots=8)])
        grants = [pool.arrive(0.0, request(str(number), "a"))[0] for number in range(10)]
        assert [grant.endpoint.spec.id for grant in grants[:5]] == ["e0", "e1", "e1", "e1", "e1"]
        assert [endpoint.in_flight for endpoint in pool.endpoints] == [2, 8]

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


def test_a_slot_is_given_back_once_however_often_it_is_asked():
    pool = dispatcher(endpoints=[spec(0)])
    (endpoint,) = pool.endpoints
    slot = endpoint.take(7)
    assert isinstance(slot, Slot)
    slot.give_back()
    slot.give_back()
    assert (endpoint.in_flight, endpoint.outstanding) == (0, 0)
