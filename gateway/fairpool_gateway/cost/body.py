"""Reading the shape of a request out of its body, without reading what it says.

The engine is the judge of its own API: a field of the wrong type is passed on, and counted by the length of its JSON
where it may hold text. Refused here is only what cannot be ordered at all (no JSON object, no model), and what would
pass others inside the engine (`priority`, `background`).

Parsing is partial: one pass of msgspec checks the whole body and finds its fields, a second one looks into those that
are arrays. Together they take one to four nanoseconds a byte and hold the interpreter's lock, so no thread would help.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import Raw

from fairpool_gateway.cost.shape import Shape
from fairpool_gateway.cost.size import ABSENT, Item, Size, crowded
from fairpool_gateway.errors import InvalidRequest

MOST_CHOICES: Final = 16_384
"""More answers than this to one prompt are refused by engines, so they are not counted either."""

MOST_TOKENS: Final = (1 << 31) - 1
"""A `max_tokens` beyond this is no limit."""


class Api(enum.Enum):
    """The APIs whose cost can be read; the value is the path below `/v1/`."""

    CHAT = "chat/completions"
    COMPLETIONS = "completions"
    EMBEDDINGS = "embeddings"
    RESPONSES = "responses"


@dataclass(frozen=True, slots=True)
class _Form:
    """Which fields of an API's bodies hold what matters, beside `messages`.

    Attributes:
        reads: what the engine reads.
        prompts: which of these may hold several prompts, each answered by itself.
        choices: how many answers to a prompt it generates; the greatest counts.
        limits: the greatest length of an answer; the first valid one counts.
        generates: whether it generates at all.
    """

    reads: tuple[str, ...]
    prompts: str | None = None
    choices: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    generates: bool = True


_FORMS: Final = {
    Api.CHAT: _Form(
        reads=("tools", "functions", "response_format"),
        choices=("n",),
        limits=("max_completion_tokens", "max_tokens"),
    ),
    Api.COMPLETIONS: _Form(
        reads=("prompt", "suffix", "response_format"),
        prompts="prompt",
        choices=("n", "best_of"),
        limits=("max_tokens",),
    ),
    Api.EMBEDDINGS: _Form(reads=("input",), generates=False),
    Api.RESPONSES: _Form(reads=("input", "instructions", "tools", "text"), limits=("max_output_tokens",)),
}


class _Fields(msgspec.Struct, gc=False):
    """The fields of all APIs, as they are found; a body's others are skipped."""

    model: Raw = ABSENT
    stream: Raw = ABSENT
    priority: Raw = ABSENT
    background: Raw = ABSENT
    prompt: Raw = ABSENT
    suffix: Raw = ABSENT
    input: Raw = ABSENT
    instructions: Raw = ABSENT
    text: Raw = ABSENT
    tools: Raw = ABSENT
    functions: Raw = ABSENT
    response_format: Raw = ABSENT
    n: Raw = ABSENT
    best_of: Raw = ABSENT
    max_tokens: Raw = ABSENT
    max_completion_tokens: Raw = ABSENT
    max_output_tokens: Raw = ABSENT


class _Body(_Fields):
    """A body as it should be."""

    messages: list[Item] = []


class _OddBody(_Fields):
    """A body whose messages are something else, or too many to look into."""

    messages: Raw = ABSENT


_decode_body = msgspec.json.Decoder(_Body).decode
_decode_odd_body = msgspec.json.Decoder(_OddBody).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_number = msgspec.json.Decoder(int).decode
_decode_number_or_text = msgspec.json.Decoder(int, strict=False).decode


def read_shape(api: Api, body: bytes) -> Shape:
    """What the body of a request says about its cost.

    Raises:
        InvalidRequest: it is no JSON object, names no model, or asks to pass others inside the engine. Nothing else is
            ever raised, whatever the bytes.
    """
    form = _FORMS[api]
    walk = not crowded(body)
    size = Size(walk=walk)
    fields = _read(body, size, walk=walk)
    _refuse_overtaking(fields)
    prompts = 1
    for name in form.reads:
        raw = getattr(fields, name)
        if raw is not ABSENT:
            found = size.add(raw)
            if name == form.prompts:
                prompts = found
    return Shape(
        model=_model(fields.model),
        stream=_stream(fields.stream),
        text_bytes=size.text,
        input_tokens=size.tokens,
        choices=prompts * _choices(fields, form.choices),
        max_tokens=_limit(fields, form.limits),
        generates=form.generates,
    )


def _read(body: bytes, size: Size, *, walk: bool) -> _Fields:
    """The fields of a body, after adding the size of its messages."""
    try:
        if walk:
            try:
                fields = _decode_body(body)
            except msgspec.ValidationError:
                pass
            else:
                size.add_items(fields.messages)
                return fields
        odd = _decode_odd_body(body)
    except msgspec.ValidationError:
        raise InvalidRequest("The body must be a JSON object.") from None
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"The body is not JSON that can be read: {error}.") from None
    except RecursionError:
        raise InvalidRequest("The body is nested too deeply.") from None
    size.text += len(odd.messages)
    return odd


def _refuse_overtaking(fields: _Fields) -> None:
    """Refuse what engines let pass before others; they take more than `true` for true."""
    if fields.priority is not ABSENT and bytes(fields.priority) != b"null":
        raise InvalidRequest("This pool orders requests itself: leave out `priority`.", param="priority")
    if fields.background is not ABSENT and bytes(fields.background) not in {b"null", b"false"}:
        raise InvalidRequest("This pool runs nothing in the background: leave out `background`.", param="background")


def _model(raw: Raw) -> str:
    if raw is ABSENT:
        raise InvalidRequest("The body must name a `model`.", param="model")
    try:
        return _decode_text(raw)
    except msgspec.DecodeError:
        raise InvalidRequest("`model` must be a string.", param="model") from None


def _stream(raw: Raw) -> bool:
    if raw is ABSENT:
        return False
    word = bytes(raw)
    if word not in {b"true", b"false", b"null"}:
        raise InvalidRequest("`stream` must be true or false.", param="stream")
    return word == b"true"


def _choices(fields: _Fields, names: tuple[str, ...]) -> int:
    """How many answers to one prompt; a number written as text counts too, for some engines accept it."""
    choices = 1
    for name in names:
        choices = max(choices, _number(getattr(fields, name), _decode_number_or_text))
    return min(choices, MOST_CHOICES)


def _limit(fields: _Fields, names: tuple[str, ...]) -> int | None:
    for name in names:
        limit = _number(getattr(fields, name), _decode_number)
        if 1 <= limit <= MOST_TOKENS:
            return limit
    return None


def _number(raw: Raw, decode: Callable[[Raw], int]) -> int:
    """A whole number, or 0 where there is none."""
    if raw is ABSENT:
        return 0
    try:
        return decode(raw)
    except msgspec.DecodeError:
        return 0
