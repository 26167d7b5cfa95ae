"""Resources from YAML files, each with the line of every field, so that what is wrong can be told where it was written.

A file is read as kubectl reads it: documents apart at `---`, lists taken to pieces, and texts without quotes resolved
as YAML 1.1 without its dates and base 60 (`yes` is a truth, `2026-12-31` a text). What always holds: whatever the
files hold, what cannot be read is a `Problem` among the others and no exception, it repeats no value (a Secret may be
in a file), and an alias cannot blow a small text up.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from fairpool_operator.errors import CannotStart, NoResource

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # a PyYAML that was built without libyaml
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]  # has the same methods, and is slower

Steps = tuple[str | int, ...]
"""The way to a field: `("spec", "endpoints", "targetPorts", 0, "number")`."""

STDIN: Final = Path("-")

_SUFFIXES: Final = frozenset({".yaml", ".yml"})
_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_QUOTED: Final = re.compile(r"'(?!<)[^']{2,}'")
"""What YAML's errors quote of a text; kinds of tokens stand in angle brackets, and characters alone."""

_MOST_VALUES: Final = 100_000
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is written: its line, and the places of what is in it."""

    line: int
    below: Mapping[str | int, Place] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Document:
    """One resource of a file."""

    file: Path
    object: Mapping[str, Any] = field(repr=False)
    place: Place = field(repr=False)

    def line(self, path: Steps = ()) -> int:
        """The line of a field; where it is not there, that of the innermost thing around it that is."""
        place = self.place
        for step in path:
            if step not in place.below:
                break
            place = place.below[step]
        return place.line

    @property
    def api_version(self) -> str:
        """Such as `fairpool.dev/v1alpha1`; empty where it has none."""
        return _text(self.object, "apiVersion")

    @property
    def kind(self) -> str:
        """Such as `FairPool`; empty where it has none."""
        return _text(self.object, "kind")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a file that is no resource, and why."""

    file: Path
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Manifests:
    """What a reading came to: the files that were looked into, and what is in them, in the order in which it is."""

    files: tuple[Path, ...]
    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]


def read(paths: Sequence[Path]) -> Manifests:
    """Every resource in files, and in the `.yaml` and `.yml` files below directories; `-` is the standard input.

    Raises:
        CannotStart: there is no such file or directory.
    """
    files = files_in(paths)
    found = [each for file in files for each in _read_file(file)]
    return Manifests(
        files,
        tuple(each for each in found if isinstance(each, Document)),
        tuple(each for each in found if isinstance(each, Problem)),
    )


def files_in(paths: Sequence[Path]) -> tuple[Path, ...]:
    """The files that `read` looks into; raises what it raises."""
    return tuple(dict.fromkeys(file for path in paths for file in _files(path)))


def _files(path: Path) -> Iterator[Path]:
    if path == STDIN:
        yield path
    elif path.is_dir():
        found = (each for each in path.rglob("*") if each.suffix in _SUFFIXES)
        shown = (each for each in found if not any(part.startswith(".") for part in each.relative_to(path).parts))
        yield from sorted(each for each in shown if each.is_file())
    elif path.exists():
        yield path
    else:
        raise CannotStart(f"there is no file or directory {path}")


def _read_file(file: Path) -> Iterator[Document | Problem]:
    try:
        content = sys.stdin.buffer.read() if file == STDIN else file.read_bytes()
    except OSError as error:
        yield Problem(file, 1, f"cannot be read: {error.strerror}")
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        yield Problem(file, line, "is not UTF-8: save the file in that encoding")
        return
    yield from read_text(text, file)


def read_text(text: str, file: Path) -> Iterator[Document | Problem]:
    """The same of a text that is, or would be, in a file."""
    for first_line, part in _parts(text):
        loader = _Loader(part)
        try:
            while loader.check_node():
                node = loader.get_node()
                assert node is not None
                yield from _documents(node, file, first_line)
        except NoResource as problem:
            yield Problem(file, problem.line + first_line, problem.message)
        except yaml.YAMLError as error:
            line, message = _in_words(error, part)
            yield Problem(file, line + first_line, message)
        finally:
            loader.dispose()


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """The documents of a text, each with the number of lines before it, so that one that is broken is so alone."""
    begin = first_line = 0
    for found in _SEPARATOR.finditer(text):
        part = text[begin : found.start()]
        if not any(line.startswith("%") for line in part.splitlines()):  # directives belong to what follows them
            yield first_line, part
            begin, first_line = found.start(), first_line + part.count("\n")
    yield first_line, text[begin:]


def _documents(node: yaml.Node, file: Path, first_line: int) -> Iterator[Document | Problem]:
    builder = _Builder(first_line)
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
    if not document.kind.endswith("List") or not isinstance(items, list):
        yield document
        return
    kind = document.kind.removesuffix("List")
    of_one_kind = {"apiVersion": document.api_version, "kind": kind} if kind else {}
    for number, item in enumerate(items):
        place = document.place.below["items"].below[number]
        if isinstance(item, dict):
            yield from _flattened(Document(document.file, {**of_one_kind, **item}, place))
        else:
            yield Problem(document.file, place.line, "is not a resource: each of items has to be a mapping")


class _Loader(_SafeLoader):
    """Composes nodes, and decides nothing about texts without quotes but that they have none."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return _PLAIN
        tag: str = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]  # the stubs have no types
        return tag


class _Builder:
    """Makes plain data of the nodes of one document, and notes which names are given twice in one mapping."""

    def __init__(self, first_line: int) -> None:
        self.twice: list[tuple[int, str]] = []
        self._first_line = first_line
        self._values = 0

    def build(self, node: yaml.Node, depth: int = 0) -> tuple[Any, Place]:
        """The data of a node, and its places."""
        self._values += 1
        if self._values > _MOST_VALUES:
            raise NoResource(node.start_mark.line + 1, f"holds more than {_MOST_VALUES} values: use fewer aliases")
        if depth > _DEEPEST:
            raise NoResource(node.start_mark.line + 1, "is nested too deeply")
        line = self._first_line + node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, line, depth)
        if isinstance(node, yaml.SequenceNode):
            built = [self.build(item, depth + 1) for item in node.value]
            return [value for value, _ in built], Place(line, dict(enumerate(place for _, place in built)))
        return _scalar(node), Place(line)

    def _mapping(self, node: yaml.MappingNode, line: int, depth: int) -> tuple[dict[str, Any], Place]:
        own: dict[str, tuple[Any, Place]] = {}
        merged: dict[str, tuple[Any, Place]] = {}
        for name_node, value_node in node.value:
            if _is_merge(name_node):
                for value, place in self._merged(value_node, depth):
                    merged = {name: (value[name], place.below[name]) for name in value} | merged
                continue
            name = _name(name_node)
            value, place = self.build(value_node, depth + 1)
            # Of a field the line is that of its name, wherever its value is.
            at = Place(self._first_line + name_node.start_mark.line + 1, place.below)
            if name in own:
                self.twice.append((at.line, f"{name}: is given twice in one mapping: remove one"))
            own[name] = value, at
        together = merged | own
        return (
            {name: value for name, (value, _) in together.items()},
            Place(line, {name: place for name, (_, place) in together.items()}),
        )

    def _merged(self, node: yaml.Node, depth: int) -> Iterable[tuple[dict[str, Any], Place]]:
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for each in nodes:
            if not isinstance(each, yaml.MappingNode):
                raise NoResource(each.start_mark.line + 1, "<< takes mappings only")
            yield self.build(each, depth + 1)


_PLAIN: Final = "plain"
_TAG: Final = "tag:yaml.org,2002:"
_INT: Final = re.compile(r"[-+]?(0b[01]+|0o?[0-7]+|0x[0-9a-fA-F]+|0|[1-9][0-9]*)")
_OCTAL: Final = re.compile(r"[-+]?0[0-7]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: Final[Mapping[str, bool | None]] = {
    form: value
    for word, value in (
        *dict.fromkeys(("y", "yes", "true", "on"), True).items(),
        *dict.fromkeys(("n", "no", "false", "off"), False).items(),
        *dict.fromkeys(("", "~", "null"), None).items(),
    )
    for form in (word, word.capitalize(), word.upper())
}
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "float": (int, float),
    "int": (int,),
    "null": (type(None),),
}


def _scalar(node: yaml.Node) -> bool | int | float | str | None:
    """What a text is: a truth, a number, nothing, or a text; numbers as JSON carries them to the server."""
    text: str = node.value
    if node.tag == _PLAIN:
        return _resolved(text, node)
    tag = node.tag.removeprefix(_TAG)
    if tag in {"str", "timestamp", "!"}:
        return text
    value = _resolved(text, node)
    if tag not in _KINDS or not isinstance(value, _KINDS[tag]):
        raise NoResource(node.start_mark.line + 1, "has a tag that is not for it: remove the tag")
    return value


def _resolved(text: str, node: yaml.Node) -> bool | int | float | str | None:
    if text in _WORDS:
        return _WORDS[text]
    if text.lstrip("+-").lower() in {".inf", ".nan"}:
        raise NoResource(node.start_mark.line + 1, "holds a number that JSON does not have")
    plain = text.replace("_", "")
    if plain[:1] not in "+-.0123456789":
        return text
    try:
        if _INT.fullmatch(plain):
            return _as_json(int(plain, 8) if _OCTAL.fullmatch(plain) else int(plain, 0))
        return _as_json(float(plain)) if _FLOAT.fullmatch(plain) else text
    except (ValueError, OverflowError):
        raise NoResource(node.start_mark.line + 1, "holds a number that is too large") from None


def _as_json(number: float) -> int | float:
    """A whole number is one however it was written; beyond 64 bits there are only floats."""
    whole = int(number)
    fits = -(2**63) <= whole < 2**63
    return whole if whole == number and fits else float(number)


def _is_merge(node: yaml.Node) -> bool:
    return node.tag == _TAG + "merge" or (node.tag == _PLAIN and node.value == "<<")


def _name(node: yaml.Node) -> str:
    value = _scalar(node) if isinstance(node, yaml.ScalarNode) else None
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        raise NoResource(node.start_mark.line + 1, "has a field whose name is no text")
    return str(value)


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


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
