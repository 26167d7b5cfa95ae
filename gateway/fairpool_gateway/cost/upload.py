"""Reading a form with files in it: what its fields say, and how long its files are, without copying one.

Engines parse forms with the same library, so they and this gateway see the same fields. Where two engines would see
something different, a field given twice or a form that breaks off, the form is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, MultipartState, parse_options_header

from fairpool_gateway.errors import InvalidRequest

MOST_PARTS: Final = 256
"""More are refused, for parsing takes time for each. They are counted by what looks like a boundary."""

LONGEST_FIELD: Final = 4096
"""No field whose value matters is longer."""

_SILENT: Final = logging.getLogger(f"{__name__}.parser")
"""The parser's: what it has to say of a form, its tenant is told, and nobody else needs to know."""

_SILENT.setLevel(logging.CRITICAL)


def is_form(content_type: bytes) -> bool:
    """Whether a body with this Content-Type is a form that may hold files."""
    return content_type.partition(b";")[0].strip().lower() == b"multipart/form-data"


@dataclass(slots=True)
class Form:
    """What a form holds.

    Attributes:
        fields: the values of the fields that were asked for.
        text: bytes in all other fields.
        files: bytes in files.
    """

    fields: dict[str, bytes] = field(default_factory=dict)
    text: int = 0
    files: int = 0


def read_form(body: bytes, content_type: bytes, wanted: Collection[str]) -> Form:
    """What a form holds.

    Raises:
        InvalidRequest: it cannot be read, or says something twice. Nothing else is ever raised, whatever the bytes.
    """
    boundary = parse_options_header(content_type)[1].get(b"boundary") if is_form(content_type) else None
    if not boundary:
        raise InvalidRequest("The body must be multipart/form-data, and its Content-Type must say the boundary.")
    if body.count(b"--" + boundary) > MOST_PARTS:
        raise InvalidRequest("The form has too many parts.")
    reader = _Reader(body, wanted)
    try:
        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": reader.part_begins,
                "on_header_field": reader.header_name,
                "on_header_value": reader.header_value,
                "on_header_end": reader.header_ends,
                "on_headers_finished": reader.headers_end,
                "on_part_data": reader.part_data,
                "on_part_end": reader.part_ends,
            },
        )
        parser.logger = _SILENT
        parser.write(body)
    except FormParserError:
        raise InvalidRequest("The body is not a form that can be read.") from None
    if parser.state is not MultipartState.END:
        raise InvalidRequest("The form ends before its last boundary.")
    return reader.form


class _Reader:
    """Follows the parser through one form, part by part."""

    def __init__(self, body: bytes, wanted: Collection[str]) -> None:
        self.form = Form()
        self._body = body
        self._wanted = wanted
        self._header = [b"", b""]
        self._disposition = b""
        self._name = ""
        self._is_file = False
        self._data = slice(0, 0)

    def part_begins(self) -> None:
        self._disposition = b""
        self._data = slice(0, 0)

    def header_name(self, data: bytes, start: int, end: int) -> None:
        self._header[0] = data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._header[1] = data[start:end]

    def header_ends(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = value
        self._header = [b"", b""]

    def headers_end(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"name" not in options or b"*=" in self._disposition:
            raise InvalidRequest("A part of the form has no name, or an encoded one, which RFC 7578 forbids.")
        self._name = options[b"name"].decode("latin-1")
        self._is_file = b"filename" in options
        if self._name in self._wanted and (self._is_file or self._name in self.form.fields):
            raise InvalidRequest(f"The form must give `{self._name}` once, and not as a file.", param=self._name)

    def part_data(self, _: bytes, start: int, end: int) -> None:
        self._data = slice(start, end)

    def part_ends(self) -> None:
        length = self._data.stop - self._data.start
        if self._is_file:
            self.form.files += length
        elif self._name not in self._wanted:
            self.form.text += length
        elif length > LONGEST_FIELD:
            raise InvalidRequest(f"`{self._name}` is too long.", param=self._name)
        else:
            self.form.fields[self._name] = self._body[self._data]
