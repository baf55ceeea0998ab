"""Type checks: whether a server can decode or apply an object.

`find_decode_problem` is the error of creating or replacing a built-in object: one message of the
JSON decoder of Go, with status 400 and no causes. `find_typed_problems` is the error of an apply:
structured-merge-diff 6.3.3 names each field (`containers[name="app"].image`). Both use the wording
of the server, with two differences. Go visits fields in any order and stops at the first unknown
one; here all are reported. And the Go names of string types and embedded structs (`VolumeSource`)
are lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.quantity import parse_quantity
from tidegate.schema.causes import format_float, format_json, format_value, quote
from tidegate.schema.shape import Merge, Shape, Type, find_child_shape
from tidegate.world.messages import Cause

UNKNOWN = ("unknown", "unknown field")
_is_timestamp = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)").fullmatch
_find_non_base64 = re.compile(r"[^A-Za-z0-9+/\r\n]").search
_JSON_TYPE_NAMES = {bool: "bool", dict: "object", list: "array", str: "string"}
_GO_TYPE_NAMES = {
    bool: "bool",
    dict: "map[string]interface {}",
    float: "float64",
    int: "int64",
    list: "[]interface {}",
    str: "string",
    type(None): "<nil>",
}
_ACCEPTED_TYPES: dict[Type, tuple[type[object], ...]] = {
    Type.ANY: (bool, dict, float, int, list, str),
    Type.ARRAY: (list,),
    Type.BOOLEAN: (bool,),
    Type.INTEGER: (int, float),
    Type.INT_OR_STRING: (int, str),
    Type.NUMBER: (int, float),
    Type.OBJECT: (dict,),
    Type.STRING: (str,),
}
_SCALARS = {Type.BOOLEAN: "bool", Type.NUMBER: "float64", Type.INT_OR_STRING: "int32"}
_BITS = {"int32": 31, "": 31, "int64": 63, "uint8": 8}
_BYTE = Shape(type=Type.INTEGER, merge=Merge.ATOMIC, format="uint8")


class _DecodeProblem(NamedTuple):
    """An error of the JSON decoder."""

    message: str
    """The message of the server."""
    is_final: bool = False
    """Whether a custom unmarshaller reports it, which discards earlier errors."""


def find_typed_problems(body: Json, shape: Shape) -> tuple[Cause, ...]:
    """Return why an object cannot be applied, by field, sorted. Empty if it can.

    Like `validatingObjectWalker` in `typed/validate.go` of structured-merge-diff 6.3.3.
    """
    causes: set[Cause] = set()
    _add_typed_problems(body, shape, "", causes)
    return tuple(sorted(causes))


def find_decode_problem(body: Json, shape: Shape) -> str:
    """Return why an object cannot be decoded as a built-in kind or metadata. Empty if it can.

    Like `Decode` in `pkg/runtime/serializer/json/json.go` of k8s.io/apimachinery 0.36.4.
    """
    problems: list[_DecodeProblem] = []
    _add_decode_problems(body, shape, (), "", problems)
    final = (problem.message for problem in problems if problem.is_final)
    return next(final, problems[0].message if problems else "")


def _add_typed_problems(value: Json, shape: Shape, path: str, causes: set[Cause]) -> None:
    """Add the causes to a set; every field of every object is visited, so it yields nothing."""
    if value is None:
        return
    if type(value) not in _ACCEPTED_TYPES[shape.type] and (problem := _mismatch(value, shape)):
        causes.add(Cause(path, "type", problem))
    elif isinstance(value, dict):
        for name, part in value.items():
            field = f"{path}.{name}" if path else name
            known_shape = find_child_shape(shape, name)
            if known_shape is None:
                causes.add(Cause(field, *UNKNOWN))
            else:
                _add_typed_problems(part, known_shape, field, causes)
    elif isinstance(value, list) and shape.items is not None:
        _add_item_problems(value, shape, path, causes)


def _mismatch(value: Json, shape: Shape) -> str:
    """Return the error for a value of another type than its field, or "" if it is accepted."""
    is_scalar = not isinstance(value, dict | list)
    match shape.type:
        case Type.OBJECT:
            return f"expected map, got &{{{_go_text(value)}}}"
        case Type.ARRAY:
            return f"expected list, got &{{{_go_text(value)}}}"
        case Type.STRING if shape.format in {"", "byte"}:
            return f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
        case Type.BOOLEAN:
            return f"expected boolean, got &{{{_go_text(value)}}}"
        case Type.INTEGER | Type.NUMBER:
            return f"expected numeric (int or float), got {_GO_TYPE_NAMES[type(value)]}"
        case Type.STRING if not is_scalar:
            return f"expected any scalar, got &{{{_go_text(value)}}}"
        case Type.INT_OR_STRING if shape.format and not is_scalar:
            return f"expected any scalar, got &{{{_go_text(value)}}}"
        case _:
            return ""


def _add_item_problems(value: list[Json], shape: Shape, path: str, causes: set[Cause]) -> None:
    seen: set[str] = set()
    for index, item in enumerate(value):
        problem = _item_problem(item, shape)
        if problem:
            causes.add(Cause(path, "type", f"element {index}: {problem}"))
            return
        element = _item_name(item, shape, index)
        if element in seen:
            causes.add(Cause(path, "type", f"duplicate entries for key {element}"))
        seen.add(element)
        if shape.items is not None:
            _add_typed_problems(item, shape.items(), path + element, causes)


def _item_problem(item: Json, shape: Shape) -> str:
    match shape.merge, item:
        case Merge.KEYED, None:
            return "associative list with keys may not have a null element"
        case Merge.KEYED, dict():
            if shape.key_defaults or any(key in item for key in shape.keys):
                return ""
            keys = " ".join(quote(key) for key in shape.keys)
            missing = "(and doesn't have default values for any key fields)"
            start = "associative list with keys has an element that omits all key fields"
            return f"{start} [{keys}] {missing}"
        case Merge.KEYED, _:
            return "associative list with keys may not have non-map elements"
        case Merge.SET, None:
            return "associative list without keys has an element that's an explicit null"
        case Merge.SET, dict():
            return "associative list without keys has an element that's a map type"
        case Merge.SET, list():
            return "not supported: associative list with lists as elements"
        case _:
            return ""


def _item_name(item: Json, shape: Shape, index: int) -> str:
    """Return how messages name an item: `[name="app"]`, `[="a"]`, `[0]`."""
    if shape.merge is Merge.SET:
        return f"[={_key_text(item)}]"
    if shape.merge is Merge.KEYED and isinstance(item, dict):
        key_values = {**shape.key_defaults, **{key: item[key] for key in shape.keys if key in item}}
        return (
            "["
            + ",".join(f"{key}={_key_text(key_values[key])}" for key in sorted(key_values))
            + "]"
        )
    return f"[{index}]"


def _key_text(value: Json) -> str:
    match value:
        case dict():
            return "".join(f"{name}={_key_text(part)}" for name, part in value.items())
        case list():
            return "[" + ",".join(_key_text(item) for item in value) + "]"
        case _:
            return format_value(value)


def _go_text(value: Json) -> str:
    """Return a value as the Go format `%v` prints it."""
    match value:
        case None:
            return "<nil>"
        case str():
            return value
        case float():
            return format_float(value)
        case list():
            return "[" + " ".join(_go_text(item) for item in value) + "]"
        case dict():
            return (
                "map[" + " ".join(f"{name}:{_go_text(value[name])}" for name in sorted(value)) + "]"
            )
        case _:
            return format_json(value)


def _go_syntax(value: Json) -> str:
    """Return a value as the Go format `%#v` prints it."""
    match value:
        case None:
            return "interface {}(nil)"
        case list():
            return "[]interface {}{" + ", ".join(_go_syntax(item) for item in value) + "}"
        case dict():
            parts = (f"{quote(name)}:{_go_syntax(value[name])}" for name in sorted(value))
            return "map[string]interface {}{" + ", ".join(parts) + "}"
        case str():
            return quote(value)
        case _:
            return _go_text(value)


def _add_decode_problems(
    value: Json, shape: Shape, path: tuple[str, ...], owner: str, problems: list[_DecodeProblem]
) -> None:
    """Add the problems to a list; every field of every object is visited, so it yields nothing."""
    if value is None or shape.type is Type.ANY:
        return
    match value:
        case dict() if shape.type is Type.OBJECT:
            _add_field_problems(value, shape, path, owner, problems)
        case list() if shape.type is Type.ARRAY or shape.format == "byte":
            items = _BYTE if shape.items is None else shape.items()
            for item in value:
                _add_decode_problems(item, items, path, owner, problems)
        case str() if shape.type is Type.STRING and not shape.format:
            pass
        case _:
            problems += _scalar_problems(value, shape, path, owner)


def _add_field_problems(
    value: dict[str, Json],
    shape: Shape,
    path: tuple[str, ...],
    owner: str,
    problems: list[_DecodeProblem],
) -> None:
    struct, values = shape.name.rpartition(".")[2], shape.values
    for name, part in value.items():
        if (find_shape := shape.fields.get(name)) is not None:
            _add_decode_problems(part, find_shape(), (*path, name), struct, problems)
        elif values is not None:
            _add_decode_problems(part, values(), path, owner, problems)


def _scalar_problems(
    value: Json, shape: Shape, path: tuple[str, ...], owner: str
) -> Iterator[_DecodeProblem]:
    if shape.format == "quantity":
        try:
            parse_quantity(value if isinstance(value, str) else format_json(value))
        except ValueError as error:
            yield _DecodeProblem(str(error), is_final=True)
    elif isinstance(value, str) and shape.type is Type.STRING:
        yield from _text_problems(value, shape.format)
    elif actual := _actual_type(value, shape):
        target = f"struct field {owner}.{'.'.join(path)}" if path else "value"
        message = f"json: cannot unmarshal {actual} into Go {target} of type {_go_type(shape)}"
        is_final = shape.type is Type.INT_OR_STRING or shape.format == "date-time"
        yield _DecodeProblem(message, is_final=is_final)


def _actual_type(value: Json, shape: Shape) -> str:
    """Return the actual type of a value, or "" if it is accepted."""
    match value:
        case bool():
            return "" if shape.type is Type.BOOLEAN else "bool"
        case str():
            return "" if shape.type is Type.INT_OR_STRING else "string"
        case int() if shape.type in {Type.INTEGER, Type.INT_OR_STRING}:
            bound = 2 ** _BITS[shape.format]
            return "" if -bound <= value < bound else f"number {value}"
        case float() if shape.type in {Type.INTEGER, Type.INT_OR_STRING}:
            return f"number {value}"
        case int() | float():
            return "" if shape.type is Type.NUMBER else "number"
        case _:
            return _JSON_TYPE_NAMES[type(value)]


def _text_problems(value: str, format_: str) -> Iterator[_DecodeProblem]:
    if format_ == "date-time" and not _is_timestamp(value):
        layout = "2006-01-02T15:04:05Z07:00"
        message = (
            f'parsing time {quote(value)} as "{layout}": cannot parse {quote(value)} as "2006"'
        )
        yield _DecodeProblem(message, is_final=True)
    elif format_ == "byte":
        text = value.rstrip("=\r\n")
        wrong = _find_non_base64(text)
        if wrong or len(value.replace("\n", "").replace("\r", "")) % 4:
            offset = wrong.start() if wrong else len(value) - len(value) % 4
            yield _DecodeProblem(f"illegal base64 data at input byte {offset}")


def _go_type(shape: Shape) -> str:
    if shape.name:
        return ".".join(shape.name.split(".")[-2:])
    match shape.type:
        case Type.ARRAY:
            return "[]" + (_go_type(shape.items()) if shape.items else "string")
        case Type.OBJECT:
            return "map[string]" + (_go_type(shape.values()) if shape.values else "string")
        case Type.INTEGER:
            return shape.format
        case Type.STRING:
            return "[]uint8" if shape.format == "byte" else "string"
        case other:
            return _SCALARS.get(other, "string")
