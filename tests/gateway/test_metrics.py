"""The metrics: each listed in docs/operations.md, true to what happened, and bounded whatever comes."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.config import pool_config
from support.requests import request

from fairpool_gateway.cost import Used
from fairpool_gateway.dispatcher import Dispatcher
from fairpool_gateway.endpoints import EndpointSpec
from fairpool_gateway.metrics import Vitals, exposition
from fairpool_gateway.sfq import Q
from fairpool_gateway.tallies import MOST_TENANTS, WAIT_BOUNDS

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")


def pool(*names, slots=1, **fields):
    """A dispatcher with one endpoint; with `unknownTenants: Admit`, so that strangers may come."""
    authentication = {
        "type": "TrustedHeader",
        "header": "x-tenant",
        "proxyCredential": {"digest": "sha256:" + "0" * 64},
        "unknownTenants": "Admit",
    }
    tenants = [{"name": name} for name in names]
    made = Dispatcher(pool_config(tenants=tenants, authentication=authentication, **fields))
    made.replace_endpoints(0.0, [EndpointSpec("e", "127.0.0.1", 9000, slots)])
    return made


def scrape(dispatcher, buffered=0):
    vitals = Vitals(
        config_is_current=True,
        buffered=buffered,
        connections=3,
        refused_connections=2,
        tasks=5,
        left_out={"not Ready": 2},
        followed={"pods": True, "config": False},
    )
    parts = exposition(dispatcher, lambda: vitals)()
    return list(text_string_to_metric_families(b"".join(parts).decode()))


def samples(dispatcher):
    """Every sample of ours by its name and the values of its labels, these in the order of their names."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in scrape(dispatcher)
        for sample in family.samples
    }


def send(dispatcher, tenant, number=1, *, now=0.0):
    sent = [request(f"{tenant}-{now}-{each}", tenant) for each in range(number)]
    for each in sent:
        dispatcher.arrive(now, each)
    return sent


@pytest.fixture
def busy():
    """Something in every family: `a` runs, `a` and `b` wait, something was answered, refused, estimated and owed."""
    dispatcher = pool("a", "b", cost={"carry": True})
    (first,) = send(dispatcher, "a")
    send(dispatcher, "a")
    send(dispatcher, "b", 2)
    dispatcher.complete(0.3, first, Used(10, 20))
    dispatcher.tallies.of("a").outcomes["answered"] += 1
    dispatcher.tallies.nobody.refused(0.0, "", "r", "unauthenticated")
    return dispatcher


class TestThePage:
    rows = re.findall(r"^\| `(fairpool_\w+)` \| (\w+) \| (.+?) \| (.+) \|$", PAGE, re.MULTILINE)

    def test_it_lists_every_metric_with_its_type_its_labels_and_what_it_tells(self, busy):
        shown = {}
        for family in scrape(busy):
            if family.name.startswith("fairpool_"):
                name = family.name + ("_total" if family.type == "counter" else "")
                labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
                shown[name] = (family.type, ", ".join(f"`{label}`" for label in labels) or "none", family.documentation)
        assert {name: (kind, labels, about) for name, kind, labels, about in self.rows} == shown
        assert len(self.rows) == len(shown)

    def test_every_metric_that_it_asks_something_of_exists(self):
        named = set(re.findall(r"fairpool_[a-z_]+[a-z]", PAGE.split("What to ask them:")[1].split("## Alerts")[0]))
        assert {name.removesuffix("_bucket") for name in named} <= {name for name, *_ in self.rows}

    def test_names_follow_the_conventions(self, busy):
        for family in scrape(busy):
            assert (family.type == "counter") == all(s.name.endswith("_total") for s in family.samples), family.name
            assert not re.search(r"_(count|sum|bucket|total)$", family.name)
            assert not re.search(r"_(ms|millis|micros|kb|mb)", family.name)


class TestWhatTheySay:
    def test_of_what_happened(self, busy):
        seen = samples(busy)
        charged, used = busy.tallies.of("a").counts.charged, 10 + 2 * 20
        assert seen["fairpool_arrivals_total", "a"] == 2
        assert seen["fairpool_dispatches_total", "a"] + seen["fairpool_dispatches_total", "b"] == 2
        assert seen["fairpool_charged_tokens_total", "a"] == charged
        assert seen["fairpool_used_tokens_total", "a"] == used
        assert (seen["fairpool_input_tokens_total", "a"], seen["fairpool_output_tokens_total", "a"]) == (10, 20)
        assert seen["fairpool_estimate_error_tokens_total", "over", "a"] == charged - used
        assert seen["fairpool_estimate_error_tokens_total", "under", "a"] == 0
        assert seen["fairpool_outcomes_total", "answered", "a"] == 1
        assert seen["fairpool_outcomes_total", "unauthenticated", ""] == 1

    def test_of_what_waits_and_runs(self, busy):
        seen = samples(busy)
        assert (seen["fairpool_waiting_requests", "a"], seen["fairpool_waiting_requests", "b"]) == (1, 1)
        assert (seen["fairpool_in_flight_requests", "a"], seen["fairpool_in_flight_requests", "b"]) == (0, 1)
        assert seen["fairpool_held_bytes",] == 2 * 400
        assert (seen["fairpool_endpoint_slots", "e"], seen["fairpool_endpoint_in_flight_requests", "e"]) == (1, 1)
        assert seen["fairpool_endpoint_standing", "e", "good"] == 1
        assert seen["fairpool_endpoint_standing", "e", "ejected"] == 0

    def test_of_the_order(self, busy):
        meters = {meter.tenant: meter.meter for meter in busy.ordering.meters()}
        seen, v = samples(busy), busy.ordering.v
        assert seen["fairpool_virtual_time_tokens",] == v / Q
        for tenant in "ab":
            assert seen["fairpool_head_tag_tokens", tenant] == meters[tenant] / Q
            assert seen["fairpool_lead_tokens", tenant] == (meters[tenant] - v) / Q
        assert seen["fairpool_weight", "a"] == 100

    def test_of_waits_in_buckets_that_add_up(self):
        dispatcher, waits = pool("a"), (0.0, 0.004, 0.3, 50.0)
        now = 0.0
        (running,) = send(dispatcher, "a", now=now)
        for wait in waits[1:]:
            (waiting,) = send(dispatcher, "a", now=now)
            now += wait
            dispatcher.complete(now, running, None)
            running = waiting
        seen = samples(dispatcher)
        for bound in WAIT_BOUNDS:
            expected = sum(wait <= bound for wait in waits)
            # The label of the bucket comes before that of the tenant.
            assert seen["fairpool_wait_seconds_bucket", f"{bound:g}", "a"] == expected, bound
        assert (
            seen["fairpool_wait_seconds_bucket", "+Inf", "a"] == seen["fairpool_wait_seconds_count", "a"] == len(waits)
        )
        assert seen["fairpool_wait_seconds_sum", "a"] == pytest.approx(sum(waits))

    def test_of_an_endpoint_that_was_taken_out(self):
        dispatcher = pool("a")
        dispatcher.replace_endpoints(0.0, [EndpointSpec(name, "127.0.0.1", 9000, 1) for name in ("e", "f")])
        (sent,) = send(dispatcher, "a")
        dispatcher.connect_failed(0.0, sent)
        seen = samples(dispatcher)
        assert seen["fairpool_endpoint_standing", "e", "ejected"] == 1
        assert (seen["fairpool_endpoint_ejections_total", "e"], seen["fairpool_endpoint_ejections_total", "f"]) == (
            1,
            0,
        )

    def test_of_retries(self):
        dispatcher = pool("a")
        dispatcher.replace_endpoints(0.0, [EndpointSpec(name, "127.0.0.1", 9000, 1) for name in ("e", "f")])
        one, other = send(dispatcher, "a", 2)
        dispatcher.retry(0.0, one, lost=False)
        seen = samples(dispatcher)
        assert (seen["fairpool_retries_total", "a"], seen["fairpool_retrying_requests",]) == (1, 1)
        assert seen["fairpool_in_flight_requests", "a"] == 1
        dispatcher.complete(0.0, other, None)
        assert samples(dispatcher)["fairpool_retrying_requests",] == 0


class TestBounds:
    def test_tenants_that_are_not_listed_share_one_label_and_models_have_none(self):
        dispatcher = pool("a")
        for number in range(500):
            send(dispatcher, f"stranger-{number}", now=float(number))
        dispatcher.tallies.of("stranger-7").refused(0.0, "stranger-7", "r", "queue_full")
        seen = samples(dispatcher)
        assert seen["fairpool_arrivals_total", "_other"] == 500
        assert seen["fairpool_waiting_requests", "_other"] == 499
        assert seen["fairpool_outcomes_total", "queue_full", "_other"] == 1
        least = min(meter.meter for meter in dispatcher.ordering.meters() if meter.waiting)
        assert seen["fairpool_head_tag_tokens", "_other"] == least / Q
        assert not [key for key in seen if any("stranger" in part or part == "sim" for part in key)]

    def test_series_are_no_more_however_many_tenants_are_listed(self):
        def number(tenants):
            dispatcher = pool(*(f"t{each}" for each in range(tenants)))
            for each in range(tenants):
                send(dispatcher, f"t{each}", now=float(each))
            return sum(key[0].startswith("fairpool_") for key in samples(dispatcher))

        assert number(MOST_TENANTS + 50) == number(MOST_TENANTS + 1) < 40 * MOST_TENANTS

    def test_a_tenant_is_shown_at_nought_before_it_ever_came(self):
        seen = samples(pool("a"))
        assert seen["fairpool_arrivals_total", "a"] == seen["fairpool_charged_tokens_total", "a"] == 0
        assert seen["fairpool_wait_seconds_bucket", "+Inf", "a"] == 0
