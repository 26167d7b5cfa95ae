"""The shape of a request whose body is a form, such as an audio file with the name of a model.

A file counts by its bytes, for what is in it is compressed in ways that nobody reads here; every other field that is
not known counts as text. In a form every value is text, so numbers and truths are read as engines read them there.
"""

from __future__ import annotations

from typing import Final

from fairpool_gateway.cost.api import FIELDS, Api
from fairpool_gateway.cost.numbers import choices_of, limit_of
from fairpool_gateway.cost.rules import refuse_overtaking, without_model
from fairpool_gateway.cost.shape import Shape
from fairpool_gateway.cost.upload import read_form
from fairpool_gateway.errors import InvalidRequest

FILE_BYTES_PER_TOKEN: Final = 256
"""Some 30 tokens for each second of speech at 64 kbit/s, as audio models take."""

_YES: Final = frozenset({b"true", b"1", b"yes", b"on", b"t", b"y"})
_NO: Final = frozenset({b"false", b"0", b"no", b"off", b"f", b"n", b""})


def shape_of_form(api: Api, body: bytes, content_type: bytes, *, may_overtake: bool) -> Shape:
    """What a form says about its cost; `may_overtake`: it may ask to pass others inside the engine.

    Raises:
        InvalidRequest: it is no form, names no model, or asks to pass others and may not.
    """
    found = FIELDS[api]
    form = read_form(body, content_type, {"model", "stream", "priority", "background", *found.choices, *found.limits})
    fields = form.fields
    if not may_overtake:
        refuse_overtaking(
            priority=bool(fields.get("priority")),
            background=fields.get("background", b"").lower() not in _NO,
        )
    return Shape(
        model=_model(fields["model"]) if "model" in fields else without_model(api),
        stream=_stream(fields.get("stream", b"")),
        text_bytes=form.text,
        input_tokens=-(-form.files // FILE_BYTES_PER_TOKEN),
        choices=choices_of(fields.get(name, b"") for name in found.choices),
        max_tokens=limit_of(fields.get(name, b"") for name in found.limits),
        generates=found.generates,
    )


def _model(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise InvalidRequest("`model` must be text.", param="model") from None


def _stream(value: bytes) -> bool:
    word = value.lower()
    if word not in _YES and word not in _NO:
        raise InvalidRequest("`stream` must be true or false.", param="stream")
    return word in _YES
