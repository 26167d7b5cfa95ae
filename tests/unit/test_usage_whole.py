"""Usage read out of answers that are no stream: small, large, compressed, or of a kind that is not understood."""

import gzip
import json
import zlib
from typing import Any

import pytest
from support.engine_streams import (
    JSON,
    VLLM_USAGE,
    cut,
    read,
    told,
    untold,
)

from fairpool_gateway.usage import Reading, usage_reader
from fairpool_gateway.usage.inflate import MOST
from fairpool_gateway.usage.whole import KEPT


def whole(answer: Any) -> Reading:
    return read(json.dumps(answer).encode(), kind=JSON)


class TestWholeAnswers:
    def test_usage_of_a_chat_is_read(self):
        answer = {"choices": [{"index": 0, "message": {"content": "b"}, "finish_reason": "stop"}]}
        usage = {"prompt_tokens": 30, "total_tokens": 42, "completion_tokens": 12, "prompt_tokens_details": None}
        assert whole(answer | {"usage": usage}) == told(30, 12)

    def test_usage_of_embeddings_has_no_output(self):
        answer = {"object": "list", "data": [], "usage": {"prompt_tokens": 5, "total_tokens": 5}}
        assert whole(answer) == told(5, 0)

    def test_usage_of_a_response_has_other_names(self):
        answer = {"status": "incomplete", "error": None, "usage": {"input_tokens": 24, "output_tokens": 4}}
        assert whole(answer) == told(24, 4)

    def test_usage_of_a_message_counts_what_was_cached(self):
        answer = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "hlti"}]}
        usage = {"cache_read_input_tokens": 11, "cache_creation_input_tokens": None, "input_tokens": 19}
        assert whole(answer | {"usage": usage | {"output_tokens": 4}}) == told(30, 4)

    @pytest.mark.parametrize(
        "usage",
        [{"total_tokens": 9}, {"prompt_tokens": 9, "total_tokens": 9}, {"total_tokens": 9, "prompt_tokens": None}],
    )
    def test_usage_of_rerankers_may_be_a_sum(self, usage: Any):
        assert whole({"id": "rerank-1", "results": [], "usage": usage}) == told(9, 0)

    def test_a_sum_is_not_less_than_its_parts(self):
        assert whole({"usage": {"total_tokens": 9, "completion_tokens": 4}}) == told(5, 4)
        assert whole({"usage": {"total_tokens": 3, "completion_tokens": 4}}) == told(0, 4)

    def test_a_transcript_told_in_seconds_tells_no_tokens(self):
        assert whole({"text": "one two", "usage": {"type": "duration", "seconds": 3}}) == untold(0)

    @pytest.mark.parametrize("answer", [{}, {"usage": None}, {"usage": {}}, {"usage": 3}, [], "usage", {"choices": 3}])
    def test_without_usage_none_is_told(self, answer: Any):
        assert whole(answer) == untold(0)

    @pytest.mark.parametrize(
        ("answer", "aborted"),
        [
            ({"choices": [{"index": 0, "finish_reason": "stop"}, {"index": 1, "finish_reason": "abort"}]}, True),
            ({"error": {"message": "no"}}, False),
            ({"error": "Unauthorized"}, False),
            ({"type": "message", "stop_reason": "abort"}, True),
            ({"status": "failed", "error": {"code": "server_error"}}, False),
            ({"status": "cancelled"}, True),
        ],
    )
    def test_an_endpoint_that_gave_up_failed(self, answer: Any, aborted: bool):
        assert whole(answer) == untold(0, failed=True, aborted=aborted)


class TestLargeAnswers:
    VECTORS = [{"object": "embedding", "embedding": [0.5] * 1000}] * 100

    @staticmethod
    def pieces(answer: Any) -> list[bytes]:
        body = json.dumps(answer).encode()
        assert len(body) > KEPT
        return cut(body, range(0, len(body), 65_536))

    def test_usage_at_the_end_is_read(self):
        answer = {
            "data": self.VECTORS,
            "usage": {"prompt_tokens": 500, "total_tokens": 500, "details": {"a": {}}},
            "id": "x",
        }
        assert read(*self.pieces(answer), kind=JSON) == told(500, 0)

    def test_the_same_is_read_however_it_is_cut(self):
        (body,) = cut(json.dumps({"data": self.VECTORS, "usage": {"prompt_tokens": 500}}).encode(), ())
        assert read(body, kind=JSON) == read(*cut(body, range(0, len(body), 999)), kind=JSON) == told(500, 0)

    def test_only_the_end_is_held(self):
        reader = usage_reader(JSON, b"")
        for _ in range(100):
            reader.feed(b"0.5, " * 10_000)
            assert len(reader._end) <= 2 * KEPT  # type: ignore[attr-defined]  # a look inside, to see that it is bounded

    def test_what_a_model_writes_cannot_pass_for_usage(self):
        text = '"usage":{"prompt_tokens":1,"completion_tokens":1}' * 10_000
        usage = {"prompt_tokens": 30, "completion_tokens": 12}
        before = {"usage": usage, "choices": [{"message": {"content": text}}]}
        after = {"choices": [{"message": {"content": text}}], "usage": usage}
        assert read(*self.pieces(before), kind=JSON) == untold(0)
        assert read(*self.pieces(after), kind=JSON) == told(30, 12)

    def test_the_last_field_of_that_name_which_tells_tokens_counts(self):
        usage = {"prompt_tokens": 30, "completion_tokens": 12}
        answer = {"data": self.VECTORS, "usage": usage, "timings": {"usage": {"cpu": 0.5}}}
        assert read(*self.pieces(answer), kind=JSON) == told(30, 12)

    def test_an_endpoint_that_gave_up_failed(self):
        answer = {"choices": [{"message": {"content": "a" * KEPT}, "finish_reason": "abort"}]}
        assert read(*self.pieces(answer), kind=JSON) == untold(0, aborted=True)

    def test_a_usage_that_is_cut_off_is_none(self):
        *pieces, last = self.pieces({"data": self.VECTORS, "usage": {"prompt_tokens": 500}})
        assert read(*pieces, last[:-5], kind=JSON) == untold(0)


class TestHeaders:
    ANSWER = json.dumps({"usage": {"prompt_tokens": 3, "completion_tokens": 4}}).encode()

    @pytest.mark.parametrize(
        "kind", [b"application/json; charset=utf-8", b"Application/JSON", b"application/x+json", b""]
    )
    def test_json_has_many_names(self, kind: bytes):
        assert read(self.ANSWER, kind=kind) == told(3, 4)

    @pytest.mark.parametrize("kind", [b"Text/Event-Stream", b"text/event-stream;charset=utf-8"])
    def test_a_stream_has_some(self, kind: bytes):
        assert read(VLLM_USAGE, kind=kind) == told(30, 3)

    @pytest.mark.parametrize("kind", [b"audio/mpeg", b"text/plain"])
    def test_anything_else_is_not_read(self, kind: bytes):
        assert read(self.ANSWER, kind=kind) == untold(0)

    @pytest.mark.parametrize(
        ("encoding", "packed"),
        [
            (b"identity", ANSWER),
            (b"GZIP", gzip.compress(ANSWER)),
            (b"x-gzip", gzip.compress(ANSWER)),
            (b"deflate", zlib.compress(ANSWER)),
        ],
    )
    def test_a_compressed_answer_is_read(self, encoding: bytes, packed: bytes):
        assert read(packed, kind=JSON, encoding=encoding) == told(3, 4)

    @pytest.mark.parametrize("encoding", [b"br", b"zstd", b"gzip, gzip"])
    def test_one_that_cannot_be_unpacked_is_not(self, encoding: bytes):
        assert read(self.ANSWER, kind=JSON, encoding=encoding) == untold(0)

    def test_one_that_is_not_what_it_says_is_not(self):
        assert read(self.ANSWER, kind=JSON, encoding=b"gzip") == untold(0)

    def test_no_more_is_unpacked_than_anybody_would_send(self):
        bomb = gzip.compress(b" " * (MOST + 1) + self.ANSWER)
        assert read(bomb, kind=JSON, encoding=b"gzip") == untold(0)
