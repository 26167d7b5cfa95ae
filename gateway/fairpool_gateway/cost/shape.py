"""What a request says about its cost, and what it turned out to use: the two facts that estimates live on."""

from __future__ import annotations

import msgspec


class Shape(msgspec.Struct, frozen=True):
    """What the body of a request says about its cost.

    Attributes:
        model: the model it names, or "" where it need not name one.
        stream: whether it asks for a stream of events.
        text_bytes: bytes of text the engine has to read; its tokens are learned per tenant.
        input_tokens: tokens the body states by itself (token arrays) or that stand for images and audio, those that are
            to be made included.
        choices: how many answers are to be generated (`n`, times the number of prompts); at least 1.
        max_tokens: the greatest length of one answer, or None where the body sets no valid one.
        generates: whether the engine generates tokens that are told (embeddings, images and speech do not).
    """

    model: str
    stream: bool
    text_bytes: int
    input_tokens: int
    choices: int
    max_tokens: int | None
    generates: bool


class Used(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens that a request really used.

    `told`: whether the endpoint counted them itself; if not, they were estimated from the events of its stream.
    `events`: how many of these carried content, 0 where the answer was no stream.
    """

    input: int
    output: int
    events: int = 0
    told: bool = True
