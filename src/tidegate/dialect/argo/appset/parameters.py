"""Parameters like Argo CD handles them: formatted by Go, flattened, merged, selected.

Like `generator_spec_processor.go` in `applicationset/generators`, and `map.go` and `selector.go` in
`applicationset/utils` of Argo CD 3.6.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from tidegate.dialect.argo.appset.queries import GeneratorError, Params
from tidegate.documents.numbers import format_general
from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.labels import selector_matches
from tidegate.model.k8s.objects import FieldPath, Json, JsonObject
from tidegate.model.text.lazy_regex import lazy_regex

MAX_NAME_LENGTH = 253
OPERATORS = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
"""Operators of a selector, and whether they need values or must have none."""
LABEL_KEY = lazy_regex(
    r"([a-z0-9][-a-z0-9.]{0,251}[a-z0-9]/|[a-z0-9]/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?",
    re.ASCII,
)
LABEL_VALUE = lazy_regex(r"([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?", re.ASCII)


def go_format(value: Json) -> str:
    """Format a value like Go's `%v`; every number is a float64 decoded from JSON."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return str(value).lower()
        case int() | float():
            number = float(value)
            return format_general(repr(number)) if math.isfinite(number) else repr(number)
        case list():
            return f"[{' '.join(map(go_format, value))}]"
        case dict():
            return f"map[{' '.join(f'{key}:{go_format(value[key])}' for key in sorted(value))}]"
        case _:
            return value


def flatten(value: Json, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each leaf with its path, the parts joined by dots."""
    fields = value if isinstance(value, dict) else {}
    items = value if isinstance(value, list) else []
    for key, item in (*fields.items(), *enumerate(items)):
        path = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(item, dict | list):
            yield from flatten(item, path)
        else:
            yield path, go_format(item)


def deep_merge(under: Json, over: Json) -> Json:
    """Merge mappings at any depth; other values are replaced by those of `over`."""
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    return {**under, **{key: deep_merge(under.get(key), value) for key, value in over.items()}}


def normalize_name(name: str) -> str:
    """Return a valid Kubernetes name."""
    return re.sub("[^-a-z0-9.]", "-", name.lower())[:MAX_NAME_LENGTH].strip("-.")


def select_params(params: list[Params], selector: Json) -> list[Params]:
    """Return the parameters that a selector matches, by their flat form."""
    if not isinstance(selector, dict):
        return params
    validate_selector(selector)
    return [
        param_set for param_set in params if selector_matches(selector, dict(flatten(param_set)))
    ]


def validate_selector(selector: JsonObject, *, check_values: bool = False) -> None:
    """Validate a label selector. Raises a GeneratorError.

    `check_values`: values must be valid label values.
    """
    for key, value in get_mapping(selector, "matchLabels").items():
        _validate_key(key, ("matchLabels", key))
        _validate_values([value] if check_values else [], ("matchLabels", key))
    for index, expression in enumerate(get_mappings(selector, "matchExpressions")):
        operator, values = get_text(expression, "operator"), get_list(expression, "values")
        if operator not in OPERATORS:
            message = f"unknown selector operator `{sanitize(operator)}`"
            path = ("matchExpressions", index, "operator")
            raise GeneratorError(
                "appset.selector", message, f"use one of {', '.join(OPERATORS)}", path
            )
        if bool(values) is not OPERATORS[operator]:
            verb = "requires" if OPERATORS[operator] else "does not take"
            message = f"`{operator}` {verb} values"
            path = ("matchExpressions", index, "values")
            raise GeneratorError("appset.selector", message, "correct the selector", path)
        _validate_key(get_text(expression, "key"), ("matchExpressions", index, "key"))
        _validate_values(values if check_values else [], ("matchExpressions", index, "values"))


def _validate_key(key: str, path: FieldPath) -> None:
    if not LABEL_KEY.fullmatch(key):
        message = f"`{sanitize(key)}` is not a valid label key"
        fix = "use at most 63 letters, digits, `-`, `_` and `.`"
        raise GeneratorError("appset.selector", message, fix, path)


def _validate_values(values: list[Json], path: FieldPath) -> None:
    for value in values:
        if not isinstance(value, str) or not LABEL_VALUE.fullmatch(value):
            message = f"`{sanitize(str(value))}` is not a valid label value"
            raise GeneratorError("appset.selector", message, "correct the selector", path)
