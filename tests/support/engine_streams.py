"""Streams as real engines answer, cut down to what matters, and the way a test reads an answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from fairpool_gateway.cost import Api, Used
from fairpool_gateway.usage import Reading, usage_reader

SSE, JSON = b"text/event-stream; charset=utf-8", b"application/json"


def read(*pieces: bytes, api: Api = Api.CHAT, kind: bytes = SSE, encoding: bytes = b"") -> Reading:
    reader = usage_reader(api, kind, encoding)
    for piece in pieces:
        reader.feed(piece)
    return reader.finish()


def told(read: int, written: int, events: int = 0, *, failed: bool = False) -> Reading:
    return Reading(Used(read, written, events), events, failed)


def untold(events: int, *, failed: bool = False) -> Reading:
    return Reading(None, events, failed)


def event(data: Any) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"


def cut(stream: bytes, at: Iterable[int]) -> list[bytes]:
    places = sorted({0, len(stream), *(place for place in at if 0 < place < len(stream))})
    return [stream[start:end] for start, end in pairwise(places)]


VLLM_CHAT = b"""\
data: {"id":"chatcmpl-9","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"chatcmpl-9","choices":[{"index":0,"delta":{"content":"c"},"logprobs":null,"finish_reason":null}]}

data: {"id":"chatcmpl-9","choices":[{"index":0,"delta":{"content":"bj"},"finish_reason":"length","stop_reason":null}]}

"""
VLLM_USAGE = b"""\
data: {"choices":[],"usage":{"prompt_tokens":30,"total_tokens":33,"completion_tokens":3},"system_fingerprint":"vllm"}

"""
VLLM_CONTINUOUS = b"""\
data: {"choices":[{"index":0,"delta":{"content":""}}],"usage":{"prompt_tokens":30,"completion_tokens":0}}

data: {"choices":[{"index":0,"delta":{"content":"c"}}],"usage":{"prompt_tokens":30,"completion_tokens":1}}

data: {"choices":[{"index":1,"delta":{"content":"xy"}}],"usage":{"prompt_tokens":30,"completion_tokens":2}}

data: {"choices":[{"index":0,"delta":{"content":"bj"}}],"usage":{"prompt_tokens":30,"completion_tokens":3}}

"""
VLLM_TWO = b"""\
data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"length"}]}

data: {"choices":[{"index":1,"delta":{"content":"c"},"finish_reason":"length"}]}

data: {"choices":[],"usage":{"prompt_tokens":30,"total_tokens":34,"completion_tokens":4}}

"""
LLAMA_TWO = b"""\
data: {"choices":[{"finish_reason":null,"index":1,"delta":{"role":"assistant","content":null}}]}

data: {"choices":[{"finish_reason":null,"index":1,"delta":{"content":"u"}}]}

data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"y"}}]}

data: {"choices":[{"finish_reason":"length","index":1,"delta":{}}]}

data: {"choices":[],"usage":{"completion_tokens":2,"prompt_tokens":30,"prompt_tokens_details":{"cached_tokens":29}}}

data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"s"}}]}

data: {"choices":[{"finish_reason":"length","index":0,"delta":{}}]}

data: {"choices":[],"usage":{"completion_tokens":2,"prompt_tokens":30,"prompt_tokens_details":{"cached_tokens":29}}}

"""
LLAMA_COMPLETIONS = b"""\
data: {"choices":[{"text":"u","index":0,"logprobs":null,"finish_reason":null}]}

data: {"choices":[{"text":"jn","index":0,"logprobs":null,"finish_reason":null}]}

data: {"choices":[{"text":"","index":0,"finish_reason":"length"}],"usage":{"completion_tokens":3,"prompt_tokens":5}}

"""
RESPONSES = b"""\
event: response.created
data: {"response":{"id":"resp_8","status":"in_progress","usage":null,"error":null},"type":"response.created"}

event: response.output_text.delta
data: {"content_index":0,"delta":"r","type":"response.output_text.delta"}

event: response.output_text.delta
data: {"content_index":0,"delta":"aw","type":"response.output_text.delta"}

event: response.output_text.done
data: {"text":"raw","type":"response.output_text.done"}

event: response.completed
data: {"response":{"status":"completed","usage":{"input_tokens":24,"output_tokens":3}},"type":"response.completed"}

"""
DONE = b"data: [DONE]\n\n"
