"""The APIs whose cost can be read, and which fields of their bodies hold what matters.

Engines differ in the names that they take, so a field is listed wherever any of them reads it. What is not listed
costs nothing, but in a body of `Api.EXTRA`, of which nothing is known: there every byte counts.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final


class Api(enum.Enum):
    """An API; the value is its path below `/v1/`."""

    CHAT = "chat/completions"
    COMPLETIONS = "completions"
    EMBEDDINGS = "embeddings"
    RESPONSES = "responses"
    MESSAGES = "messages"
    RERANK = "rerank"
    SCORE = "score"
    CLASSIFY = "classify"
    POOLING = "pooling"
    TRANSCRIPTIONS = "audio/transcriptions"
    TRANSLATIONS = "audio/translations"
    SPEECH = "audio/speech"
    IMAGES = "images/generations"
    TOKENIZE = "tokenize"
    DETOKENIZE = "detokenize"
    EXTRA = "..."
    """Whatever else a pool lets pass."""


@dataclass(frozen=True, slots=True)
class Fields:
    """Which fields of an API's bodies hold what matters, beside `messages`.

    Attributes:
        reads: what the engine reads.
        prompts: which of these may hold several prompts, each answered by itself.
        each: fields that are read once more for each of what `with_each` holds, and the other way round.
        with_each: the other fields of such pairs.
        choices: how many answers to a prompt it generates; the greatest counts.
        limits: the greatest length of an answer; the first valid one counts.
        spoken: what it says aloud.
        drawn: how large an image is that it draws.
        generates: whether it generates tokens that are told.
        upload: whether a body is a form with a file in it.
    """

    reads: tuple[str, ...] = ()
    prompts: str | None = None
    each: tuple[str, ...] = ()
    with_each: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    spoken: str | None = None
    drawn: str | None = None
    generates: bool = True
    upload: bool = False

    def names(self) -> set[str]:
        """All of them."""
        singles = {name for name in (self.spoken, self.drawn) if name is not None}
        return singles.union(self.reads, self.each, self.with_each, self.choices, self.limits)


_PAIRS: Final = Fields(
    each=("query", "queries", "text_1", "data_1"),
    with_each=("documents", "texts", "items", "text_2", "data_2"),
    generates=False,
)

FIELDS: Final = {
    Api.CHAT: Fields(
        reads=("tools", "functions", "response_format"),
        choices=("n",),
        limits=("max_completion_tokens", "max_tokens"),
    ),
    Api.COMPLETIONS: Fields(
        reads=("prompt", "suffix", "response_format"),
        prompts="prompt",
        choices=("n", "best_of"),
        limits=("max_tokens",),
    ),
    Api.EMBEDDINGS: Fields(reads=("input",), generates=False),
    Api.RESPONSES: Fields(reads=("input", "instructions", "tools", "text"), limits=("max_output_tokens",)),
    Api.MESSAGES: Fields(reads=("system", "tools", "output_config"), limits=("max_tokens",)),
    Api.RERANK: _PAIRS,
    Api.SCORE: _PAIRS,
    Api.CLASSIFY: Fields(reads=("input",), generates=False),
    Api.POOLING: Fields(reads=("input", "data"), generates=False),
    Api.TRANSCRIPTIONS: Fields(limits=("max_completion_tokens",), upload=True),
    Api.TRANSLATIONS: Fields(limits=("max_completion_tokens",), upload=True),
    Api.SPEECH: Fields(reads=("input", "instructions"), spoken="input", generates=False),
    Api.IMAGES: Fields(reads=("prompt",), choices=("n",), drawn="size", generates=False),
    Api.TOKENIZE: Fields(reads=("prompt", "content", "text", "tools"), generates=False),
    Api.DETOKENIZE: Fields(reads=("tokens",), generates=False),
    Api.EXTRA: Fields(
        reads=("messages", "prompt", "input", "system", "documents"),
        prompts="prompt",
        choices=("n", "best_of"),
        limits=("max_completion_tokens", "max_tokens", "max_output_tokens"),
    ),
}
