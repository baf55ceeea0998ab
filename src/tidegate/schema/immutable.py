"""Whether a change of a built-in kind is one that no server takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.model.objects import Json, Kind
from tidegate.model.reading import part, text
from tidegate.schema.frozen import Body, Frozen, Names, frozen_rows
from tidegate.world.facts import Cause


def find_frozen(changed: Iterable[Names], live: Body, wanted: Body) -> tuple[Names, ...]:
    """Those of the changed places that cannot be changed."""
    standing = [*_standing(live, wanted)]
    return tuple(names for names in changed if any(_stays(names, row) for row in standing))


def find_changed(before: Body, after: Body) -> tuple[Cause, ...]:
    """What a server says of an object that would become another one. It is asked of whole bodies.

    A spec that is the same one has not changed.
    """
    is_same = before.get("spec") is after.get("spec")
    rows = (row for row in _standing(before, after) if not (is_same and row.place[0] == "spec"))
    causes = (row.cause() for row in rows if _kept(before, row) != _kept(after, row))
    return tuple(dict.fromkeys(causes))


def _standing(live: Body, wanted: Body) -> Iterator[Frozen]:
    kind = Kind.of(text(wanted, "apiVersion"), text(wanted, "kind"))
    rows = frozen_rows().get((kind.group, kind.name), ())
    return (row for row in rows if row.when(live, wanted))


def _stays(names: Names, row: Frozen) -> bool:
    is_touched = names[: len(row.place)] == row.place or row.place[: len(names)] == names
    return is_touched and not any(names[: len(free)] == free for free in row.free)


def _kept(body: Body, row: Frozen) -> Json:
    """What stands at the place, without what may change."""
    value = part(body, *row.place)
    if value is None:
        return row.unsaid if not row.beside or part(body, *row.beside) is None else None
    return _without(value, [free[len(row.place) :] for free in row.free])


def _without(value: Json, free: list[Names]) -> Json:
    if not free:
        return value
    if isinstance(value, list):
        return [_without(item, free) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {
        name: _without(inner, [rest[1:] for rest in free if rest[0] == name])
        for name, inner in value.items()
        if (name,) not in free
    }
    return {name: inner for name, inner in kept.items() if inner not in (None, {})}
