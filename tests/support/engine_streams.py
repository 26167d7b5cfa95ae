"""Streams as real engines answer, cut down to what matters, and the way a test reads an answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from fairpool_gateway.cost import Used
from fairpool_gateway.usage import Reading, usage_reader

SSE, JSON = b"text/event-stream; charset=utf-8", b"application/json"


def read(*pieces: bytes, kind: bytes = SSE, encoding: bytes = b"") -> Reading:
    reader = usage_reader(kind, encoding)
    for piece in pieces:
        reader.feed(piece)
    return reader.finish()


def told(read: int, written: int, events: int = 0, *, failed: bool = False, aborted: bool = False) -> Reading:
    return Reading(Used(read, written, events), events, failed or aborted, aborted)


def untold(events: int, *, failed: bool = False, aborted: bool = False) -> Reading:
    return Reading(None, events, failed or aborted, aborted)


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
VLLM_MESSAGES = b"""\
event: message_start
data: {"type":"message_start","message":{"id":"chatcmpl-a","type":"message","role":"assistant","content":[],\
"model":"tiny","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":30,"output_tokens":0}}}

event: content_block_start
data: {"type":"content_block_start","content_block":{"type":"text","text":""},"index":0}

event: content_block_delta
data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"c"},"index":0}

event: content_block_delta
data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"m"},"index":0}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},\
"usage":{"input_tokens":30,"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

"""
LLAMA_MESSAGES = VLLM_MESSAGES.replace(
    b'"usage":{"input_tokens":30,"output_tokens":0}',
    b'"usage":{"cache_read_input_tokens":29,"input_tokens":1,"output_tokens":0}',
).replace(b'"usage":{"input_tokens":30,"output_tokens":2}', b'"usage":{"output_tokens":2}')
TRANSCRIPT = b"""\
data: {"type":"transcript.text.delta","delta":"one","logprobs":[]}

data: {"type":"transcript.text.delta","delta":" two"}

data: {"type":"transcript.text.done","text":"one two","usage":{"type":"tokens","input_tokens":14,"output_tokens":45}}

"""
DONE = b"data: [DONE]\n\n"
