"""The VTC paper's differences in service, against the definition carried out second by second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from fairpool_lab.measures import service_difference
from fairpool_lab.measures.served import Served

AT = (6, 11, 17)
WINDOW = 8

served = st.lists(
    st.builds(
        lambda tenant, arrived, wait, length, tokens: Served(
            tenant, arrived, arrived + wait, arrived + wait + length, tokens, tokens // 2
        ),
        tenant=st.sampled_from("abc"),
        arrived=st.integers(0, 20),
        wait=st.integers(0, 6),
        length=st.integers(0, 9),
        tokens=st.integers(1, 40),
    ),
    max_size=8,
)


def cost(request: Served) -> int:
    return request.input_tokens + 2 * request.output_tokens


def given_by_second(request: Served) -> dict[Fraction, Fraction]:
    """What came in the middle of each second, or in the one moment of a single token."""
    if request.begun == request.ended:
        return {Fraction(request.begun): Fraction(cost(request))}
    length = request.ended - request.begun
    return {Fraction(2 * (request.begun + k) + 1, 2): Fraction(cost(request), length) for k in range(length)}


def by_definition(requests: Sequence[Served]) -> list[float]:
    tenants = {request.tenant for request in requests}
    differences = []
    for moment in AT:
        low, high = moment - Fraction(WINDOW, 2), moment + Fraction(WINDOW, 2)
        asked = {
            tenant: Fraction(sum(cost(r) for r in requests if r.tenant == tenant and low <= r.arrived <= high), WINDOW)
            for tenant in tenants
        }
        got = {
            tenant: sum(
                (
                    part
                    for r in requests
                    if r.tenant == tenant
                    for second, part in given_by_second(r).items()
                    if low <= second <= high
                ),
                Fraction(0),
            )
            / WINDOW
            for tenant in tenants
        }
        most = max(got.values(), default=Fraction(0))
        differences.append(float(sum(min(most - got[t], abs(asked[t] - got[t])) for t in tenants)))
    return differences


def accumulated_by_definition(requests: Sequence[Served]) -> list[float]:
    tenants = {request.tenant for request in requests}
    found = []
    for moment in AT:
        total = dict.fromkeys(tenants, Fraction(0))
        for request in requests:
            total[request.tenant] += sum(part for second, part in given_by_second(request).items() if second <= moment)
        found.append(float(max(total.values(), default=0) - min(total.values(), default=0)))
    return found


def measured(requests: Sequence[Served]) -> tuple[float, ...]:
    return service_difference.windowed(requests, AT, window=WINDOW).differences


def measured_all_at_the_end(requests: Sequence[Served]) -> tuple[float, ...]:
    return measured([replace(request, begun=request.ended) for request in requests])


def measured_with_input_only(requests: Sequence[Served]) -> tuple[float, ...]:
    return service_difference.windowed(requests, AT, window=WINDOW, cost=lambda r: r.input_tokens).differences


def measured_as_if_demand_never_ended(requests: Sequence[Served]) -> tuple[float, ...]:
    eager = [Served(request.tenant, at, 99, 99, 10**6, 0) for request in requests for at in AT]
    return measured([*requests, *eager])


class TestWindowed:
    @given(served)
    @settings(max_examples=200, deadline=None)
    def test_it_is_the_definition(self, requests):
        assert measured(requests) == pytest.approx(by_definition(requests), abs=1e-9)

    @pytest.mark.parametrize(
        "broken", [measured_all_at_the_end, measured_with_input_only, measured_as_if_demand_never_ended]
    )
    def test_the_comparison_catches(self, broken: Callable[[Sequence[Served]], Sequence[float]]):
        def disagrees(requests: Sequence[Served]) -> bool:
            return broken(requests) != pytest.approx(by_definition(requests), abs=1e-9)

        assert find(served, disagrees, settings=settings(max_examples=2000, database=None, phases=[Phase.generate]))

    def test_being_behind_counts_only_as_far_as_more_was_asked_for(self):
        """By hand: a got 10 a second and asked for as much; b got 2 and asked for 5; c got 1 and asked for 1."""
        requests = [
            Served("a", 5.0, 2.0, 10.0, 80, 0),
            Served("b", 5.0, 2.0, 10.0, 16, 0),
            Served("b", 6.0, 90.0, 91.0, 24, 0),
            Served("c", 5.0, 2.0, 10.0, 8, 0),
        ]
        found = service_difference.windowed(requests, [6.0], window=8.0)
        assert found.differences == pytest.approx((0 + 3 + 0,))
        assert (found.greatest, found.mean) == (found.differences[0], found.differences[0])

    def test_weights_count_only_where_they_differ(self):
        requests = [Served("a", 5.0, 2.0, 10.0, 80, 0), Served("b", 5.0, 2.0, 10.0, 240, 0)]
        cost = service_difference.per_weight({"a": 100, "b": 300})
        assert [cost(request) for request in requests] == [160, 160]
        equal = service_difference.per_weight({"a": 100, "b": 100})
        assert [equal(request) for request in requests] == [80, 240]

    def test_the_papers_moments_of_a_run_of_600_seconds(self):
        moments = service_difference.moments(600.0)
        assert len(moments) == 19
        assert (moments[0], moments[-1]) == pytest.approx((58.5, 571.5))


class TestAccumulated:
    @given(served)
    @settings(max_examples=100, deadline=None)
    def test_it_is_the_definition(self, requests):
        assert service_difference.accumulated(requests, AT) == pytest.approx(
            accumulated_by_definition(requests), abs=1e-9
        )

    def test_the_comparison_catches_service_that_counts_before_it_came(self):
        def disagrees(requests: Sequence[Served]) -> bool:
            early = [replace(request, ended=request.begun) for request in requests]
            found = service_difference.accumulated(early, AT)
            return found != pytest.approx(accumulated_by_definition(requests), abs=1e-9)

        assert find(served, disagrees, settings=settings(max_examples=2000, database=None, phases=[Phase.generate]))
