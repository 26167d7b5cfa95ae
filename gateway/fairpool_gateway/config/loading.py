"""Reading a configuration from text, and writing one.

A text that opens with `{"` is read as JSON, which is fast enough for thousands of tenants. Any other is YAML,
restricted to what JSON can say: a date is a text, and there are no tags and no recursion. What always holds: `load`
raises `ConfigInvalid` and nothing else, whatever the text; what `dump` wrote loads back equal.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import yaml
from pydantic import ValidationError
from yaml.constructor import ConstructorError
from yaml.reader import ReaderError

from fairpool_gateway.config.pool import Path, PoolConfig
from fairpool_gateway.config.problems import describe, given_twice
from fairpool_gateway.errors import ConfigInvalid

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # a PyYAML that was built without libyaml
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]  # has the same methods, and is slower

_JSON: Final = re.compile(r'\s*\{\s*["}]')
_QUOTED: Final = re.compile(r"'(?!<)[^']{2,}'|('[^']*')")
"""What YAML's errors quote: names from the text; or single characters and, in angle brackets, kinds of tokens (1)."""


def load(text: str, *, source: str, strict: bool) -> PoolConfig:
    """The configuration in a YAML or JSON text.

    Args:
        text: the content of a file or of a Secret.
        source: what to call it where there is no path inside it to name.
        strict: whether an unknown field is a problem, as for a person who may have mistyped it; otherwise it is
            ignored, as for a gateway whose operator is newer than itself.

    Raises:
        ConfigInvalid: it cannot be used; every problem that was found is in it.
    """
    data = _parse(text, source)
    if data is None:
        raise ConfigInvalid([f"{source}: is empty"])
    try:
        return PoolConfig.model_validate(data, by_alias=True, by_name=False, extra="forbid" if strict else "ignore")
    except ValidationError as error:
        problems = describe(error, data, source)
    # Outside the handler, so that no traceback shows the validation error: it quotes the file, keys and all.
    raise ConfigInvalid(problems)


def dump(config: PoolConfig) -> str:
    """The configuration as compact JSON, with every default written out."""
    return config.model_dump_json(exclude_none=True)


def _parse(text: str, source: str) -> object:
    """The plain data in the text."""
    try:
        data, repeating = _parse_json(text) if _JSON.match(text) else _parse_yaml(text)
        problems = list(_repeats(data, source)) if repeating else []
    except json.JSONDecodeError as error:
        problems = [f"{source}, line {error.lineno}, column {error.colno}: {error.msg}"]
    except yaml.YAMLError as error:
        problems = [f"{source}{_in_words(error, text)}"]
    except RecursionError:
        problems = [f"{source}: is nested too deeply"]
    except ValueError:
        problems = [f"{source}: holds a number that is too long, or half of a character"]
    if problems:
        raise ConfigInvalid(problems)
    return data


class _Repeating(dict[Any, Any]):
    """A mapping whose text names one field, or several, more than once."""

    def __init__(self, data: dict[Any, Any], repeated: list[Any]) -> None:
        super().__init__(data)
        self.repeated = repeated


def _repeated(names: Iterable[Any]) -> list[Any]:
    return [name for name, times in Counter(names).items() if times > 1]


def _repeats(data: object, source: str) -> Iterator[str]:
    """A problem for each field that is given more than once."""
    seen: set[int] = set()
    waiting: list[tuple[Path, object]] = [((), data)]
    while waiting:
        path, value = waiting.pop()
        if id(value) in seen:  # it stands in several places, by an alias
            continue
        seen.add(id(value))
        if isinstance(value, _Repeating):
            yield from (given_twice((*path, str(name)), source) for name in value.repeated)
        if isinstance(value, dict):
            waiting.extend(((*path, str(name)), item) for name, item in reversed(value.items()))
        elif isinstance(value, list):
            waiting.extend(((*path, index), item) for index, item in reversed(list(enumerate(value))))


def _parse_json(text: str) -> tuple[Any, bool]:
    repeating = False

    def mapping(fields: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeating
        data = dict(fields)
        if len(data) == len(fields):
            return data
        repeating = True
        return _Repeating(data, _repeated(name for name, _ in fields))

    return json.loads(text, object_pairs_hook=mapping), repeating


def _parse_yaml(text: str) -> tuple[Any, bool]:
    loader = _Loader(text)
    try:
        return loader.get_single_data(), loader.repeating
    finally:
        loader.dispose()


class _Loader(_SafeLoader):
    """Reads what JSON could say too, and notes whether a field is given more than once."""

    repeating = False


def _scalar(loader: _Loader, node: yaml.ScalarNode) -> object:
    """A number, a truth or nothing; a tag may have claimed that of any text."""
    try:
        return _SafeLoader.yaml_constructors[node.tag](loader, node)
    except (ValueError, LookupError):
        raise ConstructorError(None, None, "not a value of that kind", node.start_mark) from None


def _sequence(loader: _Loader, node: yaml.SequenceNode) -> list[Any]:
    return loader.construct_sequence(node, deep=True)


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    """A mapping. Fields that `<<` brings in may be given again, for that is its use."""
    own = [name for name, _ in node.value if not name.tag.endswith(":merge")]
    data = loader.construct_mapping(node, deep=True)
    repeated = _repeated(loader.construct_object(name, deep=True) for name in own)
    if not repeated:
        return data
    loader.repeating = True
    return _Repeating(data, repeated)


def _refuse(_loader: _Loader, node: yaml.Node) -> object:
    raise ConstructorError(None, None, "only what JSON could say is read here, and no tags", node.start_mark)


_TAG: Final = "tag:yaml.org,2002:"
_RESOLVED: Final = {_TAG + kind for kind in ("bool", "float", "int", "merge", "null")}
"""What a text without quotes may turn out to be, beside a text: no date, so that a key may be named for one."""

_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in _RESOLVED]
    for first, resolvers in _SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.yaml_constructors = {
    _TAG + "str": _SafeLoader.yaml_constructors[_TAG + "str"],
    **dict.fromkeys((_TAG + kind for kind in ("bool", "float", "int", "null")), _scalar),
    _TAG + "seq": _sequence,
    _TAG + "map": _mapping,
    None: _refuse,
}


def _in_words(error: yaml.YAMLError, text: str) -> str:
    """Where the text stops being YAML, and why; nothing of the text itself, for it may be a key."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        why = ", ".join(filter(None, (error.context, error.problem)))
        return f"{where}: {_QUOTED.sub(lambda quoted: quoted[1] or '...', why)}"
    if isinstance(error, ReaderError):
        before = text[: error.position]
        return f", line {before.count(chr(10)) + 1}: holds a character that YAML does not allow"
    return ": not YAML"
