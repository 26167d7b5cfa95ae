"""Requests as engines served them: from a gateway's log, and how long they took."""

from __future__ import annotations

import pytest
from support.log_events import Step, completed, log_of

from fairpool_gateway.cost import Used
from fairpool_lab.measures.served import Served, first_tokens, of_log, slowdowns

REQUESTS = (
    Served("a", arrived=0.0, begun=1.0, ended=4.0, input_tokens=10, output_tokens=3),
    Served("a", arrived=1.0, begun=5.0, ended=5.0, input_tokens=10, output_tokens=1),
    Served("b", arrived=2.0, begun=2.5, ended=3.0, input_tokens=1, output_tokens=2),
)


def test_the_first_token_counts_from_arrival():
    found = first_tokens(REQUESTS)
    assert {tenant: seconds.values for tenant, seconds in found.items()} == {"a": (1.0, 4.0), "b": (0.5,)}


def test_a_slowdown_is_the_whole_time_over_that_of_the_same_request_alone():
    found = slowdowns(REQUESTS, alone=lambda request: request.output_tokens / 2)
    assert found["a"].values == pytest.approx((4 / 1.5, 4 / 0.5))
    assert found["b"].values == pytest.approx((1.0,))


def test_of_a_log_service_comes_from_dispatch_to_completion():
    log = completed(log_of([Step("arrive", "a", 5, 0), Step("dispatch", "a", 5, 0)]), [Used(7, 2)])
    (request,) = of_log(log.events)
    assert request == Served("a", arrived=0.0, begun=1.0, ended=log.events[-1].t, input_tokens=7, output_tokens=2)


def test_what_told_no_usage_was_not_answered_in_full():
    assert of_log(completed(log_of([Step("arrive", "a", 5, 0), Step("dispatch", "a", 5, 0)]), [None]).events) == ()
