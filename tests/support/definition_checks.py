"""Compares a CustomResourceDefinition with the model that reads its resources, field by field, in both directions.

A difference is told as `place: what`. Where a model's field is of a type of its own (a weight, a duration), its bounds
are those of the definition; where it is plain, it takes whatever the definition admits, and is only passed on.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from fairpool_gateway.config.quantities import parse_duration, parse_instant, parse_size

Schema = Mapping[str, Any]

_PLAIN = {int: "integer", str: "string", bool: "boolean", float: "number", datetime: "date-time"}
_QUANTITIES: dict[Any, str] = {parse_duration: "duration", parse_size: "int-or-string", parse_instant: "date-time"}


def differences(schema: Schema, model: type[BaseModel], place: str = "") -> Iterator[str]:
    """Whatever the two do not have in common."""
    fields = {str(field.alias or name): field for name, field in model.model_fields.items()}
    fields |= {str(field.alias): _computed(field) for field in model.model_computed_fields.values()}
    known: Mapping[str, Schema] = schema.get("properties", {})
    for name in sorted(fields.keys() ^ known.keys()):
        yield f"{place}.{name}: only in the {'model' if name in fields else 'definition'}"
    for name in sorted(fields.keys() & known.keys()):
        where, field, part = f"{place}.{name}", fields[name], known[name]
        if (name in schema.get("required", ())) != field.is_required():
            yield f"{where}: required by the {'model' if field.is_required() else 'definition'} only"
        yield from _default(part, field, where)
        yield from _value(part, field.rebuild_annotation(), where)


def special_texts(model: type[BaseModel], place: str = "") -> Iterator[tuple[str, Any]]:
    """The places of texts that a model holds to a rule of its own, each with its type."""
    for name, field in model.model_fields.items():
        yield from _special_texts(field.rebuild_annotation(), f"{place}.{field.alias or name}")


def _special_texts(annotation: Any, where: str) -> Iterator[tuple[str, Any]]:
    annotation = _without_none(annotation)
    base = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    match kind_of_type(annotation):
        case "object":
            yield from special_texts(base, where)
        case "array":
            yield from _special_texts(get_args(base)[0], f"{where}[]")
        case "string" if annotation is not str:
            yield where, annotation


def _computed(field: Any) -> FieldInfo:
    return FieldInfo(annotation=field.return_type, default="")


def _default(schema: Schema, field: FieldInfo, where: str) -> Iterator[str]:
    if field.is_required():
        if "default" in schema:
            yield f"{where}: default in the definition only"
        return
    default = field.get_default(call_default_factory=True)
    if "default" in schema:
        said = TypeAdapter(field.rebuild_annotation()).validate_python(schema["default"])
        if said != default:
            yield f"{where}: default {said!r} in the definition, {default!r} in the model"
    elif not is_nothing(default) and not where.startswith(".status"):
        yield f"{where}: default {default!r} in the model only"


def is_nothing(default: object) -> bool:
    """Whether a default says no more than that nothing was said."""
    if isinstance(default, BaseModel):
        return all(is_nothing(value) for _, value in default)
    return default is None or default in ((), {})


def _value(schema: Schema, annotation: Any, where: str) -> Iterator[str]:
    annotation = _without_none(annotation)
    base = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    expected = kind_of_type(annotation)
    if kind_of_schema(schema) != expected:
        yield f"{where}: {kind_of_schema(schema)} in the definition, {expected} in the model"
        return
    match expected:
        case "object" if get_origin(base) is None:
            yield from differences(schema, base, where)
        case "map":
            yield from _value(schema["additionalProperties"], get_args(base)[1], f"{where}.*")
        case "array":
            yield from _value(schema["items"], get_args(base)[0], f"{where}[]")
        case "enum":
            yield from _choices(schema, base, where)
        case "integer":
            yield from _bounds(schema, annotation, where)


def kind_of_schema(schema: Schema) -> str:
    """What a field of the definition holds."""
    if schema.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    if "enum" in schema:
        return "enum"
    if schema.get("format") == "date-time" and not _is_opaque_time(schema):
        return "date-time"
    if any("duration(self)" in rule["rule"] for rule in schema.get("x-kubernetes-validations", ())):
        return "duration"
    if "additionalProperties" in schema:
        return "map"
    return str(schema["type"])


def _is_opaque_time(schema: Schema) -> bool:
    """A time that the operator only passes on."""
    return "pattern" not in schema


def kind_of_type(annotation: Any) -> str:
    """The same of a model's field."""
    annotation = _without_none(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        checks = [note.func for note in arguments[1:] if isinstance(note, BeforeValidator)]
        return next((_QUANTITIES[check] for check in checks if check in _QUANTITIES), kind_of_type(arguments[0]))
    if origin in {Union, types.UnionType} and set(arguments) == {int, str}:
        return "int-or-string"
    if origin is not None:
        return "enum" if origin is Literal else "array" if origin is tuple else "map"
    if issubclass(annotation, Enum):
        return "enum"
    return "object" if issubclass(annotation, BaseModel) else _PLAIN[annotation]


def _without_none(annotation: Any) -> Any:
    """The type of an optional field, with what is noted about it."""
    notes: tuple[Any, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, *rest = get_args(annotation)
        notes = tuple(note for note in rest if not isinstance(note, FieldInfo))
    if get_origin(annotation) in {Union, types.UnionType}:
        kept = [each for each in get_args(annotation) if each is not type(None)]
        annotation = kept[0] if len(kept) == 1 else Union[tuple(kept)]  # noqa: UP007 - of a number of them
    return Annotated[(annotation, *notes)] if notes else annotation


def _choices(schema: Schema, annotation: Any, where: str) -> Iterator[str]:
    choices = get_args(annotation) or tuple(each.value for each in annotation)
    if set(schema["enum"]) != set(choices):
        yield f"{where}: {schema['enum']} in the definition, {list(choices)} in the model"


def _bounds(schema: Schema, annotation: Any, where: str) -> Iterator[str]:
    takes = TypeAdapter(annotation)
    for bound, step in (("minimum", -1), ("maximum", 1)):
        if bound not in schema:
            continue
        if not admits(takes, schema[bound]):
            yield f"{where}: its {bound} {schema[bound]} is refused by the model"
        if annotation is not int and admits(takes, schema[bound] + step):
            yield f"{where}: {schema[bound] + step} is beyond its {bound} and taken by the model"


def admits(takes: TypeAdapter[Any], value: object) -> bool:
    """Whether a model's field takes the value."""
    try:
        takes.validate_python(value)
    except ValidationError:
        return False
    return True
