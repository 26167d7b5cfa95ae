"""Resources from a text, as kubectl reads it: JSON or YAML, documents apart at `---`, and lists taken to pieces.

What always holds: whatever the text holds, what cannot be read is a `Problem` among the others and no exception, and
repeats no value, for a Secret may be in it; of documents one that is broken is so alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from yaml.composer import Composer
from yaml.resolver import Resolver

from fairpool_operator.errors import NoResource
from fairpool_operator.manifests.documents import Document, Problem
from fairpool_operator.manifests.jsons import json_parts
from fairpool_operator.manifests.nodes import DEEPEST, Builder
from fairpool_operator.manifests.scalars import PLAIN

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # a PyYAML that was built without libyaml
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]  # has the same methods, and is slower

_SEPARATOR: Final = re.compile(r"^---[^\n]*", re.MULTILINE)
_BEHIND_SEPARATOR: Final = re.compile(r"\A(---[^\n]*\n)\ufeff")
"""The mark with which some editors begin a file, where files were put into one."""
_QUOTED: Final = re.compile(r"'(?!<)[^']{2,}'")
"""What YAML's errors quote of a text; kinds of tokens stand in angle brackets, and characters alone."""


def read_text(text: str, file: Path) -> Iterator[Document | Problem]:
    """The same of a text that is, or would be, in a file."""
    for first_line, part in json_parts(text) or _parts(text):
        if (behind := _SEPARATOR.match(part)) and not re.fullmatch(r"---\s*(#.*)?", behind[0]):
            yield Problem(file, first_line + 1, "has something behind ---: put it into the next line")
            continue
        yield from _read_part(part, file, first_line)


def _read_part(part: str, file: Path, first_line: int) -> Iterator[Document | Problem]:
    composer = _Composer(_BEHIND_SEPARATOR.sub(r"\1", part))
    try:
        while composer.check_node():
            node = composer.get_node()
            assert node is not None
            yield from _documents(node, file, first_line)
    except NoResource as problem:
        yield Problem(file, problem.line + first_line, problem.message)
    except yaml.YAMLError as error:
        line, message = _in_words(error, part)
        yield Problem(file, line + first_line, message)
    finally:
        composer.dispose()


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """The documents of a text, each with the number of lines before it, so that one that is broken is so alone."""
    begin = first_line = 0
    for found in _SEPARATOR.finditer(text):
        part = text[begin : found.start()]
        yield first_line, part
        begin, first_line = found.start(), first_line + part.count("\n")
    yield first_line, text[begin:]


def _documents(node: yaml.Node, file: Path, first_line: int) -> Iterator[Document | Problem]:
    builder = Builder(first_line)
    value, place = builder.build(node)
    if builder.twice:
        yield from (Problem(file, line, message) for line, message in builder.twice)
    elif isinstance(value, dict):
        yield from _flattened(Document(file, value, place))
    elif value is not None:
        yield Problem(file, place.line, "is not a resource: it has to be a mapping, with apiVersion and kind")


def _flattened(document: Document) -> Iterator[Document | Problem]:
    """The resources in a list, such as `kubectl get -o yaml` prints one; or the one resource."""
    items = document.object.get("items")
    if document.kind == "List" and not isinstance(items, list):
        yield Problem(document.file, document.line(("items",)), "is not a resource: items of a list has to be one")
        return
    if not document.kind.endswith("List") or not isinstance(items, list):
        yield document
        return
    if document.kind == "List" and not document.api_version:
        yield Problem(document.file, document.place.line, "is not a resource: a List needs apiVersion: v1")
        return
    kind = document.kind.removesuffix("List")
    of_one_kind = {"apiVersion": document.api_version, "kind": kind} if kind else {}
    for number, item in enumerate(items):
        place = document.place.below["items"].below[number]
        if isinstance(item, dict):
            yield from _flattened(Document(document.file, {**of_one_kind, **item}, place))
        else:
            yield Problem(document.file, place.line, "is not a resource: each of items has to be a mapping")


class _Composer(Composer, Resolver):
    """Composes nodes as kubectl reads them, out of the events of PyYAML's fastest parser.

    It decides nothing about texts without quotes but that they have none, takes a lone `!` for quotes, and lets an
    anchor be given again.
    """

    def __init__(self, text: str) -> None:
        Composer.__init__(self)
        Resolver.__init__(self)
        parser = _SafeLoader(text)
        self.check_event, self.peek_event, self.get_event = parser.check_event, parser.peek_event, parser.get_event
        self.dispose = parser.dispose
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        assert event is not None, "there is one for each node"
        assert event.start_mark is not None, "the parser knows where it is"
        if self._depth > DEEPEST:
            raise NoResource(event.start_mark.line + 1, "is nested too deeply")
        if isinstance(event, yaml.ScalarEvent) and event.tag == "!":
            event.tag = "tag:yaml.org,2002:str"
        if isinstance(event, yaml.NodeEvent) and not isinstance(event, yaml.AliasEvent):
            self.anchors.pop(event.anchor, None)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return PLAIN
        tag: str = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]  # the stubs have no types
        return tag


def _in_words(error: yaml.YAMLError, text: str) -> tuple[int, str]:
    """Where a text stops being YAML, and why."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        why = ", ".join(filter(None, (error.context, error.problem)))
        return (mark.line + 1 if mark else 1), f"is not YAML: {_QUOTED.sub('...', why)}"
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position]
        return before.count("\n") + 1, "is not YAML: holds a character that it does not allow"
    return 1, "is not YAML"
