"""Plain data out of one document's YAML nodes, with the place of everything in it.

What always holds: an alias cannot blow a small text up, and a name that is given twice in one mapping is noted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import yaml

from fairpool_operator.errors import NoResource
from fairpool_operator.manifests.documents import Place
from fairpool_operator.manifests.scalars import is_merge, scalar

_MOST_REPEATED: Final = 100_000
DEEPEST: Final = 100
"""How many mappings and lists may be in each other."""


class Builder:
    """Makes plain data of the nodes of one document, and notes which names are given twice in one mapping."""

    def __init__(self, first_line: int) -> None:
        self.twice: list[tuple[int, str]] = []
        self._first_line = first_line
        self._built: set[int] = set()
        self._repeated = 0

    def build(self, node: yaml.Node, depth: int = 0) -> tuple[Any, Place]:
        """The data of a node, and its places."""
        self._repeated += id(node) in self._built
        self._built.add(id(node))
        if self._repeated > _MOST_REPEATED:
            raise NoResource(node.start_mark.line + 1, f"repeats more than {_MOST_REPEATED} values: use fewer aliases")
        if depth > DEEPEST:
            raise NoResource(node.start_mark.line + 1, "is nested too deeply")
        line = self._first_line + node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, line, depth)
        if isinstance(node, yaml.SequenceNode):
            built = [self.build(item, depth + 1) for item in node.value]
            return [value for value, _ in built], Place(line, dict(enumerate(place for _, place in built)))
        return scalar(node), Place(line)

    def _mapping(self, node: yaml.MappingNode, line: int, depth: int) -> tuple[dict[str, Any], Place]:
        own: dict[str, tuple[Any, Place]] = {}
        merged: dict[str, tuple[Any, Place]] = {}
        for name_node, value_node in node.value:
            if is_merge(name_node):
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


def _name(node: yaml.Node) -> str:
    value = scalar(node) if isinstance(node, yaml.ScalarNode) else None
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        raise NoResource(node.start_mark.line + 1, "has a field whose name is no text")
    return str(value)
