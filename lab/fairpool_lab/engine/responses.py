"""The bytes of vLLM's `/v1/responses`: one object, or a stream of named events that tells how it comes about.

There is no `[DONE]`; the last event is `response.completed` and holds the whole response with its usage. The first
two events go out at once, while the request still waits inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fairpool_lab.engine.answers import Answered
from fairpool_lab.engine.requests import Ask

_encode = msgspec.json.Encoder().encode


class Responses:
    """`/v1/responses`: always one answer."""

    def __init__(self, ask: Ask, identity: str, created: int) -> None:
        self._ask = ask
        self._id = identity
        self._message = "msg_" + identity.removeprefix("resp_")
        self._created = created
        self._sequence = 0
        self._text = bytearray()

    def opening(self) -> bytes:
        """`response.created` and `response.in_progress`."""
        response = self._response("in_progress", None, [])
        return self._event("response.created", response=response) + self._event(
            "response.in_progress", response=response
        )

    def begin(self) -> bytes:
        """The message and its only part are there, empty."""
        item: dict[str, Any] = {
            "id": self._message,
            "content": [],
            "role": "assistant",
            "status": "in_progress",
            "type": "message",
            "phase": None,
        }
        return self._event("response.output_item.added", item=item, output_index=0) + self._event(
            "response.content_part.added", **self._place(), part=_part("", logprobs=[])
        )

    def delta(self, index: int, text: bytes, tokens: int, finish: str | None, *, last: bool) -> bytes:  # noqa: ARG002 - one choice, told whole at the end
        """`response.output_text.delta`."""
        if not text:
            return b""
        self._text += text
        return self._event("response.output_text.delta", **self._place(), delta=text.decode(), logprobs=[])

    def end(self, choices: Sequence[Answered]) -> bytes:
        """The text, the part, the message and the response are complete."""
        text = self._text.decode()
        return b"".join(
            (
                self._event("response.output_text.done", **self._place(), logprobs=[], text=text),
                self._event("response.content_part.done", **self._place(), part=_part(text)),
                self._event("response.output_item.done", item=self._item(text), output_index=0),
                self._event("response.completed", response=self._finished(text, choices[0])),
            )
        )

    def whole(self, choices: Sequence[Answered]) -> bytes:
        """The `response`."""
        return _encode(self._finished(choices[0].text.decode(), choices[0]))

    def _finished(self, text: str, choice: Answered) -> dict[str, Any]:
        prompt = self._ask.prompt_tokens
        usage = {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": choice.tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt + choice.tokens,
        }
        status = "completed" if choice.finish == "stop" else "incomplete"
        return self._response(status, usage, [self._item(text)])

    def _response(self, status: str, usage: dict[str, Any] | None, output: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self._id,
            "created_at": self._created,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": None,
            "metadata": None,
            "model": self._ask.model,
            "object": "response",
            "output": output,
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "none",
            "tools": [],
            "top_p": 1.0,
            "background": False,
            "max_output_tokens": self._ask.most,
            "previous_response_id": None,
            "reasoning": None,
            "service_tier": "auto",
            "status": status,
            "text": None,
            "truncation": "disabled",
            "usage": usage,
            "user": None,
        }

    def _item(self, text: str) -> dict[str, Any]:
        return {
            "id": self._message,
            "content": [_part(text)],
            "role": "assistant",
            "status": "completed",
            "type": "message",
            "phase": None,
        }

    def _place(self) -> dict[str, Any]:
        return {"content_index": 0, "item_id": self._message, "output_index": 0}

    def _event(self, name: str, **data: Any) -> bytes:
        data |= {"sequence_number": self._sequence, "type": name}
        self._sequence += 1
        return b"event: " + name.encode() + b"\ndata: " + _encode(dict(sorted(data.items()))) + b"\n\n"


def _part(text: str, logprobs: list[object] | None = None) -> dict[str, Any]:
    return {"annotations": [], "text": text, "type": "output_text", "logprobs": logprobs}
