"""Strategic merge patches, as sent by `kubectl apply`, `patch`, `set` and `edit`.

Lists with a merge key are merged item by item. The merge key is the first of the list map keys
of server-side apply: where these are several (a port and its protocol), Kubernetes uses only
the first one for strategic merge patches.

Like `StrategicMergePatch` in `pkg/util/strategicpatch/patch.go` of k8s.io/apimachinery 0.36.4.
"""

from __future__ import annotations

from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.sandbox.ownership.layout import Layout
from tidegate.sandbox.server.patches import PatchError
from tidegate.schema.shape import Merge

PATCH_DIRECTIVE, RETAIN_KEYS = "$patch", "$retainKeys"
ELEMENT_ORDER, DELETE_PRIMITIVES = "$setElementOrder/", "$deleteFromPrimitiveList/"
ATOMIC_IN_APPLY = {"imagePullSecrets": "name"}
"""Merge keys of lists that are atomic in server-side apply: a field of ServiceAccounts."""


def apply_strategic_patch(target: Json, patch: Json, layout: Layout) -> Json:
    """Apply a strategic merge patch to a value of this layout. Raises PatchError."""
    if not isinstance(patch, dict):
        return patch
    directive = patch.get(PATCH_DIRECTIVE, "merge")
    if directive not in {"merge", "replace", "delete"}:
        raise PatchError(f"there is no directive `{directive}`")
    if directive != "merge":
        return _without_directives(patch) if directive == "replace" else {}
    merged: JsonObject = dict(target) if isinstance(target, dict) else {}
    _merge(merged, patch, layout)
    _delete_primitives(merged, patch)
    _set_order(merged, patch, layout)
    retained = patch.get(RETAIN_KEYS)
    if isinstance(retained, list):
        merged = {key: value for key, value in merged.items() if key in retained}
    return merged


def _merge(merged: JsonObject, patch: JsonObject, layout: Layout) -> None:
    for key, value in _without_directives(patch).items():
        child_layout = layout.children[key]
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, list):
            merged[key] = _merge_list(
                merged.get(key), value, child_layout, _merge_key(key, child_layout)
            )
        else:
            merged[key] = apply_strategic_patch(merged.get(key), value, child_layout)


def _without_directives(patch: JsonObject) -> JsonObject:
    """Return a patch without directives."""
    return {
        key: value
        for key, value in patch.items()
        if key not in {PATCH_DIRECTIVE, RETAIN_KEYS}
        and not key.startswith((ELEMENT_ORDER, DELETE_PRIMITIVES))
    }


def _merge_key(name: str, layout: Layout) -> str:
    if layout.shape.merge is Merge.KEYED and layout.shape.keys:
        return layout.shape.keys[0]
    return ATOMIC_IN_APPLY.get(name, "")


def _merge_list(target: Json, patch: list[Json], layout: Layout, key: str) -> Json:
    existing = target if isinstance(target, list) else []
    if layout.shape.merge is Merge.SET:
        return [*existing, *(value for value in patch if value not in existing)]
    items = [entry for entry in patch if isinstance(entry, dict)]
    if not key or len(items) != len(patch):
        return patch
    if any(entry.get(PATCH_DIRECTIVE) == "replace" for entry in items):
        return [entry for entry in items if entry.get(PATCH_DIRECTIVE) != "replace"]
    merged = [entry for entry in existing if isinstance(entry, dict)]
    for item in items:
        if key not in item:
            raise PatchError(f"map: {item} does not contain declared merge key: {key}")
        index = next(
            (index for index, entry in enumerate(merged) if entry.get(key) == item[key]), None
        )
        if item.get(PATCH_DIRECTIVE) == "delete":
            merged = [entry for entry in merged if entry.get(key) != item[key]]
        elif index is None:
            merged.append(_without_directives(item))
        else:
            changed = apply_strategic_patch(merged[index], item, layout.items)
            merged[index] = changed if isinstance(changed, dict) else {}
    return [*merged]


def _delete_primitives(merged: JsonObject, patch: JsonObject) -> None:
    for patch_key, values in patch.items():
        name = patch_key.removeprefix(DELETE_PRIMITIVES)
        existing = merged.get(name)
        if (
            patch_key.startswith(DELETE_PRIMITIVES)
            and isinstance(values, list)
            and isinstance(existing, list)
        ):
            merged[name] = [value for value in existing if value not in values]


def _set_order(merged: JsonObject, patch: JsonObject, layout: Layout) -> None:
    for patch_key, order in patch.items():
        name = patch_key.removeprefix(ELEMENT_ORDER)
        existing = merged.get(name)
        if (
            patch_key.startswith(ELEMENT_ORDER)
            and isinstance(order, list)
            and isinstance(existing, list)
        ):
            key = _merge_key(name, layout.children[name])
            merged[name] = _sort_items(existing, [_item_key(item, key) for item in order], key)


def _sort_items(items: list[Json], order: list[Json], key: str) -> list[Json]:
    """Return the items in the given order; other items stay after the item that they followed.

    Like `normalizeElementOrder` in `pkg/util/strategicpatch/patch.go` of k8s.io/apimachinery
    0.36.4.
    """
    positions = {str(value): index for index, value in enumerate(order)}
    ranked: list[tuple[int, int, Json]] = []
    last = -1
    for index, item in enumerate(items):
        rank = positions.get(str(_item_key(item, key)))
        last = last if rank is None else rank
        ranked.append((last, 0 if rank is not None else index + 1, item))
    return [item for _, _, item in sorted(ranked, key=lambda entry: entry[:2])]


def _item_key(item: Json, key: str) -> Json:
    return item.get(key) if key and isinstance(item, dict) else item
