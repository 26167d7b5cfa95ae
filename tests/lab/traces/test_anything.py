"""Whatever a file holds, it is read or refused with a message, and never ends a command in another way."""

from __future__ import annotations

import contextlib
import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.vllm_logs import answered

from fairpool_lab import traces
from fairpool_lab.errors import TraceInvalid

HEADER = '{"event":"header","q":4294967296,"pool":"p","default_weight":1,"weights":{}}'
ROW = {"arrival_s": 1, "tenant": "a", "input_tokens": 2, "output_tokens": 3, "max_tokens": 4, "hash_ids": [1]}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)
beginnings = st.sampled_from(["arrival_s,tenant,input_tokens,output_tokens", HEADER, "{", "", *answered("chatcmpl-1")])
lines = st.tuples(beginnings, st.lists(st.text(max_size=20), max_size=4)).map(lambda found: [found[0], *found[1]])


def read_or_refused(found: list[str]) -> None:
    with contextlib.suppress(TraceInvalid):
        assert traces.parse([f"{line}\n" for line in found])


@given(lines)
@settings(deadline=None)
def test_any_lines(found):
    read_or_refused(found)


@given(st.sampled_from(sorted(ROW)), anything)
@settings(deadline=None)
def test_any_value_in_any_column(column, value):
    read_or_refused([json.dumps(ROW | {column: value})])


@given(st.integers(0, 400), st.binary(max_size=3))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_log_that_is_damaged_somewhere(place, damage):
    log = "".join(answered("chatcmpl-1"))
    read_or_refused([log[:place] + damage.decode(errors="replace") + log[place + 3 :]])


@pytest.mark.parametrize("compressed", [False, True])
def test_any_bytes(tmp_path, compressed):
    @given(st.binary(max_size=60))
    @settings(deadline=None)
    def check(content):
        path = tmp_path / "trace"
        path.write_bytes(gzip.compress(b"{" + content)[: 10 + len(content)] if compressed else content)
        with contextlib.suppress(TraceInvalid):
            traces.read(path)

    check()
