"""Parameters as Argo CD handles them: printed by Go, made flat, merged, chosen by a selector."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from tidegate.dialect.argo.sets.asking import Body, Fault, Params
from tidegate.documents import FieldPath
from tidegate.errors import foreign
from tidegate.model.labels import matches
from tidegate.model.objects import Json
from tidegate.model.patterns import late
from tidegate.model.reading import listed, mapping, mappings, text

LONGEST_NAME = 253
LEAST_EXPONENT, LARGEST_EXPONENT = -4, 6
"""Outside of these Go prints a number with its exponent."""
OPERATORS = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
"""Whether they need values, or must have none."""
LABEL_KEY = late(
    r"([a-z0-9][-a-z0-9.]{0,251}[a-z0-9]/|[a-z0-9]/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?",
    re.ASCII,
)
LABEL_VALUE = late(r"([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?", re.ASCII)


def printed(value: Json) -> str:
    """As Go prints it; every number is one that came out of JSON."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return str(value).lower()
        case int() | float():
            return _number(float(value))
        case list():
            return f"[{' '.join(map(printed, value))}]"
        case dict():
            return f"map[{' '.join(f'{key}:{printed(value[key])}' for key in sorted(value))}]"
        case _:
            return value


def _number(value: float) -> str:
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    power = len(digits) + int(exponent) - 1
    if value == 0 or LEAST_EXPONENT <= power < LARGEST_EXPONENT or "n" in repr(value):
        return repr(value).removesuffix(".0") if "e" not in repr(value) else f"{value:f}"
    head, *tail = map(str, digits)
    fraction = f".{''.join(tail)}" if tail else ""
    return f"{'-' if sign else ''}{head}{fraction}e{'-' if power < 0 else '+'}{abs(power):02}"


def flattened(value: Json, start: str = "") -> Iterator[tuple[str, str]]:
    """Every leaf with its path, its parts joined by dots."""
    known = value if isinstance(value, dict) else {}
    many = value if isinstance(value, list) else []
    for key, one in (*known.items(), *enumerate(many)):
        path = f"{start}.{key}" if start else str(key)
        if isinstance(one, dict | list):
            yield from flattened(one, path)
        else:
            yield path, printed(one)


def deep_merged(under: Json, over: Json) -> Json:
    """Mappings merged at any depth; of everything else the second counts."""
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    return {**under, **{key: deep_merged(under.get(key), one) for key, one in over.items()}}


def normalized(name: str) -> str:
    """A name that Kubernetes takes."""
    return re.sub("[^-a-z0-9.]", "-", name.lower())[:LONGEST_NAME].strip("-.")


def chosen(params: list[Params], selector: Json) -> list[Params]:
    """Those whose flat parameters a selector takes."""
    if not isinstance(selector, dict):
        return params
    refuse_wrong(selector)
    return [one for one in params if matches(selector, dict(flattened(one)))]


def refuse_wrong(selector: Body, *, of_labels: bool = False) -> None:
    """Refuse what is no selector. Only values `of_labels` must be such as Kubernetes takes."""
    for key, value in mapping(selector, "matchLabels").items():
        _refuse_key(key, ("matchLabels", key))
        _refuse_values([value] if of_labels else [], ("matchLabels", key))
    for at, one in enumerate(mappings(selector, "matchExpressions")):
        operator, values = text(one, "operator"), listed(one, "values")
        if operator not in OPERATORS:
            said = f"a selector has no operator `{foreign(operator)}`"
            path = ("matchExpressions", at, "operator")
            raise Fault("argo.set-selector", said, f"there are {', '.join(OPERATORS)}", path)
        if bool(values) is not OPERATORS[operator]:
            said = f"`{operator}` {'needs' if OPERATORS[operator] else 'takes no'} values"
            path = ("matchExpressions", at, "values")
            raise Fault("argo.set-selector", said, "correct the selector", path)
        _refuse_key(text(one, "key"), ("matchExpressions", at, "key"))
        _refuse_values(values if of_labels else [], ("matchExpressions", at, "values"))


def _refuse_key(key: str, path: FieldPath) -> None:
    if not LABEL_KEY.fullmatch(key):
        said = f"`{foreign(key)}` is no key of a selector"
        fix = "write letters, digits, `-`, `_` and `.`, 63 at most"
        raise Fault("argo.set-selector", said, fix, path)


def _refuse_values(values: list[Json], path: FieldPath) -> None:
    for one in values:
        if not isinstance(one, str) or not LABEL_VALUE.fullmatch(one):
            said = f"no label has the value `{foreign(str(one))}`"
            raise Fault("argo.set-selector", said, "correct the selector", path)
