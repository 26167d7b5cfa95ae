"""A table is recognised by its columns and read row by row, or refused with the file and the line."""

from __future__ import annotations

import gzip
import json
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool_lab import traces
from fairpool_lab.errors import OptionInvalid, TraceInvalid
from fairpool_lab.traces import TraceRequest, reading

COLUMNS = "arrival_s,client,input_tokens,output_tokens\n"
READ = (TraceRequest(0.5, "a", 2, 3), TraceRequest(1.0, "b", 4, 5))

trace_requests = st.lists(
    st.builds(
        TraceRequest,
        arrival=st.integers(0, 10**6).map(lambda ms: ms / 1000),
        tenant=st.text("ab-'é世 ", min_size=1),
        input_tokens=st.integers(0, 10**6),
        output_tokens=st.integers(0, 10**6),
        max_tokens=st.none() | st.integers(0, 10**6),
        prefix=st.lists(st.integers(0, 99), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=5,
).map(lambda found: tuple(sorted(found, key=lambda request: request.arrival)))


def refusal(lines: list[str], **how) -> tuple[int | None, str]:
    with pytest.raises(TraceInvalid) as raised:
        traces.parse(lines, **how)
    return raised.value.line, raised.value.problem


class TestRecognised:
    @pytest.mark.parametrize(
        "lines",
        [
            ["client,arrival_s,note,output_tokens,input_tokens\n", "a,0.5,x,3,2\n", "\n", "b, 1,,5, 4\n"],
            ["tenant,arrival_s,output_tokens,input_tokens,hash_ids\n", "a,0.5,3,2,[7]\n", "b,1,5,4,\n"],
            [
                '{"arrival_s": 0.5, "tenant": "a", "input_tokens": 2, "output_tokens": 3}\n',
                "\n",
                '{"arrival_s": 1, "tenant": "b", "output_tokens": 5, "input_tokens": 4, "note": null}\n',
            ],
        ],
        ids=["csv, client", "csv, tenant", "json lines"],
    )
    def test_columns_may_come_in_any_order_and_with_others(self, lines):
        assert traces.parse(lines) == READ

    def test_azures_dates_count_from_the_first_and_all_requests_are_one_tenants(self):
        lines = [
            "TIMESTAMP,ContextTokens,GeneratedTokens\n",
            "2023-11-16 18:15:46.6805900,374,44\n",
            "2023-11-16 18:15:50.9951690,396,109",
        ]
        first, second = traces.parse(lines)
        assert first == TraceRequest(0.0, "all", 374, 44)
        assert second.arrival == pytest.approx(4.314579, abs=1e-6)

    def test_mooncakes_times_are_milliseconds_and_its_blocks_are_kept(self):
        lines = ['{"timestamp": 1500, "input_length": 6758, "output_length": 500, "hash_ids": [0, 14]}\n']
        assert traces.parse(lines) == (TraceRequest(1.5, "all", 6758, 500, None, (0, 14)),)

    def test_one_may_name_ones_own_columns(self):
        lines = ["when,user,in,out\n", "500,a,2,3\n", "1000,b,4,5\n"]
        assert traces.parse(lines, columns=traces.named(traces.layout.EXAMPLE)) == READ
        assert traces.parse(lines, columns=traces.named("arrival=when,tenant=,input_tokens=in,output_tokens=out")) == (
            TraceRequest(500.0, "all", 2, 3),
            TraceRequest(1000.0, "all", 4, 5),
        )

    @pytest.mark.parametrize("option", ["when", "arrival=", "when=arrival", ""])
    def test_a_mistake_in_naming_them_is_said(self, option):
        with pytest.raises(OptionInvalid, match="--columns: "):
            traces.named(option)

    def test_tables_of_our_own_sources_are_listed_with_them(self):
        said = [source for _, source in traces.FORMATS]
        assert all(any(name in source for source in said) for name in ("Azure", "Mooncake", "ServeGen", "VTC", "vLLM"))

    @given(trace_requests)
    def test_what_is_written_as_json_lines_is_read_back(self, trace):
        lines = [
            json.dumps(
                {
                    "arrival_s": request.arrival,
                    "tenant": request.tenant,
                    "input_tokens": request.input_tokens,
                    "output_tokens": request.output_tokens,
                    "max_tokens": request.max_tokens,
                    "hash_ids": request.prefix,
                }
            )
            for request in trace
        ]
        assert traces.parse(lines) == trace


class TestRefused:
    TOKENS = "a whole number of tokens from 0 to 1,000,000,000, not"
    SECONDS = "a number of seconds from 0 on, or a date with a time, not"

    @pytest.mark.parametrize(
        ("rows", "line", "words"),
        [
            (["0,a,1,2", "1,a,-1,2"], 3, f"input_tokens is {TOKENS} '-1'"),
            (["0,a,1,2.5"], 2, f"output_tokens is {TOKENS} '2.5'"),
            (["0,a,1,"], 2, f"output_tokens is {TOKENS} ''"),
            (["0,a,1,99999999999"], 2, f"output_tokens is {TOKENS} '99999999999'"),
            (["soon,a,1,2"], 2, f"arrival_s is {SECONDS} 'soon'"),
            (["-1,a,1,2"], 2, f"arrival_s is {SECONDS} '-1'"),
            (["nan,a,1,2"], 2, f"arrival_s is {SECONDS} 'nan'"),
            (["inf,a,1,2"], 2, f"arrival_s is {SECONDS} 'inf'"),
            (["2,a,1,2", "1,a,1,2"], 3, "arrives at 1 s, but the one before it at 2 s: sort by arrival"),
            (["0,,1,2"], 2, "client is empty"),
            (["0,a,1"], 2, "3 fields under 4 columns"),
            (["0,a,1,2,3"], 2, "5 fields under 4 columns"),
            (['0,"a,1,2'], 2, "not CSV: unexpected end of data"),
            ([], None, "holds no request"),
        ],
    )
    def test_a_row_of_csv_that_makes_no_sense(self, rows, line, words):
        assert refusal([COLUMNS, *(f"{row}\n" for row in rows)]) == (line, words)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"input_tokens": True}, f"input_tokens is {TOKENS} True"),
            ({"input_tokens": None}, "input_tokens is missing"),
            ({"output_tokens": 1.5}, f"output_tokens is {TOKENS} 1.5"),
            ({"tenant": ["a"]}, "tenant is a name, not ['a']"),
            ({"max_tokens": [1]}, f"max_tokens is {TOKENS} [1]"),
            ({"arrival_s": [1]}, f"arrival_s is {SECONDS} [1]"),
            ({"arrival_s": 10**400}, f"arrival_s is {SECONDS} 1000"),
            ({"arrival_s": False}, f"arrival_s is {SECONDS} False"),
            ({"hash_ids": [1, "x"]}, "hash_ids is a list of whole numbers, one for each block of the prompt"),
        ],
    )
    def test_a_row_of_json_that_makes_no_sense(self, change, words):
        row = {"arrival_s": 1, "tenant": "a", "input_tokens": 2, "output_tokens": 3}
        line, problem = refusal([json.dumps(row), json.dumps(row | change)])
        assert line == 2
        assert problem.startswith(words)

    def test_a_message_quotes_no_whole_prompt(self):
        line, problem = refusal([COLUMNS, f"0,a,{'tell me of it ' * 99},2\n"])
        assert line == 2
        assert len(problem) < 160
        assert problem.endswith("…")

    def test_what_is_no_json_object(self):
        assert refusal(['{"arrival_s": 1']) == (1, "not a JSON object on a line of its own: Input data was truncated")

    def test_columns_that_nobody_knows_are_named_with_what_there_should_be(self):
        line, problem = refusal([",".join(f"c{number}" for number in range(99))])
        assert line == 1
        assert problem.startswith("its columns are c0, c1, ")
        assert (
            "c11, …; a trace has arrival_s, tenant, input_tokens, output_tokens, or other names, which --colu"
            in problem
        )

    @pytest.mark.parametrize("column", ["client", "max_tokens"])
    def test_a_column_that_is_there_twice(self, column):
        assert refusal([f"{COLUMNS.strip()},max_tokens,{column}\n", "0,a,1,1,9,9\n"]) == (
            1,
            f"the column {column} is there twice, and only one of them can be meant",
        )

    def test_one_that_is_not_read_may_be_there_twice(self):
        assert traces.parse([f"{COLUMNS.strip()},note,note\n", "0,a,1,1,x,y\n"]) == (TraceRequest(0.0, "a", 1, 1),)

    def test_a_column_of_ones_own_that_is_not_there(self):
        assert refusal([COLUMNS, "0,a,1,2\n"], columns=traces.named("tenant=team")) == (
            1,
            "the column team is missing: its columns are arrival_s, client, input_tokens, output_tokens",
        )

    def test_a_million_tenants(self):
        rows = (f"0,{number},1,1\n" for number in range(1_000_000))
        assert refusal([COLUMNS, *islice(rows, 10_001)]) == (
            10_002,
            "more than 10,000 tenants: this column names requests or users, not tenants",
        )


class TestFiles:
    def written(self, directory: Path, content: bytes) -> Path:
        path = directory / "trace.csv"
        path.write_bytes(content)
        return path

    def test_a_compressed_file_is_read_as_it_is_and_so_is_one_of_a_spreadsheet(self, tmp_path):
        table = f"{COLUMNS}0.5,a,2,3\n1,b,4,5\n".encode()
        assert traces.read(self.written(tmp_path, gzip.compress(table))) == READ
        assert traces.read(self.written(tmp_path, b"\xef\xbb\xbf" + table.replace(b"\n", b"\r\n"))) == READ

    def test_a_file_is_read_as_it_passes(self, tmp_path):
        path = self.written(tmp_path, COLUMNS.encode() + b"0,a,1,2\n" * 20_000 + b"broken\n")
        assert list(islice(traces.stream(path), 3)) == [TraceRequest(0.0, "a", 1, 2)] * 3
        with pytest.raises(TraceInvalid, match=r"trace\.csv:20002: 1 fields under 4 columns"):
            traces.read(path)

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", r"trace\.csv: it names no columns"),
            (COLUMNS.encode() + b"0,\xff,1,2\n", r"trace\.csv: is not text in UTF-8"),
            (gzip.compress(COLUMNS.encode() + b"0,a,1,2\n")[:-9], r"trace\.csv: its compression is broken or cut off"),
            (b"\x1f\x8b\x08no such thing", r"trace\.csv: its compression is broken or cut off"),
        ],
        ids=["empty", "not text", "cut off", "not gzip"],
    )
    def test_a_file_that_cannot_be_used_is_refused(self, tmp_path, content, words):
        with pytest.raises(TraceInvalid, match=words):
            traces.read(self.written(tmp_path, content))

    def test_a_missing_file_is_refused(self, tmp_path):
        with pytest.raises(TraceInvalid, match=r"none\.csv: cannot be read: No such file"):
            traces.read(tmp_path / "none.csv")

    def test_the_limit_on_tenants_is_that_of_no_pool(self):
        assert reading.MOST_TENANTS == 10_000
