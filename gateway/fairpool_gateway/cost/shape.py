"""What a request says about its cost, and what it turned out to use: the two facts that estimates live on."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class Shape:
    """What the body of a request says about its cost.

    Attributes:
        model: the model it names.
        stream: whether it asks for a stream of events.
        text_bytes: bytes of text the engine has to read; its tokens are learned per tenant.
        input_tokens: tokens the body states by itself (token arrays) or that stand for images and audio.
        choices: how many answers are to be generated (`n`, times the number of prompts); at least 1.
        max_tokens: the greatest length of one answer, or None where the body sets no valid one.
        generates: whether the engine generates tokens at all (embeddings do not).
    """

    model: str
    stream: bool
    text_bytes: int
    input_tokens: int
    choices: int
    max_tokens: int | None
    generates: bool


class Used(msgspec.Struct, frozen=True):
    """Tokens that a request really used, as its endpoint counted them, or estimated from its events."""

    input: int
    output: int
