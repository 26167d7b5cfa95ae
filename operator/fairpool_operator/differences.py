"""Whether what is there holds everything that is wanted, so that at rest nothing is written.

Leaf by leaf: what the server filled in, and what others added, is no difference. The server's own record of who set
what (`managedFields`) tells the rest: which lists are merged and by which keys, which leaves somebody took over from
us, and which we once set and want no longer. So no schema is known here, and what always holds is: once `wanted` has
been applied under our name, there is no difference; after anybody changed or took over a leaf of it, there is.

Amounts of resources are compared by value, for the server may write them in another way than they were given.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

MANAGER: Final = "fairpool-operator"
"""Under which the operator applies everything."""

_WHOLE: Final[Mapping[str, Any]] = {}
"""Set as a whole: all beneath it is ours."""

Steps = tuple[str, ...]
"""The way to a field in the server's record: `("f:spec", 'k:{"port":80}')`."""

Pointer = tuple[str | int, ...]
"""The way to a field in an object: `("spec", "ports", 0)`."""

_IDENTITY: Final = frozenset({"name", "namespace", "uid", "resourceVersion"})
"""Of `metadata`: says which object it is, and is nobody's field."""

_AMOUNTS: Final = frozenset({"limits", "requests"})
_POWERS: Final = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_SUFFIXES: Final = {
    **{suffix: Decimal(1000) ** power for suffix, power in _POWERS.items()},
    **{f"{suffix.upper()}i": Decimal(1024) ** power for suffix, power in _POWERS.items() if power > 0},
}


def difference(wanted: Mapping[str, Any], there: Mapping[str, Any], *, manager: str = MANAGER) -> tuple[str, ...]:
    """The paths at which what is there is not what is wanted, or not ours; none: there is nothing to apply."""
    fields = {name: value for name, value in wanted.items() if name not in {"apiVersion", "kind"}}
    metadata = {name: value for name, value in wanted.get("metadata", {}).items() if name not in _IDENTITY}
    if metadata:
        fields["metadata"] = metadata
    else:
        fields.pop("metadata", None)
    ours = owned_fields(there, manager)
    return tuple(dict.fromkeys((*_missing(fields, there, ours, ""), *map(_shown, _leftover(fields, ours)))))


def excerpt(wanted: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """What is wanted at these paths, with every list whole: a merge patch that leaves nobody else's items in them."""
    cut: dict[str, Any] = {}
    for path in paths:
        *above, last = path.partition("[")[0].rstrip(".").split(".")
        value: Any = wanted
        for name in (*above, last):
            value = value.get(name, _LACKING) if isinstance(value, Mapping) else _LACKING
        if value is not _LACKING:
            within = cut
            for name in above:
                within = within.setdefault(name, {})
            within[last] = value
    return cut


def owned_fields(there: Mapping[str, Any], manager: str = MANAGER) -> Mapping[str, Any] | None:
    """What the manager has applied to an object, as the server records it; None if nothing."""
    for entry in there.get("metadata", {}).get("managedFields") or ():
        if entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource"):
            fields: Mapping[str, Any] = entry.get("fieldsV1") or {}
            return fields or None
    return None


def left_by_patches(
    wanted: Mapping[str, Any], there: Mapping[str, Any], *, subresource: str = "", manager: str = MANAGER
) -> list[Pointer]:
    """Where there is something that the manager once set by a patch and wants no longer, the last in a list first.

    The server records that apart from what was applied, so an apply without it does not take it away.
    """
    found = []
    for entry in there["metadata"].get("managedFields") or ():
        if (entry.get("manager"), entry.get("operation")) != (manager, "Update"):
            continue
        if (entry.get("subresource") or "") == subresource:
            left = (_pointer(steps, there) for steps in _leftover(wanted, entry.get("fieldsV1")))
            found += [each for each in left if each is not None]
    return sorted(found, reverse=True)


def _missing(wanted: Any, there: Any, ours: Mapping[str, Any] | None, path: str) -> Iterator[str]:
    """Where `there` lacks a leaf of `wanted`, or has it from somebody else."""
    if ours is None:
        yield path or "metadata.managedFields"
    elif isinstance(wanted, Mapping) and wanted:
        if isinstance(there, Mapping):
            for name, value in wanted.items():
                below = ours if ours is _WHOLE else _below(ours, f"f:{name}")
                yield from _missing(value, there.get(name), below, _field(path, name))
        else:
            yield path
    elif isinstance(wanted, list) and wanted:
        yield from _missing_items(wanted, there if isinstance(there, list) else [], ours, path)
    elif not _equal(wanted, there, path):
        yield path


def _missing_items(wanted: list[Any], there: list[Any], ours: Mapping[str, Any], path: str) -> Iterator[str]:
    if ours is _WHOLE:
        if len(wanted) != len(there):
            yield path
            return
        for index, (each, found) in enumerate(zip(wanted, there, strict=True)):
            yield from _missing(each, found, _WHOLE, f"{path}[{index}]")
        return
    for each in wanted:
        step = _step_to(each, ours)
        if step is None:
            yield path
        elif step.startswith("k:"):
            key = json.loads(step[2:])
            found = next((item for item in there if _has(item, key)), None)
            yield from _missing(each, found, _below(ours, step), f"{path}[{_written(key)}]")
        elif each not in there:
            yield f"{path}[{each}]"


def _leftover(wanted: Any, ours: Mapping[str, Any] | None, above: Steps = ()) -> Iterator[Steps]:
    """What is ours and not wanted any more."""
    for step, below in (ours or {}).items():
        kind, _, name = step.partition(":")
        match kind:
            case "f":
                value = wanted.get(name, _LACKING) if isinstance(wanted, Mapping) else _LACKING
            case "k":
                value = _item(wanted, json.loads(name))
            case "v":
                value = _member(wanted, json.loads(name))
            case _:
                continue
        if value is _LACKING:
            yield (*above, step)
        else:
            yield from _leftover(value, below, (*above, step))


def _shown(steps: Steps) -> str:
    """A way as people read it."""
    path = ""
    for step in steps:
        kind, _, name = step.partition(":")
        path = _field(path, name) if kind == "f" else f"{path}[{_written(json.loads(name)) if kind == 'k' else name}]"
    return path


def _pointer(steps: Steps, there: Any) -> Pointer | None:
    """The same way to what is there now; None if nothing is."""
    pointer: list[str | int] = []
    for step in steps:
        kind, _, name = step.partition(":")
        at: str | int | None
        if kind == "f":
            at = name if isinstance(there, Mapping) and name in there else None
        else:
            sought, items = json.loads(name), there if isinstance(there, list) else ()
            matches = (_has(each, sought) if kind == "k" else each == sought for each in items)
            at = next((number for number, does in enumerate(matches) if does), None)
        if at is None:
            return None
        pointer.append(at)
        there = there[at]
    return tuple(pointer)


_LACKING: Final = object()


def _below(ours: Mapping[str, Any], step: str) -> Mapping[str, Any] | None:
    below = ours.get(step)
    return _WHOLE if below is not None and not below else below


def _step_to(item: Any, ours: Mapping[str, Any]) -> str | None:
    """Under which key or value of a merged list this item is ours."""
    for step in ours:
        kind, _, name = step.partition(":")
        if kind == "k" and isinstance(item, Mapping):
            key = json.loads(name)
            if all(item.get(field, value) == value for field, value in key.items()):
                return step
        elif kind == "v" and json.loads(name) == item:
            return step
    return None


def _item(wanted: Any, key: Mapping[str, Any]) -> Any:
    """The item with this key; the server may have filled in a part of the key."""
    items = wanted if isinstance(wanted, Sequence) and not isinstance(wanted, str) else ()
    for each in items:
        if isinstance(each, Mapping) and all(each.get(field, value) == value for field, value in key.items()):
            return each
    return _LACKING


def _member(wanted: Any, value: Any) -> Any:
    return value if isinstance(wanted, list) and value in wanted else _LACKING


def _has(item: Any, key: Mapping[str, Any]) -> bool:
    return isinstance(item, Mapping) and all(item.get(field) == value for field, value in key.items())


def _equal(wanted: Any, there: Any, path: str) -> bool:
    if isinstance(wanted, (Mapping, list)):
        return there is None or isinstance(there, type(wanted))  # Empty: whatever is in it is not ours.
    if isinstance(wanted, bool) or isinstance(there, bool):
        return wanted is there
    if wanted == there:
        return True
    return not _AMOUNTS.isdisjoint(path.split(".")) and _amount(wanted) == _amount(there) is not None


def _amount(value: Any) -> Decimal | None:
    """What a quantity such as `500m` or `1Gi` is worth; None if it is no quantity."""
    text = str(value)
    suffix = text[len(text.rstrip("numkKMGTPEi")) :]
    try:
        return Decimal(text.removesuffix(suffix)) * _SUFFIXES[suffix]
    except (InvalidOperation, KeyError):
        return None


def _field(path: str, name: str) -> str:
    shown = name if "." not in name else f"[{name}]"
    return f"{path}.{shown}" if path else shown


def _written(key: Mapping[str, Any]) -> str:
    return ",".join(f"{field}={value}" for field, value in key.items())
