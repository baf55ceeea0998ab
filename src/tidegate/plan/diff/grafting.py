"""Taking a part of a live object over into a wanted one.

Items of lists are found by what tells them apart, for they may stand elsewhere.
"""

from __future__ import annotations

from tidegate.model.ignoring import Path
from tidegate.model.objects import Json
from tidegate.plan.diff.owned import key_values
from tidegate.schema.builtin import merging_of

NAME = ("name",)


def graft(wanted: Json, live: Json, path: Path, above: tuple[str, str] = ("", "")) -> Json:
    """The wanted value with what lives at a path; `above` are the names of the fields around it.

    Of an item that is not wanted at all, no part is taken over.
    """
    if not path:
        return live
    step, rest = path[0], path[1:]
    if isinstance(live, dict) and isinstance(step, str):
        return _into_mapping(wanted, live, (step, rest), above)
    if isinstance(live, list) and isinstance(step, int):
        return _into_list(wanted, live, (step, rest), above)
    return wanted


def _into_mapping(
    wanted: Json, live: dict[str, Json], at: tuple[str, Path], above: tuple[str, str]
) -> Json:
    step, rest = at
    mine = wanted if isinstance(wanted, dict) else {}
    inner = graft(mine.get(step), live.get(step), rest, (above[1], step))
    return wanted if inner is None else {**mine, step: inner}


def _into_list(
    wanted: Json, live: list[Json], at: tuple[int, Path], above: tuple[str, str]
) -> Json:
    step, rest = at
    mine = wanted if isinstance(wanted, list) else []
    there = live[step]
    place = _counterpart(mine, there, step, merging_of(*above).keys or NAME)
    if place is None:
        return wanted if rest else [*mine, there]
    return [*mine[:place], graft(mine[place], there, rest, above), *mine[place + 1 :]]


def _counterpart(items: list[Json], wanted: Json, step: int, names: tuple[str, ...]) -> int | None:
    """The number of the item that is meant; where nothing tells them apart, the same number."""
    if not isinstance(wanted, dict):
        return items.index(wanted) if wanted in items else None
    if not any(name in wanted for name in names):
        return step if step < len(items) else None
    values = key_values(wanted, names)
    meant = (
        place
        for place, item in enumerate(items)
        if isinstance(item, dict) and key_values(item, names) == values
    )
    return next(meant, None)
