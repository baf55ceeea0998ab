"""Paths of values in an object, and their text forms."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.model.k8s.objects import Json
from tidegate.model.plans.change import format_field_name
from tidegate.plan.diff.owned_fields import ItemKey, Scalar
from tidegate.plan.diff.values import format_scalar

PathStep: TypeAlias = "str | int | ItemKey | SetValue"
LinkedPath: TypeAlias = "tuple[()] | tuple[LinkedPath, PathStep]"
"""The path above, and the last step: a field, a list index, an item key, or a value of a set."""
ROOT: LinkedPath = ()


class SetValue(NamedTuple):
    """A value of a set."""

    value: Scalar


class FieldDifference(NamedTuple):
    """A value that an apply would change. None means no value."""

    path: LinkedPath
    before: Json
    after: Json


def field_name(path: LinkedPath) -> str:
    """Return the name of the last field of a path, or ""."""
    while path:
        path, last = path
        if isinstance(last, str):
            return last
    return ""


def field_names(path: LinkedPath) -> tuple[str, ...]:
    """Return the fields of a path."""
    return tuple(step for step in _path_steps(path) if isinstance(step, str))


def format_path(path: LinkedPath) -> str:
    """Format a path: `spec.template.spec.containers[name=app].image`."""
    return "".join(map(_format_step, _path_steps(path))).removeprefix(".")


def managed_element(step: PathStep) -> str:
    """Return a step in the form of managed fields."""
    match step:
        case ItemKey(names, values):
            return "k:" + msgspec.json.encode(dict(zip(names, values, strict=True))).decode()
        case SetValue(value):
            return "v:" + msgspec.json.encode(value).decode()
        case int():
            return f"i:{step}"
        case str():
            return "f:" + step


def _path_steps(path: LinkedPath) -> list[PathStep]:
    steps: list[PathStep] = []
    while path:
        path, last = path
        steps.append(last)
    return steps[::-1]


def _format_step(step: PathStep) -> str:
    match step:
        case ItemKey(names, values):
            pairs = zip(names, values, strict=True)
            return "[" + ",".join(f"{name}={format_scalar(value)}" for name, value in pairs) + "]"
        case SetValue(value):
            return f"[={format_scalar(value)}]"
        case int():
            return f"[{step}]"
        case str():
            return format_field_name(step)
