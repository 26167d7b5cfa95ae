"""The bytes of vLLM's `/v1/messages`, Anthropic's API: one message, or a stream of named events that builds it.

There is no `[DONE]`. The first event tells what was read, the last but one what was written; refusals have a form of
their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fairpool_lab.engine.answers import Answered
from fairpool_lab.engine.requests import Ask

_encode = msgspec.json.Encoder().encode

_STOP_REASONS: Final = {"stop": "end_turn", "length": "max_tokens"}


class Messages:
    """`/v1/messages`: always one answer, of one block of text."""

    def __init__(self, ask: Ask, identity: str, created: int) -> None:  # noqa: ARG002 - as every dialect is made
        self._ask = ask
        self._message: dict[str, Any] = {
            "id": identity,
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": ask.model,
            "stop_reason": None,
        }

    def opening(self) -> bytes:
        """Nothing: the message begins with the first token."""
        return b""

    def begin(self) -> bytes:
        """The message is there, and its only block, both empty."""
        message = self._message | {"stop_sequence": None, "usage": self._usage(0)}
        return _event("message_start", message=message) + _event(
            "content_block_start", content_block={"type": "text", "text": ""}, index=0
        )

    def delta(self, index: int, text: bytes, tokens: int, finish: str | None, *, last: bool) -> bytes:  # noqa: ARG002 - one choice, whose end is told afterwards
        """`content_block_delta`."""
        if not text:
            return b""
        return _event("content_block_delta", delta={"type": "text_delta", "text": text.decode()}, index=0)

    def end(self, choices: Sequence[Answered]) -> bytes:
        """The block and the message are complete."""
        delta = {"stop_reason": _stop_reason(choices[0]), "stop_sequence": None}
        return (
            _event("content_block_stop", index=0)
            + _event("message_delta", delta=delta, usage=self._usage(choices[0].tokens))
            + _event("message_stop")
        )

    def whole(self, choices: Sequence[Answered]) -> bytes:
        """The `message`."""
        choice = choices[0]
        content = [{"type": "text", "text": choice.text.decode()}]
        message = self._message | {"content": content, "stop_reason": _stop_reason(choice)}
        return _encode(message | {"usage": self._usage(choice.tokens)})

    def _usage(self, written: int) -> dict[str, int]:
        return {"input_tokens": self._ask.prompt_tokens, "output_tokens": written}


def error(kind: str, message: str) -> bytes:
    """The body of a refusal."""
    return _encode({"type": "error", "error": {"type": kind, "message": message}})


def _stop_reason(choice: Answered) -> str:
    return _STOP_REASONS.get(choice.finish or "", "end_turn")


def _event(name: str, **data: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + _encode({"type": name} | data) + b"\n\n"
