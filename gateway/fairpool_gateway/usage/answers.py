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

_ABORTED = frozenset({"abort", "cancelled"})
_WRONG = _ABORTED | {"error", "failed"}


class Verdict:
    """What the finish reasons and statuses of one answer come to; each is looked at once.

    Attributes:
        failed: whether one of them means that the answer went wrong.
        aborted: whether one means that the endpoint gave it up, as engines do that are told to stop.
    """

    __slots__ = ("aborted", "failed")

    def __init__(self) -> None:
        self.failed = False
        self.aborted = False

    def look_at(self, reason: str | None) -> None:
        """A finish reason or a status; one that an API does not have, or has not yet, is None."""
        if reason in _WRONG:
            self.failed = True
            self.aborted |= reason in _ABORTED


def says_something(raw: Raw) -> bool:
    """Whether a field is there and is neither null nor empty."""
    return len(raw) > 2 and (len(raw) != 4 or bytes(raw) != b"null")


class Usage(msgspec.Struct, gc=False):
    """Tokens, by the names of both generations of OpenAI's API, of rerankers, and of Anthropic's.

    Anthropic's `input_tokens` leave out those that were cached, OpenAI's have them in.
    """

    prompt_tokens: _Tokens | None = None
    completion_tokens: _Tokens | None = None
    total_tokens: _Tokens | None = None
    input_tokens: _Tokens | None = None
    output_tokens: _Tokens | None = None
    cache_read_input_tokens: _Tokens | None = None
    cache_creation_input_tokens: _Tokens | None = None

    def tokens(self) -> tuple[int, int] | None:
        """Tokens read and written; embeddings write none. None if it does not tell."""
        read, written = self.prompt_tokens, self.written() or 0
        if read is None and self.input_tokens is not None:
            read = self.input_tokens + (self.cache_read_input_tokens or 0) + (self.cache_creation_input_tokens or 0)
        if read is None and self.total_tokens is not None:
            read = max(0, self.total_tokens - written)
        return None if read is None else (read, written)

    def written(self) -> int | None:
        """Tokens written, if it tells them."""
        return self.output_tokens if self.completion_tokens is None else self.completion_tokens


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


class Response(msgspec.Struct, gc=False):
    """A response, as some events of its stream hold it; or the message that a stream begins with."""

    status: str | None = None
    usage: Usage | None = None
    error: Raw = _ABSENT


class Piece(msgspec.Struct, gc=False):
    """What an event adds to one of Anthropic's messages, or says of its end."""

    text: Raw = _ABSENT
    thinking: Raw = _ABSENT
    partial_json: Raw = _ABSENT
    stop_reason: str | None = None

    def says_something(self) -> bool:
        """Whether it adds anything; a signature alone does not count."""
        return any(map(says_something, (self.text, self.thinking, self.partial_json)))


class Event(msgspec.Struct, gc=False):
    """An event of any API's stream: those of chat and text completions have `choices`, the others a `type`."""

    choices: list[Choice] = []
    usage: Usage | None = None
    error: Raw = _ABSENT
    type: str | None = None
    delta: Raw = _ABSENT
    response: Response | None = None
    message: Raw = _ABSENT


class Whole(msgspec.Struct, gc=False):
    """An answer that is no stream, of any API."""

    choices: list[Choice] = []
    status: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None
    error: Raw = _ABSENT
