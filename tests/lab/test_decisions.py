"""A decision log is read whole or refused, with the file and the line."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import lab_pool

from fairpool_gateway.cost import Used
from fairpool_gateway.decision_log import Arrive, Complete, DecisionLog, Dispatch, Header, Remove, Reset, Weight
from fairpool_gateway.sfq import Decision
from fairpool_lab import decisions
from fairpool_lab.errors import LogInvalid
from fairpool_lab.traces import TraceRequest

Q = 1 << 32
HEADER = b'{"event":"header","q":4294967296,"pool":"p","default_weight":1,"weights":{"a":2}}\n'
ARRIVE = b'{"event":"arrive","seq":0,"t":1.0,"tenant":"a","weight":2,"request":"r","cost":6}\n'
DISPATCH = (
    b'{"event":"dispatch","seq":1,"t":2.0,"tenant":"a","weight":2,"request":"r","cost":6,'
    b'"charge":12884901888,"start_tag":0,"v":0,"endpoint":"e"}\n'
)
WHOLE = [HEADER, ARRIVE, DISPATCH]


def problem(*lines: bytes) -> tuple[int | None, str]:
    with pytest.raises(LogInvalid) as raised:
        decisions.read(lines)
    return raised.value.line, raised.value.problem


class TestReading:
    def test_what_the_gateway_writes_is_read_back(self):
        lines: list[bytes] = []
        log = DecisionLog(lines.append, pool="p", weights={"a": 2}, default_weight=1)
        far = 1 << 80
        log.arrive(1.0, "a", 2, "r1", 6)
        log.arrive(1.0, "b", 1, "r2", 1)
        log.dispatch(2.0, Decision("a", "r1", 2, 6, 3 * Q, far), "r1", far, "e")
        log.remove(3.0, "b", "r2")
        log.complete(4.0, "a", "r1", "e", Used(2, 2))
        log.weight(5.0, None, 3)
        log.reset(6.0, far + 3 * Q)
        read = decisions.read(lines)
        assert read.header == Header(q=Q, pool="p", default_weight=1, weights={"a": 2})
        assert read.events == (
            Arrive(0, 1.0, "a", 2, "r1", 6),
            Arrive(1, 1.0, "b", 1, "r2", 1),
            Dispatch(2, 2.0, "a", 2, "r1", 6, 3 * Q, far, far, "e"),
            Remove(3, 3.0, "b", "r2"),
            Complete(4, 4.0, "a", "r1", "e", Used(2, 2)),
            Weight(5, 5.0, None, 3),
            Reset(6, 6.0, far + 3 * Q),
        )

    def test_a_file_is_read_like_its_lines(self, tmp_path):
        path = tmp_path / "log.jsonl"
        path.write_bytes(b"".join(WHOLE))
        assert decisions.read(path) == decisions.read(WHOLE)

    def test_events_are_read_as_they_pass(self):
        def endless():
            yield from WHOLE
            raise AssertionError("read ahead")

        _, events = decisions.stream(endless())
        assert [next(events).seq, next(events).seq] == [0, 1]

    def test_a_request_may_come_back_under_the_same_name_once_it_left(self):
        again = ARRIVE.replace(b'"seq":0', b'"seq":2')
        assert len(decisions.read([*WHOLE, again]).events) == 3

    def test_fields_of_later_versions_are_ignored(self):
        assert decisions.read([HEADER, ARRIVE.replace(b"{", b'{"later":[1],')]) == decisions.read(WHOLE[:2])


class TestRefusing:
    def test_a_missing_file(self, tmp_path):
        with pytest.raises(LogInvalid, match=r"none\.jsonl: cannot be read: No such file"):
            decisions.read(tmp_path / "none.jsonl")

    def test_the_message_names_file_and_line(self, tmp_path):
        path = tmp_path / "log.jsonl"
        path.write_bytes(HEADER + b"?\n")
        with pytest.raises(LogInvalid, match=r"log\.jsonl:2: not JSON"):
            decisions.read(path)

    def test_nothing_at_all(self):
        assert problem() == (None, "is empty: a decision log starts with a header")

    def test_a_log_without_its_beginning(self):
        line, words = problem(ARRIVE)
        assert (line, "not a header" in words) == (1, True)

    def test_two_logs_in_one_file(self):
        assert problem(HEADER, HEADER) == (2, "a second header: a log holds one run")

    def test_a_log_cut_off_in_its_last_line(self):
        assert problem(HEADER, ARRIVE[:30]) == (2, "the last line is cut off: its writer was stopped")

    def test_a_line_gone_from_the_middle(self):
        line, words = problem(HEADER, DISPATCH)
        assert (line, words.startswith("event 0 is expected here, not 1")) == (2, True)

    def test_an_empty_line(self):
        line, words = problem(HEADER, b"\n", ARRIVE)
        assert (line, words.startswith("not JSON")) == (2, True)

    @pytest.mark.parametrize(
        ("before", "after", "words"),
        [
            (b'"cost":6,', b"", "missing required field `cost`"),
            (b'"tenant":"a"', b'"tenant":7', "Expected `str`, got `int`"),
            (b'"dispatch"', b'"launch"', "Invalid value 'launch'"),
            (b'"charge":12884901888', b'"charge":12884901888.0', "Expected `int`, got `float`"),
            (b'"charge":12884901888', b'"charge":12884901887', "not what cost 6 and weight 2 give"),
            (b'"cost":6', b'"cost":-6', "a cost is at least 0, not -6"),
            (b'"weight":2', b'"weight":0', "a weight is 1 to 1000, not 0"),
            (b'"request":"r"', b'"request":"s"', "request s of tenant a leaves the queue but did not wait in it"),
            (b'"tenant":"a"', b'"tenant":"b"', "request r of tenant b leaves the queue but did not wait in it"),
        ],
    )
    def test_a_wrong_field(self, before, after, words):
        line, said = problem(HEADER, ARRIVE, DISPATCH.replace(before, after))
        assert line == 3
        assert words in said

    def test_an_arrival_of_what_waits_already(self):
        line, words = problem(HEADER, ARRIVE, ARRIVE.replace(b'"seq":0', b'"seq":1'))
        assert (line, words) == (3, "request r arrives but waits already")

    @pytest.mark.parametrize(("before", "after"), [(b":4294967296", b":0"), (b'"a":2', b'"a":1001')])
    def test_a_header_that_makes_no_sense(self, before, after):
        assert problem(HEADER.replace(before, after))[0] == 1

    @given(st.integers(0, 2000), st.binary(max_size=4))
    def test_damage_is_read_or_refused_and_nothing_else(self, place, damage):
        trace = [TraceRequest(float(number), "ab"[number % 2], 5, 5) for number in range(4)]
        whole = b"".join(lab_pool.run(trace, weights={}))
        place %= len(whole)
        damaged = whole[:place] + damage + whole[place + len(damage) :]
        with contextlib.suppress(LogInvalid):
            decisions.read(damaged.splitlines(keepends=True))

    def test_the_message_holds_no_more_of_the_line_than_it_must(self):
        _, words = problem(HEADER, msgspec.json.encode({"event": "arrive", "tenant": "x" * 10_000}) + b"\n")
        assert len(words) < 200
