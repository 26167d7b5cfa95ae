"""Usage read out of streams as engines give them, wherever their bytes are cut, and whatever they hold."""

import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine_streams import (
    DONE,
    JSON,
    LLAMA_COMPLETIONS,
    LLAMA_MESSAGES,
    LLAMA_TWO,
    RESPONSES,
    SSE,
    TRANSCRIPT,
    VLLM_CHAT,
    VLLM_CONTINUOUS,
    VLLM_MESSAGES,
    VLLM_TWO,
    VLLM_USAGE,
    cut,
    event,
    read,
    told,
    untold,
)

from fairpool_gateway.usage import UsageReader
from fairpool_gateway.usage.sse import LONGEST, EventSplitter
from fairpool_gateway.usage.stream import StreamReader


class TestStreams:
    def test_usage_after_the_last_choice_is_read(self):
        assert read(VLLM_CHAT + VLLM_USAGE + DONE) == told(30, 3, events=2)

    def test_without_usage_the_events_with_content_are_counted(self):
        assert read(VLLM_CHAT + DONE) == untold(2)

    def test_usage_so_far_is_read_for_each_choice_and_the_last_of_it_counts(self):
        assert read(VLLM_CONTINUOUS) == told(30, 5, events=3)

    def test_usage_for_all_goes_before_usage_so_far(self):
        assert read(VLLM_CONTINUOUS + VLLM_USAGE + DONE) == told(30, 3, events=3)

    def test_one_usage_for_two_choices_is_for_both(self):
        assert read(VLLM_TWO) == told(30, 4, events=2)

    def test_a_usage_after_each_choice_is_added_up_and_the_prompt_is_read_once(self):
        assert read(LLAMA_TWO) == told(30, 4, events=3)

    def test_usage_told_twice_for_one_choice_is_not_added_up(self):
        assert read(VLLM_CHAT + VLLM_USAGE * 2 + DONE) == told(30, 3, events=2)

    def test_usage_in_the_last_event_of_a_text_completion_is_read(self):
        assert read(LLAMA_COMPLETIONS) == told(5, 3, events=2)

    def test_usage_inside_a_completed_response_is_read(self):
        assert read(RESPONSES) == told(24, 3, events=2)

    def test_usage_of_a_message_is_read_from_its_end(self):
        assert read(VLLM_MESSAGES) == told(30, 2, events=2)

    def test_and_where_its_end_tells_only_half_from_its_start_with_what_was_cached(self):
        assert read(LLAMA_MESSAGES) == told(30, 2, events=2)

    def test_what_was_cached_counts_though_its_end_leaves_it_out(self):
        end = b'"usage":{"input_tokens":1,"output_tokens":2}'
        assert read(LLAMA_MESSAGES.replace(b'"usage":{"output_tokens":2}', end)) == told(30, 2, events=2)

    def test_a_message_without_an_end_tells_nothing(self):
        start, _, _ = VLLM_MESSAGES.partition(b"event: message_delta")
        assert read(start) == untold(2)

    def test_usage_of_a_transcript_is_read_in_both_forms(self):
        assert read(TRANSCRIPT) == told(14, 45, events=2)
        assert read(VLLM_CHAT + VLLM_USAGE + DONE) == told(30, 3, events=2)

    @pytest.mark.parametrize(
        "delta",
        [
            {"type": "text_delta", "text": "a"},
            {"type": "thinking_delta", "thinking": "a"},
            {"type": "input_json_delta", "partial_json": "{"},
        ],
    )
    def test_whatever_a_message_can_say_counts_as_content(self, delta: Any):
        assert read(event({"type": "content_block_delta", "index": 0, "delta": delta})).events == 1

    @pytest.mark.parametrize("delta", [None, {}, {"type": "text_delta", "text": ""}, {"signature": "a"}, "a", ["a"]])
    def test_an_empty_piece_of_one_does_not(self, delta: Any):
        assert read(event({"type": "content_block_delta", "index": 0, "delta": delta})).events == 0

    @pytest.mark.parametrize(("reason", "aborted"), [("abort", True), ("error", False)])
    def test_a_message_that_its_endpoint_gave_up_failed(self, reason: str, aborted: bool):
        answer = VLLM_MESSAGES.replace(b'"stop_reason":"max_tokens"', f'"stop_reason":"{reason}"'.encode())
        assert read(answer) == told(30, 2, events=2, failed=True, aborted=aborted)

    @pytest.mark.parametrize(
        "delta",
        [
            {"content": "a"},
            {"content": [{"type": "text", "text": "a"}]},
            {"reasoning_content": "a"},
            {"reasoning": "a"},
            {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
            {"refusal": "a"},
            {"content": "", "reasoning_content": "a"},
        ],
    )
    def test_whatever_a_model_can_say_counts_as_content(self, delta: Any):
        assert read(event({"choices": [{"index": 0, "delta": delta}]})).events == 1

    @pytest.mark.parametrize(
        "delta", [{}, None, {"role": "assistant"}, {"content": ""}, {"content": None, "tool_calls": []}]
    )
    def test_an_empty_event_does_not(self, delta: Any):
        assert read(event({"choices": [{"index": 0, "delta": delta}]})).events == 0

    def test_what_a_model_writes_cannot_pass_for_usage(self):
        text = '"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\ndata: {"usage":{"prompt_tokens":1}}'
        assert read(event({"choices": [{"index": 0, "delta": {"content": text}}]})) == untold(1)

    @pytest.mark.parametrize(("reason", "aborted"), [("abort", True), ("error", False), ("cancelled", True)])
    def test_an_endpoint_that_gave_up_failed(self, reason: str, aborted: bool):
        answer = VLLM_CHAT.replace(b'"length"', f'"{reason}"'.encode()) + VLLM_USAGE + DONE
        assert read(answer) == told(30, 3, events=2, failed=True, aborted=aborted)

    def test_one_choice_that_was_given_up_is_enough(self):
        answer = VLLM_TWO.replace(b'"length"', b'"abort"', 1) + DONE
        assert read(answer) == told(30, 4, events=2, aborted=True)

    @pytest.mark.parametrize(
        "data",
        [
            {"error": {"message": "EngineCore died", "type": "InternalServerError", "code": 500}},
            {"error": "died"},
            {"type": "error", "message": "died"},
            {"type": "error", "error": {"type": "api_error", "message": "died"}},
            {"type": "response.failed", "response": {"status": "failed", "error": {"code": "x"}}},
        ],
    )
    def test_an_error_in_an_event_is_a_failure(self, data: Any):
        assert read(event(data)) == untold(0, failed=True)

    def test_a_response_that_was_cancelled_was_given_up(self):
        cancelled = {"type": "response.cancelled", "response": {"status": "cancelled"}}
        assert read(event(cancelled)) == untold(0, aborted=True)

    @pytest.mark.parametrize(
        "odd",
        [
            {"choices": None},
            {"choices": [{"index": "0"}]},
            {"choices": [], "usage": {"prompt_tokens": -1}},
            {"choices": [], "usage": {"prompt_tokens": "30"}},
            {"choices": [], "usage": {"prompt_tokens": 10**400}},
            {"choices": [], "usage": {"completion_tokens": 3}},
            {"choices": [], "usage": [30]},
            {"choices": [{"index": 0, "delta": {"content": "half a pair: \ud83d"}}]},
            {"type": "message_start", "message": "hello"},
            {"type": "message_delta", "delta": {"stop_reason": 7}, "usage": None},
            {"type": 7},
            ["choices"],
            3,
        ],
    )
    def test_an_event_that_is_not_understood_is_skipped(self, odd: Any):
        assert read(event(odd) + VLLM_CHAT + VLLM_USAGE) == told(30, 3, events=2)

    def test_an_event_nested_without_end_is_skipped(self):
        assert read(b'data: {"usage":' + b"[" * 100_000 + b"\n\n" + VLLM_CHAT) == untold(2)


class TestFraming:
    @pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
    def test_lines_may_end_in_three_ways(self, end: bytes):
        assert read((VLLM_CHAT + VLLM_USAGE + DONE).replace(b"\n", end)) == told(30, 3, events=2)

    def test_comments_and_other_fields_are_skipped(self):
        assert read(b": keep-alive\n\n:\n\nid: 1\nevent: x\nretry: 5\n" + VLLM_USAGE) == told(30, 3)

    def test_data_of_several_lines_are_one_event(self):
        assert read(b'data: {"choices":[],\ndata: "usage":\ndata:{"prompt_tokens":30}}\n\n') == told(30, 0)

    def test_the_last_event_counts_even_if_the_stream_ends_within_it(self):
        assert read((VLLM_CHAT + VLLM_USAGE).rstrip(b"\n")) == told(30, 3, events=2)

    def test_an_event_too_long_is_skipped_and_the_next_is_read(self):
        long = event({"choices": [{"index": 0, "delta": {"content": "a" * LONGEST}}]})
        assert read(long, VLLM_CHAT) == read(*cut(long + VLLM_CHAT, range(0, len(long), 65_536))) == untold(2)

    def test_an_event_of_too_many_lines_is_skipped(self):
        assert read((b"data: " + b" " * 1000 + b"\n") * 1100 + b"\n" + VLLM_CHAT) == untold(2)

    def test_no_more_than_one_event_is_held(self):
        splitter = EventSplitter()
        for _ in range(100):
            splitter.feed(b"data: " + b"a" * 65_536)
        assert sum(map(len, splitter._line)) <= LONGEST


class CarriesNothing(StreamReader):
    """Takes each piece for whole events, as it looks on a fast network."""

    def feed(self, data: bytes) -> None:
        self._splitter = EventSplitter()
        super().feed(data)


class ForgetsCarriageReturns(EventSplitter):
    """Takes CR and LF for two ends of lines, if they come in two pieces."""

    def feed(self, data: bytes) -> list[bytes]:
        self._after_cr = False
        return super().feed(data)


def careless_about_lines() -> UsageReader:
    reader = StreamReader()
    reader._splitter = ForgetsCarriageReturns()
    return reader


UNICODE = event({"choices": [{"index": 0, "delta": {"content": "x"}}]}).replace(b'"x"', '"世界🌍"'.encode())
TWO_LINES = b'data: {"choices":[],\ndata: "usage":{"prompt_tokens":7}}\n\n'

streams = st.builds(
    lambda events, end, last: b"".join([*events, last]).replace(b"\n", end),
    st.lists(
        st.sampled_from(
            [
                *VLLM_CHAT.split(b"\n\n"),
                VLLM_USAGE,
                *LLAMA_MESSAGES.split(b"\n\n"),
                *LLAMA_TWO.split(b"\n\n"),
                DONE,
                b": ping",
                UNICODE,
                b"x",
            ]
        ).map(lambda text: text.rstrip(b"\n") + b"\n\n")
        | st.just(TWO_LINES),
        max_size=6,
    ),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.sampled_from([b"", b"data: {", VLLM_USAGE.strip(), b"data"]),
)
cut_streams = streams.flatmap(
    lambda stream: st.tuples(
        st.just(stream), st.lists(st.integers(0, len(stream)), max_size=12).map(lambda at: cut(stream, at) or [b""])
    )
)


def differs(make: Callable[[], UsageReader], stream: bytes, pieces: list[bytes]) -> bool:
    reader = make()
    for piece in pieces:
        reader.feed(piece)
    return reader.finish() != read(stream)


def sound() -> UsageReader:
    return StreamReader()


class TestHoweverItIsCut:
    @settings(max_examples=300, deadline=None)
    @given(cut_streams)
    def test_a_stream_reads_the_same(self, drawn: tuple[bytes, list[bytes]]):
        assert not differs(sound, *drawn)

    def test_even_byte_by_byte(self):
        stream = (LLAMA_TWO + UNICODE + TWO_LINES).replace(b"\n", b"\r\n")
        assert not differs(sound, stream, cut(stream, range(len(stream))))

    @pytest.mark.parametrize("broken", [CarriesNothing, careless_about_lines])
    def test_a_reader_that_carries_too_little_over_is_caught(self, broken: Callable[[], UsageReader]):
        stream = (LLAMA_TWO + UNICODE + TWO_LINES).replace(b"\n", b"\r\n")
        assert differs(broken, stream, cut(stream, range(len(stream))))

    @settings(max_examples=100, deadline=None)
    @given(cut_streams, st.sampled_from([b"gzip", b"deflate"]))
    def test_a_compressed_stream_reads_the_same(self, drawn: tuple[bytes, list[bytes]], encoding: bytes):
        stream, pieces = drawn
        packer = zlib.compressobj(wbits=31 if encoding == b"gzip" else 15)
        packed = [packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) for piece in pieces] + [packer.flush()]
        assert read(*packed, encoding=encoding) == read(stream)

    @given(st.lists(st.binary(max_size=60), max_size=5), st.sampled_from([SSE, JSON]))
    def test_whatever_comes_nothing_is_raised(self, pieces: list[bytes], kind: bytes):
        for encoding in (b"", b"gzip"):
            assert read(*pieces, kind=kind, encoding=encoding).used is None
