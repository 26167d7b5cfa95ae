"""The parts of engines' answers that say what was used, or that it went wrong.

Decoding an event into these takes less time than searching it for a few words, and nothing that a model writes can
pass for a field. What has an unexpected type is not understood at all, and skipped.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw

MISREAD: Final = (msgspec.DecodeError, RecursionError)
"""What decoding raises on bytes that are something else."""

_Tokens = Annotated[int, Meta(ge=0, le=1_000_000_000)]

_ABSENT = Raw()

_GAVE_UP = frozenset({"abort", "cancelled", "error", "failed"})


def gave_up(reason: str | None) -> bool:
    """Whether a finish reason or a status means that the endpoint gave up."""
    return reason in _GAVE_UP


def says_something(raw: Raw) -> bool:
    """Whether a field is there and is neither null nor empty."""
    return len(raw) > 2 and (len(raw) != 4 or bytes(raw) != b"null")


class Usage(msgspec.Struct, gc=False):
    """Tokens, by the names of both generations of OpenAI's API."""

    prompt_tokens: _Tokens | None = None
    completion_tokens: _Tokens | None = None
    input_tokens: _Tokens | None = None
    output_tokens: _Tokens | None = None

    def tokens(self) -> tuple[int, int] | None:
        """Tokens read and written; embeddings write none. None if it does not tell."""
        read = self.input_tokens if self.prompt_tokens is None else self.prompt_tokens
        written = self.output_tokens if self.completion_tokens is None else self.completion_tokens
        return None if read is None else (read, written or 0)


class Delta(msgspec.Struct, gc=False):
    """What an event adds to a chat message."""

    content: Raw = _ABSENT
    reasoning_content: Raw = _ABSENT
    reasoning: Raw = _ABSENT
    tool_calls: Raw = _ABSENT
    function_call: Raw = _ABSENT
    refusal: Raw = _ABSENT

    def says_something(self) -> bool:
        """Whether it adds anything; a role alone does not count."""
        return says_something(self.content) or any(
            map(
                says_something,
                (self.reasoning_content, self.reasoning, self.tool_calls, self.function_call, self.refusal),
            )
        )


class Choice(msgspec.Struct, gc=False):
    """One choice in an event, or in a whole answer."""

    index: int = 0
    delta: Delta | None = None
    text: Raw = _ABSENT
    finish_reason: str | None = None

    def says_something(self) -> bool:
        """Whether it adds text."""
        return self.delta.says_something() if self.delta is not None else says_something(self.text)


class StreamChunk(msgspec.Struct, gc=False):
    """An event of chat and text completions."""

    choices: list[Choice] = []
    usage: Usage | None = None
    error: Raw = _ABSENT


class Response(msgspec.Struct, gc=False):
    """A response, as some events of its stream hold it."""

    status: str | None = None
    usage: Usage | None = None
    error: Raw = _ABSENT


class ResponsesEvent(msgspec.Struct, gc=False):
    """An event of `/v1/responses`."""

    type: str = ""
    delta: Raw = _ABSENT
    response: Response | None = None
    error: Raw = _ABSENT


StreamEvent = StreamChunk | ResponsesEvent


class Whole(msgspec.Struct, gc=False):
    """An answer that is no stream, of any API."""

    choices: list[Choice] = []
    status: str | None = None
    usage: Usage | None = None
    error: Raw = _ABSENT
