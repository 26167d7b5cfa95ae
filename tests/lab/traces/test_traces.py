"""A trace is read or refused with file and line; the busiest stretch and the weights follow from it alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool_lab import traces
from fairpool_lab.errors import TraceInvalid
from fairpool_lab.traces import TraceRequest

COLUMNS = "arrival_s,client,input_tokens,output_tokens\n"

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


class TestReading:
    def test_columns_may_come_in_any_order_and_with_others(self):
        lines = ["client,arrival_s,note,output_tokens,input_tokens\n", "a,0.5,x,3,2\n", "b, 1,,5, 4\n"]
        assert traces.parse(lines) == (TraceRequest(0.5, "a", 2, 3), TraceRequest(1.0, "b", 4, 5))

    @pytest.mark.parametrize(
        ("rows", "line", "words"),
        [
            (["0,a,1,2", "1,a,-1,2"], 3, "input_tokens is a whole number of tokens from 0 on, not '-1'"),
            (["0,a,1,2.5"], 2, "output_tokens is a whole number of tokens from 0 on, not '2.5'"),
            (["0,a,1,"], 2, "output_tokens is a whole number of tokens from 0 on, not ''"),
            (["soon,a,1,2"], 2, "arrival_s is a number of seconds from 0 on, not 'soon'"),
            (["-1,a,1,2"], 2, "arrival_s is a number of seconds from 0 on, not '-1'"),
            (["nan,a,1,2"], 2, "arrival_s is a number of seconds from 0 on, not 'nan'"),
            (["inf,a,1,2"], 2, "arrival_s is a number of seconds from 0 on, not 'inf'"),
            (["2,a,1,2", "1,a,1,2"], 3, "arrival_s goes back from 2 to 1"),
            (["0,,1,2"], 2, "client is empty"),
            (["0,a,1"], 2, "3 fields under 4 columns"),
            (["0,a,1,2,3"], 2, "5 fields under 4 columns"),
            (['0,"a,1,2'], 2, "not CSV: unexpected end of data"),
            ([], None, "holds no request"),
        ],
    )
    def test_a_trace_that_makes_no_sense_is_refused(self, rows, line, words):
        with pytest.raises(TraceInvalid) as raised:
            traces.parse([COLUMNS, *(f"{row}\n" for row in rows)])
        assert (raised.value.line, raised.value.problem) == (line, words)

    def test_a_missing_column_is_named(self):
        with pytest.raises(TraceInvalid, match=r"trace:1: the column client is missing; a trace has arrival_s, client"):
            traces.parse(["arrival_s,tenant,input_tokens,output_tokens\n"])

    def test_an_empty_file_is_refused(self, tmp_path):
        path = tmp_path / "empty.csv"
        path.touch()
        with pytest.raises(TraceInvalid, match=r"empty\.csv: the column arrival_s is missing"):
            traces.read(path)

    def test_a_missing_file_is_refused(self, tmp_path):
        with pytest.raises(TraceInvalid, match=r"none\.csv: cannot be read: No such file"):
            traces.read(tmp_path / "none.csv")

    def test_what_is_not_text_is_refused(self, tmp_path):
        path = tmp_path / "log.csv"
        path.write_bytes(COLUMNS.encode() + b"0,\xff,1,2\n")
        with pytest.raises(TraceInvalid, match=r"log\.csv.* not text in UTF-8"):
            traces.read(path)


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
