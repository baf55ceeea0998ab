"""Copy a part of a live object into a desired one."""

from __future__ import annotations

from tidegate.model.k8s.objects import Json
from tidegate.model.units.ignore_differences import DifferencePath
from tidegate.plan.diff.owned_fields import key_values
from tidegate.schema.builtin import find_merge_strategy

DEFAULT_KEYS = ("name",)


def copy_live_value(
    desired: Json, live: Json, path: DifferencePath, parents: tuple[str, str] = ("", "")
) -> Json:
    """Return the desired value with the live value at a path. `parents`: names of the parent
    fields.

    List items are matched by their keys, because their indexes may differ. Parts of an item that is
    not desired are not copied.
    """
    if not path:
        return live
    step, remaining_path = path[0], path[1:]
    if isinstance(live, dict) and isinstance(step, str):
        return _copy_into_mapping(desired, live, (step, remaining_path), parents)
    if isinstance(live, list) and isinstance(step, int):
        return _copy_into_list(desired, live, (step, remaining_path), parents)
    return desired


def _copy_into_mapping(
    desired: Json,
    live: dict[str, Json],
    position: tuple[str, DifferencePath],
    parents: tuple[str, str],
) -> Json:
    step, remaining_path = position
    desired_fields = desired if isinstance(desired, dict) else {}
    inner = copy_live_value(
        desired_fields.get(step), live.get(step), remaining_path, (parents[1], step)
    )
    return desired if inner is None else {**desired_fields, step: inner}


def _copy_into_list(
    desired: Json, live: list[Json], position: tuple[int, DifferencePath], parents: tuple[str, str]
) -> Json:
    step, remaining_path = position
    desired_items = desired if isinstance(desired, list) else []
    live_item = live[step]
    index = _find_counterpart(
        desired_items, live_item, step, find_merge_strategy(*parents).keys or DEFAULT_KEYS
    )
    if index is None:
        return desired if remaining_path else [*desired_items, live_item]
    return [
        *desired_items[:index],
        copy_live_value(desired_items[index], live_item, remaining_path, parents),
        *desired_items[index + 1 :],
    ]


def _find_counterpart(
    items: list[Json], live_item: Json, step: int, names: tuple[str, ...]
) -> int | None:
    """Return the index of the same item, or None. Items without keys are matched by index."""
    if not isinstance(live_item, dict):
        return items.index(live_item) if live_item in items else None
    if not any(name in live_item for name in names):
        return step if step < len(items) else None
    values = key_values(live_item, names)
    matches = (
        index
        for index, item in enumerate(items)
        if isinstance(item, dict) and key_values(item, names) == values
    )
    return next(matches, None)
