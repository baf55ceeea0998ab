"""Validation of an object against the schema of its CRD.

Checked: types, required fields, enumerations, bounds of numbers, lengths of strings, lists and
objects, patterns, `date-time`, and duplicates in keyed lists and sets. Not checked:
`x-kubernetes-validations`, `allOf`, `anyOf`, `oneOf`, `not`, `multipleOf`, other string formats,
and the schema of `metadata`. Built-in kinds are decoded (`types`), not checked against their
schema; `validation.requirements` has the further rules for them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from functools import cache

from tidegate.model.k8s.objects import Json
from tidegate.schema import causes
from tidegate.schema.shape import Merge, Rules, Shape, Type
from tidegate.world.messages import Cause

_TYPE_NAMES: dict[Type, tuple[str, ...]] = {each: (each.value,) for each in Type} | {
    Type.ANY: (),
    Type.INT_OR_STRING: ("integer", "string"),
}
_JSON_NAMES = {
    bool: "boolean",
    dict: "object",
    float: "number",
    int: "integer",
    list: "array",
    str: "string",
    type(None): "null",
}
_FORMATS = {"integer": "int64", "number": "float64"}
_RANGES = {"int32": 2**31, "int64": 2**63}
_MAX_SAFE_INTEGER = 2**53 - 1
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "space": r"\s",
    "upper": "A-Z",
    "word": r"\w",
    "xdigit": "0-9A-Fa-f",
}
"""POSIX character classes, which Python does not support."""
_is_timestamp = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]\d\d:?\d\d)?", re.ASCII
).fullmatch


def find_crd_problems(body: Json, shape: Shape) -> tuple[Cause, ...]:
    """Return all problems of an object, sorted.

    Like `ValidateCustomResource` in `pkg/apiserver/validation/validation.go` and
    `ValidateListSetsAndMaps` in `pkg/apiserver/schema/listtype/validation.go` of
    k8s.io/apiextensions-apiserver 0.36.4.
    """
    return tuple(sorted(set(_problems(body, shape, ""))))


def _problems(value: Json, shape: Shape, path: str) -> Iterator[Cause]:
    if shape.name:
        return
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _RANGES["int64"]:
        value = float(value)
    actual = _JSON_NAMES[type(value)]
    yield from _type_problems(value, shape, path, actual)
    if shape.rules:
        yield from _rule_problems(value, shape.rules, path, actual)
    match value:
        case dict():
            yield from _object_problems(value, shape, path)
        case list():
            yield from _list_problems(value, shape, path)
        case str() if shape.format == "date-time" and not _is_timestamp(value):
            yield _type_problem(path, "date-time", value)
        case _:
            pass


def _type_problems(value: Json, shape: Shape, path: str, actual: str) -> Iterator[Cause]:
    expected = _TYPE_NAMES[shape.type]
    if value is None:
        if expected and not shape.is_nullable:
            yield _type_problem(path, ",".join(expected), actual)
        return
    if isinstance(value, int | float) and shape.type is Type.INTEGER:
        yield from _range_problems(value, shape, path, actual)
    if not expected or actual in expected or _is_compatible(value, expected):
        return
    is_text = isinstance(value, str | list)
    if shape.format and not is_text:
        yield _type_problem(path, shape.format, _FORMATS.get(actual, ""))
    elif not shape.format or "integer" in expected or "number" in expected:
        yield _type_problem(path, ",".join(expected), actual)


def _type_problem(path: str, expected: str, actual: str) -> Cause:
    return causes.type_invalid(
        path, actual, f'{path} in body must be of type {expected}: "{actual}"'
    )


def _is_compatible(value: Json, expected: tuple[str, ...]) -> bool:
    """Return whether a value of another JSON type is valid: a whole float, or an integer for a
    number.
    """
    if isinstance(value, float):
        return "integer" in expected and value.is_integer() and abs(value) <= _MAX_SAFE_INTEGER
    return "number" in expected and isinstance(value, int) and not isinstance(value, bool)


def _range_problems(value: float, shape: Shape, path: str, actual: str) -> Iterator[Cause]:
    bound = _RANGES.get(shape.format, _RANGES["int64"])
    is_whole = actual != "boolean" and float(value).is_integer() and -bound <= value < bound
    if actual != "boolean" and not is_whole:
        yield causes.invalid(causes.NO_FIELD, "", _range_message(path, shape.format))


def _range_message(path: str, format_: str) -> str:
    qualifier = f"with format {format_}" if format_ else "(default format)"
    return f"Checked value must be of type integer {qualifier} in {path}"


def _rule_problems(value: Json, rules: Rules, path: str, actual: str) -> Iterator[Cause]:
    if rules.enum and not any(_is_equal(value, allowed) for allowed in rules.enum):
        named = [
            allowed if isinstance(allowed, str) else causes.format_json(allowed)
            for allowed in rules.enum
        ]
        yield causes.unsupported(path, value, named)
    if rules.is_spelled_out and actual not in {"integer", "string"}:
        yield from _int_or_string_problems(path, actual)
    match value:
        case str():
            yield from _text_problems(value, rules, path)
        case bool() | None:
            pass
        case int() | float():
            yield from _number_problems(value, rules, path)
        case list():
            yield from _count_problems(len(value), rules.min_items, rules.max_items, path, "items")
        case dict():
            least, most = rules.min_properties, rules.max_properties
            yield from _count_problems(len(value), least, most, path, "properties")


def _int_or_string_problems(path: str, actual: str) -> Iterator[Cause]:
    yield causes.invalid(causes.NO_FIELD, "", f'"{path}" must validate at least one schema (anyOf)')
    yield _type_problem(path, "integer", actual)
    if actual == "number":
        yield causes.invalid(causes.NO_FIELD, "", _range_message(path, ""))


def _is_equal(value: Json, other: Json) -> bool:
    if isinstance(value, float) and isinstance(other, int):
        value = int(value)  # as Go does: 1.5 is then equal to 1
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _text_problems(value: str, rules: Rules, path: str) -> Iterator[Cause]:
    if rules.max_length is not None and len(value) > rules.max_length:
        yield causes.too_long(path, rules.max_length)
    if rules.min_length is not None and len(value) < rules.min_length:
        least = f"should be at least {rules.min_length} chars long"
        yield causes.invalid(path, value, f"{path} in body {least}")
    compiled = _compile_pattern(rules.pattern) if rules.pattern else None
    if compiled is not None and not compiled.search(value):
        yield causes.invalid(path, value, f"{path} in body should match '{rules.pattern}'")


def can_check_pattern(pattern: str) -> bool:
    """Return whether a pattern can be checked here, or only by a server."""
    return _compile_pattern(pattern) is not None


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """Return a pattern in the syntax of Go, or None if Python cannot compile it."""
    if pattern.endswith("$") and not pattern.endswith(r"\$"):
        pattern = pattern[:-1] + r"\Z"
    for name, characters in _POSIX.items():
        pattern = pattern.replace(f"[:{name}:]", characters)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            return re.compile(pattern.replace(r"\z", r"\Z"), re.ASCII)
    except (re.error, FutureWarning):
        return None


def _number_problems(value: float, rules: Rules, path: str) -> Iterator[Cause]:
    bounds = (
        ("greater", rules.minimum, rules.is_above_minimum, 1),
        ("less", rules.maximum, rules.is_below_maximum, -1),
    )
    for word, limit, is_strict, sign in bounds:
        if limit is None:
            continue
        bound = int(limit) if isinstance(value, int) else limit
        if sign * value < sign * bound or (is_strict and value == bound):
            words = f"{word} than" if is_strict else f"{word} than or equal to"
            limit_text = str(bound) if isinstance(bound, int) else causes.format_float(bound)
            yield causes.invalid(path, value, f"{path} in body should be {words} {limit_text}")


def _count_problems(
    count: int, least: int | None, most: int | None, path: str, unit: str
) -> Iterator[Cause]:
    if least is not None and count < least:
        yield causes.invalid(path, count, f"{path} in body should have at least {least} {unit}")
    if most is not None and count > most:
        yield causes.too_many(path, count, most)


def _object_problems(value: dict[str, Json], shape: Shape, path: str) -> Iterator[Cause]:
    prefix = f"{path}." if path else ""
    for name, part in value.items():
        factory = shape.fields.get(name) or shape.values
        if factory is not None:
            yield from _problems(part, factory(), prefix + name)
    for name in shape.required:
        if name not in value:
            yield causes.required(prefix + name)


def _list_problems(value: list[Json], shape: Shape, path: str) -> Iterator[Cause]:
    if shape.items is not None:
        items = shape.items()
        for index, item in enumerate(value):
            yield from _problems(item, items, f"{path}[{index}]")
    if shape.merge is Merge.SET:
        yield from _duplicates(value, path)
    elif shape.merge is Merge.KEYED:
        no_objects = [
            index for index, item in enumerate(value) if not isinstance(item, dict | None)
        ]
        if no_objects:
            index = no_objects[0]
            detail = "must be an object for an array of list-type map"
            yield causes.invalid(f"{path}[{index}]", value[index], detail)
        else:
            yield from _duplicates([_item_key(item, shape.keys) for item in value], path)


def _item_key(item: Json, keys: Iterable[str]) -> Json:
    return {key: item[key] for key in keys if key in item} if isinstance(item, dict) else {}


def _duplicates(values: list[Json], path: str) -> Iterator[Cause]:
    """Yield one error for each repeated value, at its second index."""
    seen: dict[tuple[type[object], str], int] = {}
    for index, value in enumerate(values):
        identity = (type(value), causes.format_json(value))
        seen[identity] = seen.get(identity, 0) + 1
        if seen[identity] == 2:  # noqa: PLR2004
            yield causes.duplicate(f"{path}[{index}]", value)
