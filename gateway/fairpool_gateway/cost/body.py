"""Reading the shape of a request out of its body, without reading what it says.

The engine is the judge of its own API: a field of the wrong type is passed on, and counted by the length of its JSON
where it may hold text. Refused here is only what cannot be ordered at all (no JSON object, no model), and what would
pass others inside the engine (`priority`, `background`).

Parsing is partial: one pass of msgspec checks the whole body and finds its fields, a second one looks into those that
are arrays. Together they take one to five nanoseconds a byte and hold the interpreter's lock, so no thread would help.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Raw

from fairpool_gateway.cost.api import FIELDS, Api
from fairpool_gateway.cost.form import shape_of_form
from fairpool_gateway.cost.numbers import choices_of, limit_of
from fairpool_gateway.cost.rules import refuse_overtaking, without_model
from fairpool_gateway.cost.shape import Shape
from fairpool_gateway.cost.size import ABSENT, Item, Size, crowded
from fairpool_gateway.cost.upload import is_form
from fairpool_gateway.errors import InvalidRequest

SPOKEN_TOKENS_PER_BYTE: Final = 4
"""Of a text to be spoken: what its audio is made of, where a second has some 60 tokens and 15 letters."""

DRAWN_TOKENS: Final = 4096
"""What each megapixel, begun or whole, of an image that is to be drawn stands for."""

_MEGAPIXEL: Final = 1 << 20
_PIXELS: Final = re.compile(rb'"(\d{1,5})x(\d{1,5})"')
_NO_PRIORITY: Final = frozenset({b"", b"null"})
_NO_BACKGROUND: Final = frozenset({b"", b"null", b"false"})
"""Engines take more than `true` for true."""

_OBJECT: Final = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*\{")


class _JsonReader:
    """Finds the fields of one API's bodies, as they are written; a body's others are skipped."""

    def __init__(self, api: Api) -> None:
        self.fields = FIELDS[api]
        names = {"model", "stream", "priority", "background", *self.fields.names()} - {"messages"}
        fields: list[tuple[str, Any, Any]] = [(name, Raw, ABSENT) for name in sorted(names)]
        well_formed = msgspec.defstruct("WellFormed", [*fields, ("messages", list[Item], [])], gc=False)
        odd = msgspec.defstruct("Odd", [*fields, ("messages", Raw, ABSENT)], gc=False)
        self._decode_well_formed = msgspec.json.Decoder(well_formed).decode
        self._decode_odd = msgspec.json.Decoder(odd).decode

    def decode(self, body: bytes, *, messages: bool) -> Any:
        """The fields of a body, each a `Raw`; but `messages` a list of `Item`, if it is to be and can be."""
        try:
            if messages:
                try:
                    return self._decode_well_formed(body)
                except msgspec.ValidationError:
                    pass
            return self._decode_odd(body)
        except msgspec.ValidationError:
            raise InvalidRequest("The body must be a JSON object.") from None
        except msgspec.DecodeError as error:
            raise InvalidRequest(f"The body is not JSON that can be read: {error}.") from None
        except RecursionError:
            raise InvalidRequest("The body is nested too deeply.") from None


_JSON_READERS: Final = {api: _JsonReader(api) for api in Api}

_decode_text = msgspec.json.Decoder(str).decode


def read_shape(
    api: Api, body: bytes, content_type: bytes = b"application/json", *, may_overtake: bool = False
) -> Shape:
    """What the body of a request says about its cost. `may_overtake`: it may ask to pass others inside the engine.

    Raises:
        InvalidRequest: it is not what the API takes, names no model, or asks to pass others and may not. Nothing else
            is ever raised, whatever the bytes.
    """
    reader = _JSON_READERS[api]
    if reader.fields.upload or (api is Api.EXTRA and is_form(content_type)):
        return shape_of_form(api, body, content_type, may_overtake=may_overtake)
    if api is Api.EXTRA and not _may_be_json(body, content_type):
        return Shape("", stream=False, text_bytes=len(body), input_tokens=0, choices=1, max_tokens=None, generates=True)
    return _shape_of_json(api, reader, body, may_overtake=may_overtake)


def _may_be_json(body: bytes, content_type: bytes) -> bool:
    """Whether an engine may take a body for JSON: by what it says it is, or by what it looks like."""
    return bool(body) and (not content_type or b"json" in content_type.lower() or _OBJECT.match(body) is not None)


def _shape_of_json(api: Api, reader: _JsonReader, body: bytes, *, may_overtake: bool) -> Shape:
    found = reader.fields
    size = Size(walk=not crowded(body))
    fields = reader.decode(body, messages=size.walk and api is not Api.EXTRA)
    if isinstance(fields.messages, list):
        size.add_items(fields.messages)
    elif api is Api.EXTRA:
        size.text = len(body) - sum(len(getattr(fields, name)) for name in found.reads)
    else:
        size.text = len(fields.messages)
    if not may_overtake and (fields.priority is not ABSENT or fields.background is not ABSENT):
        refuse_overtaking(
            priority=bytes(fields.priority) not in _NO_PRIORITY,
            background=bytes(fields.background) not in _NO_BACKGROUND,
        )
    prompts = 1
    for name in found.reads:
        raw = getattr(fields, name)
        if raw is not ABSENT:
            held = size.add(raw)
            if name == found.prompts:
                prompts = held
    if found.each:
        _add_pairs(size, *([getattr(fields, name) for name in side] for side in (found.each, found.with_each)))
    choices = prompts * choices_of([getattr(fields, name) for name in found.choices])
    if found.spoken is not None:
        size.tokens += SPOKEN_TOKENS_PER_BYTE * len(getattr(fields, found.spoken))
    if found.drawn is not None:
        size.tokens += DRAWN_TOKENS * choices * _megapixels(getattr(fields, found.drawn))
    return Shape(
        model=_model(fields.model, api),
        stream=_stream(fields.stream),
        text_bytes=size.text,
        input_tokens=size.tokens,
        choices=choices,
        max_tokens=limit_of([getattr(fields, name) for name in found.limits]),
        generates=found.generates,
    )


def _add_pairs(size: Size, each: list[Raw], with_each: list[Raw]) -> None:
    """Add queries and documents, each query as often as it is read with a document, and the other way round."""
    sides = []
    for side in (each, with_each):
        one = Size(walk=size.walk)
        held = sum(one.add(raw, 1) for raw in side if raw is not ABSENT)
        sides.append((one, max(1, held)))
    for (one, held), (_, others) in (sides, sides[::-1]):
        times = max(1, others // held)
        size.text += one.text * times
        size.tokens += one.tokens * times


def _megapixels(size: Raw) -> int:
    """How large an image is to be, in megapixels that are at least begun."""
    pixels = _PIXELS.fullmatch(size)
    return 1 if pixels is None else max(1, -(-int(pixels[1]) * int(pixels[2]) // _MEGAPIXEL))


def _model(raw: Raw, api: Api) -> str:
    if raw is ABSENT:
        return without_model(api)
    try:
        return _decode_text(raw)
    except msgspec.DecodeError:
        raise InvalidRequest("`model` must be a string.", param="model") from None


def _stream(raw: Raw) -> bool:
    word = bytes(raw)
    if word not in {b"", b"true", b"false", b"null"}:
        raise InvalidRequest("`stream` must be true or false.", param="stream")
    return word == b"true"
