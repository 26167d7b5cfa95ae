"""The busiest stretch of a trace and the weights of its tenants follow from it alone; and the excerpt that we have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairpool_lab import traces
from fairpool_lab.traces import TraceRequest

requests = st.lists(
    st.builds(
        TraceRequest,
        arrival=st.integers(0, 40).map(float),
        tenant=st.sampled_from("abcdefg"),
        input_tokens=st.integers(0, 9),
        output_tokens=st.integers(1, 9),
    ),
    max_size=20,
).map(lambda found: sorted(found, key=lambda request: request.arrival))


class TestBusiest:
    @given(requests, st.integers(1, 20))
    def test_no_stretch_asks_for_more(self, trace, seconds):
        def within(begin: float) -> list[TraceRequest]:
            return [request for request in trace if begin <= request.arrival < begin + seconds]

        def tokens(found):
            return sum(request.tokens for request in found)

        best = traces.busiest(trace, seconds)
        assert tokens(best) == max((tokens(within(request.arrival)) for request in trace), default=0)
        assert all(0 <= request.arrival < seconds for request in best)
        assert not best or best[0].arrival == 0

    def test_the_earliest_of_several_counts(self):
        trace = [TraceRequest(float(second), "ab"[second // 10], 1, 1) for second in (0, 1, 10, 11)]
        assert {request.tenant for request in traces.busiest(trace, 5)} == {"a"}


class TestWeights:
    def test_they_go_round_by_demand_and_then_by_name(self):
        trace = [TraceRequest(0.0, tenant, tokens, 0) for tenant, tokens in zip("abcde", (5, 9, 5, 1, 7), strict=True)]
        assert traces.weights(trace) == {"b": 4, "e": 2, "a": 1, "c": 4, "d": 2}

    @given(requests)
    def test_every_tenant_has_one_whatever_the_order_of_requests(self, trace):
        assert traces.weights(trace) == traces.weights(reversed(trace))
        assert traces.weights(trace).keys() == {request.tenant for request in trace}


class TestExcerpt:
    def test_it_is_one_stretch_of_four_minutes_with_many_tenants(self):
        trace = traces.read(traces.EXCERPT)
        assert len(traces.busiest(trace, 240)) == len(trace) == 661
        assert set(traces.weights(trace).values()) == {1, 2, 4}
        assert len({request.tenant for request in trace}) == 20

    def test_its_source_and_licence_are_said_beside_it(self):
        said = (traces.EXCERPT.parent / "README.md").read_text(encoding="utf-8")
        assert all(words in said for words in (traces.EXCERPT.name, "Ying1123/VTC-artifact", "192c2e2", "Apache-2.0"))
        assert traces.EXCERPT.stat().st_size < 30_000
