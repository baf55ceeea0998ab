"""Strategic merge patches, as `kubectl apply`, `patch`, `set` and `edit` send them.

Lists whose items have a key are merged item by item. The key is the first of those that tell items
apart in server-side apply: where Kubernetes has several there (a port and its protocol), it goes by
the first alone here.
"""

from __future__ import annotations

from tidegate.model.objects import Json
from tidegate.sandbox.ownership.layout import Layout
from tidegate.sandbox.server.patches import PatchError
from tidegate.schema.shape import Merge

DIRECTIVE, RETAIN = "$patch", "$retainKeys"
ORDER, DROP = "$setElementOrder/", "$deleteFromPrimitiveList/"
ATOMIC_IN_APPLY = {"imagePullSecrets": "name"}
"""A ServiceAccount's list is one piece in server-side apply, and merged by name here."""

Part = dict[str, Json]


def strategic_patch(target: Json, patch: Json, layout: Layout) -> Json:
    """What becomes of a value of this layout."""
    if not isinstance(patch, dict):
        return patch
    how = patch.get(DIRECTIVE, "merge")
    if how not in {"merge", "replace", "delete"}:
        raise PatchError(f"there is no directive `{how}`")
    if how != "merge":
        return _bare(patch) if how == "replace" else {}
    merged: Part = dict(target) if isinstance(target, dict) else {}
    _merge(merged, patch, layout)
    _drop(merged, patch)
    _order(merged, patch, layout)
    retained = patch.get(RETAIN)
    if isinstance(retained, list):
        merged = {key: value for key, value in merged.items() if key in retained}
    return merged


def _merge(merged: Part, patch: Part, layout: Layout) -> None:
    for key, value in _bare(patch).items():
        place = layout.children[key]
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, list):
            merged[key] = _merged_list(merged.get(key), value, place, _key_of(key, place))
        else:
            merged[key] = strategic_patch(merged.get(key), value, place)


def _bare(patch: Part) -> Part:
    """Without what only says how."""
    return {
        key: value
        for key, value in patch.items()
        if key not in {DIRECTIVE, RETAIN} and not key.startswith((ORDER, DROP))
    }


def _key_of(name: str, layout: Layout) -> str:
    if layout.shape.merge is Merge.KEYED and layout.shape.keys:
        return layout.shape.keys[0]
    return ATOMIC_IN_APPLY.get(name, "")


def _merged_list(target: Json, patch: list[Json], layout: Layout, key: str) -> Json:
    known = target if isinstance(target, list) else []
    if layout.shape.merge is Merge.SET:
        return [*known, *(one for one in patch if one not in known)]
    items = [one for one in patch if isinstance(one, dict)]
    if not key or len(items) != len(patch):
        return patch
    if any(one.get(DIRECTIVE) == "replace" for one in items):
        return [one for one in items if one.get(DIRECTIVE) != "replace"]
    found = [one for one in known if isinstance(one, dict)]
    for item in items:
        if key not in item:
            raise PatchError(f"map: {item} does not contain declared merge key: {key}")
        at = next((at for at, one in enumerate(found) if one.get(key) == item[key]), None)
        if item.get(DIRECTIVE) == "delete":
            found = [one for one in found if one.get(key) != item[key]]
        elif at is None:
            found.append(_bare(item))
        else:
            changed = strategic_patch(found[at], item, layout.items)
            found[at] = changed if isinstance(changed, dict) else {}
    return [*found]


def _drop(merged: Part, patch: Part) -> None:
    for said, values in patch.items():
        name = said.removeprefix(DROP)
        known = merged.get(name)
        if said.startswith(DROP) and isinstance(values, list) and isinstance(known, list):
            merged[name] = [one for one in known if one not in values]


def _order(merged: Part, patch: Part, layout: Layout) -> None:
    for said, order in patch.items():
        name = said.removeprefix(ORDER)
        known = merged.get(name)
        if said.startswith(ORDER) and isinstance(order, list) and isinstance(known, list):
            key = _key_of(name, layout.children[name])
            merged[name] = _ordered(known, [_name(one, key) for one in order], key)


def _ordered(items: list[Json], order: list[Json], key: str) -> list[Json]:
    """Those of the order by it; what else is there stays behind what it stood behind."""
    named = {str(one): place for place, one in enumerate(order)}
    ranked: list[tuple[int, int, Json]] = []
    last = -1
    for place, item in enumerate(items):
        rank = named.get(str(_name(item, key)))
        last = last if rank is None else rank
        ranked.append((last, 0 if rank is not None else place + 1, item))
    return [item for _, _, item in sorted(ranked, key=lambda one: one[:2])]


def _name(item: Json, key: str) -> Json:
    return item.get(key) if key and isinstance(item, dict) else item
