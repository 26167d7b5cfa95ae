"""The bytes of vLLM's answers: one dialect per path, each for a whole body and for a stream of events.

Text arrives as ASCII that needs no escape (`tokens.Language.text`), so an event is its frame, made once per choice,
around a slice of text: a stream costs little per event. Fields that clients read are all there, in vLLM's order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import msgspec

from fairpool_lab.engine.requests import Ask
from fairpool_lab.engine.tokens import embedding, embedding_base64

VERSION: Final = "0.32.0"
FINGERPRINT: Final = f"vllm-{VERSION}-sim"
DONE: Final = b"data: [DONE]\n\n"

_encode = msgspec.json.Encoder().encode

_MARK: Final = "\ue000text\ue000"
_MARK_BYTES: Final = _MARK.encode()


class Answered:
    """One choice, as far as it has come: its text, its tokens, and why it ended once it did."""

    __slots__ = ("finish", "text", "tokens")

    def __init__(self, text: bytes, tokens: int, finish: str | None) -> None:
        self.text = text
        self.tokens = tokens
        self.finish = finish


class Dialect(Protocol):
    """How one path says what its request gets. Everything returned is one event, or none if empty."""

    def opening(self) -> bytes:
        """What goes out with the headers, while the request still waits."""
        ...

    def begin(self) -> bytes:
        """What goes out when the first token is there."""
        ...

    def delta(self, index: int, text: bytes, tokens: int, finish: str | None, *, last: bool) -> bytes:
        """More text of a choice that has `tokens` now; `last`: nothing but the end of the stream follows."""
        ...

    def end(self, choices: Sequence[Answered]) -> bytes:
        """What goes out after the last text."""
        ...

    def whole(self, choices: Sequence[Answered]) -> bytes:
        """The body of an answer that is no stream."""
        ...


def event(data: object) -> bytes:
    """One server-sent event."""
    return b"data: " + _encode(data) + b"\n\n"


def usage(prompt: int, completion: int) -> dict[str, Any]:
    """Tokens used, as streams report them."""
    return {"prompt_tokens": prompt, "total_tokens": prompt + completion, "completion_tokens": completion}


def _whole_usage(ask: Ask, completion: int) -> dict[str, Any]:
    details = {"prompt_tokens_details": None, "completion_tokens_details": None}
    return usage(ask.prompt_tokens, completion) | details


class _Choices:
    """What the streams of both older paths share: an event holds a list of choices."""

    def __init__(
        self, ask: Ask, base: dict[str, Any], choice: Callable[[int, str, str | None], dict[str, Any]]
    ) -> None:
        self._ask = ask
        self._base = base
        self._choice = choice
        self._frames: dict[int, tuple[bytes, bytes]] = {}

    def opening(self) -> bytes:
        """Nothing: the first event comes with the first token."""
        return b""

    def delta(self, index: int, text: bytes, tokens: int, finish: str | None, *, last: bool) -> bytes:
        """An event with one choice; all but the last of a choice are a frame around its text."""
        if finish is None and not self._ask.continuous_usage:
            frame = self._frames.get(index)
            if frame is None:
                frame = self._frames[index] = self._frame(index)
            return frame[0] + text + frame[1]
        data = self._base | {"choices": [self._choice(index, text.decode(), finish)]} | self._running(index, tokens)
        if last and not self._ask.include_usage:
            data["system_fingerprint"] = FINGERPRINT
        return event(data)

    def end(self, choices: Sequence[Answered]) -> bytes:
        """The usage, where the request asked for it, and `[DONE]`."""
        if not self._ask.include_usage:
            return DONE
        total = usage(self._ask.prompt_tokens, sum(choice.tokens for choice in choices))
        return event(self._base | {"choices": [], "usage": total, "system_fingerprint": FINGERPRINT}) + DONE

    def _frame(self, index: int) -> tuple[bytes, bytes]:
        before, _, after = event(self._base | {"choices": [self._choice(index, _MARK, None)]}).partition(_MARK_BYTES)
        return before, after

    def _running(self, index: int, tokens: int) -> dict[str, Any]:
        """The usage so far of one choice, where each event is to carry it."""
        if not self._ask.continuous_usage:
            return {}
        prompt = self._ask.prompts[index // self._ask.n].tokens
        return {"usage": usage(prompt, tokens) | {"completion_tokens_details": None}}


class Chat(_Choices):
    """`/v1/chat/completions`."""

    def __init__(self, ask: Ask, identity: str, created: int) -> None:
        self._id = identity
        self._created = created
        base = {"id": identity, "object": "chat.completion.chunk", "created": created, "model": ask.model}
        super().__init__(ask, base, _chat_choice)

    def begin(self) -> bytes:
        """Each choice's role."""
        return b"".join(
            event(
                self._base
                | {
                    "choices": [
                        {
                            "index": index,
                            "delta": {"role": "assistant", "content": ""},
                            "logprobs": None,
                            "finish_reason": None,
                        }
                    ]
                }
                | self._running(index, 0)
                | {"prompt_token_ids": None, "prompt_text": None}
            )
            for index in range(self._ask.n)
        )

    def whole(self, choices: Sequence[Answered]) -> bytes:
        """The `chat.completion`."""
        return _encode(
            {
                "id": self._id,
                "object": "chat.completion",
                "created": self._created,
                "model": self._ask.model,
                "choices": [
                    {
                        "index": index,
                        "message": {
                            "role": "assistant",
                            "content": choice.text.decode(),
                            "refusal": None,
                            "annotations": None,
                            "audio": None,
                            "function_call": None,
                            "reasoning": None,
                        },
                        "logprobs": None,
                        "finish_reason": choice.finish,
                        "stop_reason": None,
                        "token_ids": None,
                    }
                    for index, choice in enumerate(choices)
                ],
                "service_tier": None,
                "system_fingerprint": FINGERPRINT,
                "usage": _whole_usage(self._ask, sum(choice.tokens for choice in choices)),
                "prompt_logprobs": None,
                "prompt_token_ids": None,
                "kv_transfer_params": None,
            }
        )


class Completion(_Choices):
    """`/v1/completions`."""

    def __init__(self, ask: Ask, identity: str, created: int) -> None:
        base = {"id": identity, "object": "text_completion", "created": created, "model": ask.model}
        super().__init__(ask, base, _completion_choice)

    def begin(self) -> bytes:
        """Nothing: text comes at once."""
        return b""

    def whole(self, choices: Sequence[Answered]) -> bytes:
        """The `text_completion`."""
        return _encode(
            self._base
            | {
                "choices": [
                    {
                        "index": index,
                        "text": choice.text.decode(),
                        "logprobs": None,
                        "finish_reason": choice.finish,
                        "stop_reason": None,
                        "token_ids": None,
                        "prompt_logprobs": None,
                        "prompt_token_ids": None,
                    }
                    for index, choice in enumerate(choices)
                ],
                "service_tier": None,
                "system_fingerprint": FINGERPRINT,
                "usage": _whole_usage(self._ask, sum(choice.tokens for choice in choices)),
                "kv_transfer_params": None,
            }
        )


def embeddings(ask: Ask, identity: str, created: int, drawn: Sequence[int]) -> bytes:
    """The body of `/v1/embeddings`: one vector per prompt."""
    vectors = [embedding(each) for each in drawn]
    return _encode(
        {
            "id": identity,
            "object": "list",
            "created": created,
            "model": ask.model,
            "data": [
                {
                    "index": index,
                    "object": "embedding",
                    "embedding": embedding_base64(vector) if ask.base64 else vector,
                }
                for index, vector in enumerate(vectors)
            ],
            "usage": usage(ask.prompt_tokens, 0) | {"prompt_tokens_details": None},
        }
    )


def error(status: int, message: str, kind: str, param: str | None = None) -> bytes:
    """The body of a refusal."""
    return _encode({"error": {"message": message, "type": kind, "param": param, "code": status}})


def models(names: Sequence[str], max_model_len: int, created: int) -> bytes:
    """The body of `/v1/models`."""
    return _encode(
        {
            "object": "list",
            "data": [
                {
                    "id": name,
                    "object": "model",
                    "created": created,
                    "owned_by": "vllm",
                    "root": name,
                    "parent": None,
                    "max_model_len": max_model_len,
                    "permission": [],
                }
                for name in names
            ],
        }
    )


def _chat_choice(index: int, text: str, finish: str | None) -> dict[str, Any]:
    choice = {"index": index, "delta": {"content": text}, "logprobs": None, "finish_reason": finish}
    return choice | ({"token_ids": None} if finish is None else {"stop_reason": None, "token_ids": None})


def _completion_choice(index: int, text: str, finish: str | None) -> dict[str, Any]:
    return {
        "index": index,
        "text": text,
        "logprobs": None,
        "finish_reason": finish,
        "stop_reason": None,
        "prompt_token_ids": None,
        "token_ids": None,
    }
