"""How much an engine has to read: the size of prompts, messages and parts, measured without decoding them.

A string counts by the length of its JSON, so escapes make it larger than its text, by a factor that the learned
tokens per byte absorb. Token numbers are counted by their commas and are exact. An image and the like stands for a
constant, for its bytes say nothing about its tokens. What is not understood counts by the length of its JSON: nothing
is ever too strange to be measured, and nothing that the engine may read counts zero.

Objects are made for messages and parts only, and never so many that they matter (`crowded`).
"""

from __future__ import annotations

from itertools import repeat
from typing import Final

import msgspec
from msgspec import Raw

MESSAGE_BYTES: Final = 16
"""What a message counts beyond its text: role and separators, as chat templates write them."""

IMAGE_TOKENS: Final = 1024
"""About a megapixel, for common vision models."""

AUDIO_TOKENS: Final = 1024
"""Some 40 s, for common audio models."""

VIDEO_TOKENS: Final = 8192
"""32 frames of 256 tokens."""

FILE_TOKENS: Final = 4096
"""A few pages."""

ABSENT: Final = Raw()

_MEDIA = (
    (b"image", IMAGE_TOKENS),
    (b"video", VIDEO_TOKENS),
    (b"audio", AUDIO_TOKENS),
    (b"file", FILE_TOKENS),
    (b"document", FILE_TOKENS),
)

_PLAIN_TYPES = frozenset({
    *(b'"text"', b'"input_text"', b'"output_text"', b'"message"'),
    *(b'"thinking"', b'"tool_use"', b'"tool_result"'),
})  # fmt: skip
"""Parts that are text, so that there is nothing to read in an empty one."""

_DEEPEST = 3
"""Content inside content, deeper than any API nests it, is measured by its length."""

_SMALL = 1 << 16
"""Bodies up to this length cannot hold enough objects to matter; longer arrays are counted in slices of it."""

_MOST_OBJECTS = 20_000

_FEW_OBJECTS = 256
"""A body with fewer objects is searched for the next one, which is faster than counting where they are rare."""

_QUOTE, _ARRAY, _OBJECT = b'"[{'


class Item(msgspec.Struct, gc=False):
    """A message, an item of a response's input, or a part of either: its type, and whatever may hold text."""

    type: Raw = ABSENT
    content: Raw = ABSENT
    text: Raw = ABSENT
    name: Raw = ABSENT
    refusal: Raw = ABSENT
    tool_calls: Raw = ABSENT
    function_call: Raw = ABSENT
    arguments: Raw = ABSENT
    output: Raw = ABSENT
    summary: Raw = ABSENT
    reasoning: Raw = ABSENT
    reasoning_content: Raw = ABSENT
    input: Raw = ABSENT
    thinking: Raw = ABSENT
    source: Raw = ABSENT


class _Source(msgspec.Struct, gc=False):
    """What a document is made of: text, parts, or something that stands for a constant."""

    type: Raw = ABSENT
    data: Raw = ABSENT
    content: Raw = ABSENT


_decode_source = msgspec.json.Decoder(_Source).decode
_decode_item = msgspec.json.Decoder(Item).decode
_decode_items = msgspec.json.Decoder(list[Item]).decode


def crowded(body: bytes) -> bool:
    """Whether a body may hold more objects than are worth making; it is then measured by its length."""
    if len(body) <= _SMALL:
        return False
    at = -1
    for _ in repeat(None, _FEW_OBJECTS):
        at = body.find(b"{", at + 1)
        if at < 0:
            return False
    return body.count(b"{", at) > _MOST_OBJECTS


class Size:
    """How much there is to read, of all that was added: bytes of text, and tokens known already.

    Args:
        walk: whether messages and parts are looked into, rather than measured by their length.
    """

    __slots__ = ("text", "tokens", "walk")

    def __init__(self, *, walk: bool) -> None:
        self.text = 0
        self.tokens = 0
        self.walk = walk

    def add(self, raw: Raw, depth: int = 0) -> int:
        """Add a field that holds text, token numbers, items, or arrays of these; returns how many it holds."""
        view = memoryview(raw)
        kind = view[0]
        if kind == _QUOTE:
            self.text += len(raw) - 2
        elif kind == _ARRAY:
            return self._add_array(raw, view, depth)
        elif kind == _OBJECT and self.walk and 0 < depth <= _DEEPEST:
            return self._add_item(_decode_item(raw), depth)
        elif bytes(view[:4]) != b"null":
            self.text += len(raw)
        return 1

    def add_items(self, items: list[Item], depth: int = 0) -> None:
        """Add a conversation (`depth` 0), or the parts of a message."""
        if not depth:
            self.text += MESSAGE_BYTES * len(items)
        for item in items:
            self._add_item(item, depth)

    def _add_item(self, item: Item, depth: int) -> int:
        """Add one item; returns how many parts its content has."""
        before = self.text + self.tokens
        parts = 1 if item.content is ABSENT else self.add(item.content, depth + 1)
        for raw in (item.text, item.output, item.summary):
            if raw is not ABSENT:
                self.add(raw, depth + 1)
        for raw in (
            item.name,
            item.refusal,
            item.tool_calls,
            item.function_call,
            item.arguments,
            item.reasoning,
            item.reasoning_content,
            item.input,
            item.thinking,
        ):
            if raw is not ABSENT:
                self.text += len(raw)
        if item.source is not ABSENT and b"document" in bytes(item.type) and self._add_source(item.source, depth):
            return parts
        if depth or item.type is not ABSENT:
            nothing = self.text + self.tokens == before
            self.tokens += _stands_for(item.type, nothing=nothing and depth > 0)
        return parts

    def _add_source(self, raw: Raw, depth: int) -> bool:
        """Add what a document is made of, if that can be read here."""
        if memoryview(raw)[0] != _OBJECT:
            return False
        source = _decode_source(raw)
        name = bytes(source.type)
        if name == b'"text"' and source.data is not ABSENT:
            self.text += len(source.data)
        elif name == b'"content"' and source.content is not ABSENT:
            self.add(source.content, depth + 1)
        else:
            return False
        return True

    def _add_array(self, raw: Raw, view: memoryview, depth: int) -> int:
        """Add an array, whose first element says what all of them are."""
        head = bytes(view[:64])
        inner = head.lstrip(b"[ \t\r\n")
        first = inner[:1]
        if first == b'"':
            strings = _count_strings(view)
            self.text += max(0, len(view) - 3 * strings - 1)
            return strings
        if first.isdigit() or first == b"-":
            self.tokens += _count(view, b",") + 1
            of_arrays = head[: len(head) - len(inner)].count(b"[") > 1
            return _count(view, b"[") - 1 if of_arrays else 1
        if first == b"{":
            return self._add_objects(raw, view, depth)
        self.text += len(view)
        return 1

    def _add_objects(self, raw: Raw, view: memoryview, depth: int) -> int:
        """Add an array of objects; returns how many there are, or a little more."""
        if self.walk and depth <= _DEEPEST:
            try:
                items = _decode_items(raw)
            except msgspec.ValidationError:
                pass
            else:
                self.add_items(items, depth)
                return len(items)
        self.text += len(view)
        return _count(view, b"{")


def _stands_for(type_: Raw, *, nothing: bool) -> int:
    """The tokens of what is not text; a part in which nothing was found is taken for an image."""
    name = bytes(type_)
    if name in _PLAIN_TYPES:
        return 0
    for word, tokens in _MEDIA:
        if word in name:
            return tokens
    return IMAGE_TOKENS if nothing else 0


def _count(view: memoryview, byte: bytes) -> int:
    """How often a byte occurs, without a copy that would leave the processor's cache."""
    return sum(bytes(view[at : at + _SMALL]).count(byte) for at in range(0, len(view), _SMALL))


def _count_strings(view: memoryview) -> int:
    """How many strings an array of nothing else holds; one off where a slice cuts through an escape."""
    quotes = 0
    for at in range(0, len(view), _SMALL):
        piece = bytes(view[at : at + _SMALL])
        quotes += piece.count(b'"')
        if b"\\" in piece:
            quotes -= piece.replace(rb"\\", b"").count(rb"\"")
    return max(1, quotes // 2)
