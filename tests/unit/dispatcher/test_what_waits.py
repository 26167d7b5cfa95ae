"""Who may wait, in what order they go, and how long they wait."""

import json
from dataclasses import replace

from support.config import pool_config
from support.dispatchers import WEIGHTS, config, dispatcher, granted, spec
from support.requests import request

from fairpool_gateway.admission import Upload
from fairpool_gateway.cost import Used
from fairpool_gateway.decision_log import DecisionLog
from fairpool_gateway.dispatcher import Dispatcher, State
from fairpool_gateway.errors import NoEndpoint, PoolSuspended, QueueFull, QueueTimeout, TenantSuspended
from fairpool_gateway.sfq import OTHER


class TestArrival:
    def test_a_free_slot_is_given_at_once(self):
        pool = dispatcher(endpoints=[spec(0)])
        assert granted(pool.arrive(0.0, request("r1", "a"))) == ["r1"]

    def test_without_an_endpoint_it_waits(self):
        pool = dispatcher()
        assert pool.arrive(0.0, request("r1", "a")) == []
        assert granted(pool.replace_endpoints(1.0, [spec(0)])) == ["r1"]

    def test_beyond_the_tenants_bound_it_is_refused_and_leaves_no_trace(self):
        pool = dispatcher(perTenant={"maxRequests": 1})
        pool.arrive(0.0, request("r1", "a"))
        (refuse,) = pool.arrive(0.0, request("r2", "a"))
        assert isinstance(refuse.refusal, QueueFull)
        assert refuse.refusal.retry_after == 1
        assert pool.admission.waiting == 1
        assert pool.arrive(0.0, request("r3", "b")) == []

    def test_beyond_the_pools_bytes_it_is_refused(self):
        pool = dispatcher(maxBytes=100, maxRequestBytes=100)
        assert pool.arrive(0.0, request("r1", "a", size=60)) == []
        (refuse,) = pool.arrive(0.0, request("r2", "b", size=60))
        assert isinstance(refuse.refusal, QueueFull)


class TestAFullPool:
    def test_turns_the_newest_of_who_has_most_away_for_a_newcomer_uncharged(self):
        lines = []
        log = DecisionLog(lines.append, pool="p", weights=WEIGHTS, default_weight=100)
        pool = dispatcher(maxRequests=4, log=log)
        for number in range(4):
            pool.arrive(0.0, request(f"a{number}", "a"))
        v, meters = pool.ordering.v, {meter.tenant: meter.meter for meter in pool.ordering.meters()}
        newcomer = request("b", "b")
        (refuse,) = pool.arrive(1.0, newcomer)
        assert (refuse.request.id, type(refuse.refusal), refuse.request.state) == ("a3", QueueFull, State.DONE)
        assert newcomer.state is State.WAITING
        assert (pool.ordering.v, pool.counts.charged, pool.counts.removed) == (v, 0, 1)
        assert {meter.tenant: meter.meter for meter in pool.ordering.meters() if meter.tenant in meters} == meters
        assert [json.loads(line)["event"] for line in lines[-2:]] == ["remove", "arrive"]
        assert granted(pool.replace_endpoints(2.0, [spec(0, slots=4)])) == ["a0", "b", "a1", "a2"]

    def test_makes_room_for_a_body_on_its_way_in(self):
        pool = dispatcher(maxBytes=1000, maxRequestBytes=500)
        for number in range(2):
            pool.arrive(0.0, request(f"a{number}", "a", size=450))
        upload = Upload("b")
        assert pool.receive(1.0, upload, b"x" * 100) == []
        (refuse,) = pool.receive(1.0, upload, b"x" * 100)
        assert refuse.request.id == "a1"
        assert upload.refusal is None
        pool.release(upload)
        assert pool.admission.bytes == 450

    def test_counts_the_bodies_of_strangers_beyond_the_bound_as_one_tenants(self):
        pool = Dispatcher(pool_config(authentication={"type": "Anonymous", "maxTenants": 1}))
        pool.arrive(0.0, request("r", "stranger"))
        upload = Upload("another")
        pool.receive(0.0, upload, b"x")
        assert upload.tenant == OTHER


class TestSuspension:
    def waiting_and_running(self):
        pool = dispatcher(endpoints=[spec(0, slots=1)])
        requests = {name: request(name, tenant) for name, tenant in (("runs", "a"), ("waits", "a"), ("other", "b"))}
        for made in requests.values():
            pool.arrive(0.0, made)
        return pool, requests

    def test_of_a_tenant_refuses_what_waits_and_lets_what_runs_finish(self):
        pool, requests = self.waiting_and_running()
        (refuse,) = pool.configure(1.0, config(suspended={"a"}))
        assert (refuse.request.id, type(refuse.refusal)) == ("waits", TenantSuspended)
        assert requests["runs"].state is State.IN_FLIGHT
        (refused,) = pool.arrive(2.0, request("new", "a"))
        assert isinstance(refused.refusal, TenantSuspended)
        assert granted(pool.complete(3.0, requests["runs"], Used(1, 1))) == ["other"]

    def test_of_the_pool_refuses_what_waits_and_lets_what_runs_finish(self):
        pool, requests = self.waiting_and_running()
        refused = pool.configure(1.0, config(suspend=True))
        assert [(each.request.id, type(each.refusal)) for each in refused] == [
            ("waits", PoolSuspended),
            ("other", PoolSuspended),
        ]
        assert pool.complete(2.0, requests["runs"], Used(1, 1)) == []
        assert pool.counts.completed == 1
        assert pool.configure(3.0, config()) == []
        assert granted(pool.arrive(4.0, request("new", "a"))) == ["new"]

    def test_leaves_the_further_tries_of_what_ran_alone(self):
        pool = dispatcher(endpoints=[spec(0, slots=1), spec(1, slots=1)])
        made, other = request("r", "a"), request("other", "a")
        pool.arrive(0.0, made)
        pool.arrive(0.0, other)
        pool.retry(1.0, made, lost=False)
        assert pool.configure(1.0, config(suspend=True)) == []
        assert granted(pool.complete(2.0, other, None)) == ["r"]

    def test_moves_no_meter(self):
        pool, _ = self.waiting_and_running()
        v = pool.ordering.v
        pool.configure(1.0, config(suspend=True))
        assert pool.ordering.v == v


class TestTimeOut:
    def test_it_is_told_that_the_pool_is_busy_while_endpoints_are_there(self):
        pool = dispatcher(endpoints=[spec(0, slots=1)], timeout="45s")
        pool.arrive(0.0, request("runs", "a"))
        pool.arrive(1.0, request("waits", "a"))
        assert pool.next_tick() == 46.0
        assert pool.tick(45.9) == []
        (refuse,) = pool.tick(46.0)
        assert isinstance(refuse.refusal, QueueTimeout)
        assert 1 <= refuse.refusal.retry_after <= 60
        assert pool.next_tick() is None

    def test_it_is_told_that_no_endpoint_is_there_when_all_drain(self):
        pool = dispatcher(endpoints=[replace(spec(0), draining=True)], timeout="45s")
        pool.arrive(0.0, request("waits", "a"))
        (refuse,) = pool.tick(45.0)
        assert isinstance(refuse.refusal, NoEndpoint)

    def test_it_is_told_that_no_endpoint_is_there_when_none_is(self):
        pool = dispatcher(timeout="45s")
        pool.arrive(0.0, request("waits", "a"))
        (refuse,) = pool.tick(45.0)
        assert isinstance(refuse.refusal, NoEndpoint)


class TestOrder:
    def test_costs_are_fixed_at_dispatch_with_what_was_learned_by_then(self):
        pool = dispatcher(endpoints=[spec(0, slots=1)])
        runs, waits = request("runs", "a"), request("waits", "a")
        pool.arrive(0.0, runs)
        pool.arrive(0.0, waits)
        pool.complete(1.0, runs, Used(10, 10_000))
        (endpoint,) = pool.endpoints
        assert endpoint.outstanding > 10_000

    def test_a_removal_never_resets_the_meters(self):
        pool = dispatcher(endpoints=[spec(0, slots=1)])
        pool.arrive(0.0, request("runs", "a"))
        alone = request("waits", "a")
        pool.arrive(0.0, alone)
        before = pool.ordering.v
        pool.cancel(1.0, alone)
        assert pool.ordering.v == before

    def test_a_new_weight_counts_from_the_next_charge(self):
        lines = []
        log = DecisionLog(lines.append, pool="p", weights=WEIGHTS, default_weight=100)
        pool = dispatcher(endpoints=[spec(0, slots=1)], log=log)
        first = request("r1", "a")
        pool.arrive(0.0, first)
        pool.arrive(0.0, request("r2", "a"))
        pool.configure(1.0, config({"a": 4}))
        pool.complete(2.0, first, None)
        dispatches = [line for line in lines if b'"dispatch"' in line]
        assert b'"weight":1,' in dispatches[0]
        assert b'"weight":4,' in dispatches[1]
