"""Random bodies: a shape lists what may stand at a path, and a seed chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from tidegate.model.k8s.objects import Json

Maker: TypeAlias = Callable[[Random], Json]
Fields: TypeAlias = dict[str, Sequence[object] | Maker]
"""What may stand at a path: a choice of values, or what a maker makes."""


class _Absent:
    """Marks a field that is left out."""


ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class ConditionShape:
    """What a condition may say. It is left out now and then."""

    statuses: tuple[str, ...] = ("True", "False", "Unknown")
    reasons: tuple[str, ...] = ("Because",)
    messages: tuple[str, ...] = ("as it is", "")
    generations: tuple[int | None, ...] = (None,)
    share: float = 0.7


@dataclass(frozen=True, slots=True)
class Shape:
    """Objects of one kind, and their number; `fields` by path, with dots between names."""

    api_version: str
    kind: str
    amount: int
    fields: Fields = field(default_factory=dict)

    def body(self, rng: Random) -> dict[str, Json]:
        body: dict[str, Json] = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {},
        }
        for path, options in self.fields.items():
            value = options(rng) if callable(options) else rng.choice(options)
            if not isinstance(value, _Absent):
                put(body, path.split("."), as_json(value))
        return body


def as_json(value: object) -> Json:
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, dict):
        return {str(key): as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    raise TypeError(type(value).__name__)


def put(body: dict[str, Json], path: Sequence[str], value: Json) -> None:
    """Put a value at a path. Names with dots are written with `!` instead of the dot."""
    *way, last = (name.replace("!", ".") for name in path)
    for name in way:
        inner = body.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        body = inner
    body[last] = value


def conditions(**rules: ConditionShape) -> Maker:
    """Some conditions, in any order, no type twice."""

    def make(rng: Random) -> Json:
        chosen = [name for name, says in rules.items() if rng.random() < says.share]
        rng.shuffle(chosen)
        return [
            _condition(name.replace("__", "/").replace("_", "."), rules[name], rng)
            for name in chosen
        ]

    return make


def one_condition(**rules: ConditionShape) -> Maker:
    """One condition at most."""

    def make(rng: Random) -> Json:
        name = rng.choice(sorted(rules))
        return [_condition(name, rules[name], rng)] if rng.random() < rules[name].share else []

    return make


def _condition(name: str, says: ConditionShape, rng: Random) -> Json:
    made: dict[str, Json] = {
        "type": name,
        "status": rng.choice(says.statuses),
        "reason": rng.choice(says.reasons),
        "message": rng.choice(says.messages),
    }
    seen = rng.choice(says.generations)
    return made if seen is None else {**made, "observedGeneration": seen}


def maybe(maker: Maker, absent: float = 0.15) -> Maker:
    """What a maker makes, or nothing: a list of conditions is not always there."""

    def make(rng: Random) -> Json:
        return None if rng.random() < absent else maker(rng)

    return make


def items(maker: Maker, most: int = 2) -> Maker:
    def make(rng: Random) -> Json:
        return [maker(rng) for _ in range(rng.randint(0, most))]

    return make


def mixed(**parts: Sequence[object] | Maker) -> Maker:
    """A mapping of its parts."""

    def make(rng: Random) -> Json:
        made: dict[str, Json] = {}
        for name, options in parts.items():
            value = options(rng) if callable(options) else rng.choice(options)
            if not isinstance(value, _Absent):
                made[name] = as_json(value)
        return made

    return make
