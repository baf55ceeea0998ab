"""Comparison of a desired object, the live object and our fields in it.

Lists are compared as the server merges them: item by item if the items have keys, value by value if
they are sets, else as one atomic value.

    desired  containers: [{name: app, image: app:2}]
    live     containers: [{name: app, image: app:1, tty: true}, {name: proxy}]
    ours     containers: {name=app: {image, tty}}

    The list has keys, so `app` is compared with `app`, and `proxy` is ignored. `image` differs:
    it is changed. `tty` is ours and no longer desired: it is removed. If it were not ours,
    it would be kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.plan.diff.defaults import (
    ALLOCATED_FIELDS,
    FREE_FORM_FIELDS,
    OMITTED_FIELDS,
    is_default,
)
from tidegate.plan.diff.last_applied import LAST_APPLIED
from tidegate.plan.diff.owned_fields import (
    CONTAINERS,
    SELF,
    Fields,
    ItemKey,
    OwnedItems,
    Scalar,
    fields_below,
    index_items,
    is_scalar,
    parse_items,
)
from tidegate.plan.diff.paths import (
    ROOT,
    FieldDifference,
    LinkedPath,
    PathStep,
    SetValue,
    field_name,
    field_names,
    managed_element,
)
from tidegate.plan.diff.values import format_scalar, is_equal, is_same_scalar, is_zero
from tidegate.schema.builtin import find_merge_strategy

NO_ITEMS = parse_items({})
SCALAR_TYPES = frozenset([str, int, float, bool])


class FieldComparison:
    """Differences of two objects, and whether fields change their owner with the same value."""

    __slots__ = ("_is_builtin", "_is_crd", "_other_fields", "changes_ownership", "differences")

    def __init__(self, other_fields: list[Fields], *, is_builtin: bool, is_crd: bool) -> None:
        self.differences: list[FieldDifference] = []
        self.changes_ownership = False
        self._other_fields = other_fields
        self._is_builtin = is_builtin
        # Schemas in a CRD may use any field name, so names have no meaning there.
        self._is_crd = is_crd

    def compare_fields(
        self,
        desired: JsonObject,
        live: JsonObject,
        our_fields: Fields | None,
        path: LinkedPath = ROOT,
        parent: str = "",
    ) -> None:
        """Compare the fields of a mapping. `parent` is the name of the field that contains it."""
        owned_count = 0
        for name, value in desired.items():
            owned = our_fields.get("f:" + name) if our_fields else None
            live_value = live.get(name)
            if owned is not None:
                owned_count += 1
            if (
                type(value) in SCALAR_TYPES
                and type(value) is type(live_value)
                and value == live_value
            ):
                self.changes_ownership = self.changes_ownership or owned is None
            elif owned and isinstance(value, dict) and isinstance(live_value, dict):
                # Managers own fields below it, so it is not atomic.
                self.compare_fields(value, live_value, owned, (path, name), name)
            else:
                self._compare_value(value, live_value, owned, (path, name), parent)
        if our_fields and owned_count + (SELF in our_fields) < len(our_fields):
            self._compare_removed_fields(desired, live, our_fields, path)

    def _compare_removed_fields(
        self, desired: JsonObject, live: JsonObject, our_fields: Fields, path: LinkedPath
    ) -> None:
        names = {element[2:] for element in our_fields if element != SELF}
        kept = {name: value for name, value in live.items() if name not in names}
        siblings = {**kept, **desired}
        for element, owned in our_fields.items():
            name = element[2:]
            if element != SELF and name not in desired:
                self._compare_removed(live.get(name), owned, (path, name), siblings)

    def _compare_value(
        self, desired: Json, live: Json, owned: Fields | None, path: LinkedPath, parent: str
    ) -> None:
        if desired is None and parent in FREE_FORM_FIELDS and self._is_kubernetes_field(path):
            desired = ""
        if live is None:
            self._compare_added(desired, owned, path)
        elif desired is None:
            self._compare_null(live, owned, path, parent)
        elif isinstance(desired, dict) and isinstance(live, dict):
            self._compare_mapping(desired, live, owned, path, parent)
        elif isinstance(desired, list) and isinstance(live, list):
            self._compare_list(desired, live, owned, path, parent)
        elif not self._is_same(desired, live, path, parent):
            self.differences.append(FieldDifference(path, live, desired))
        elif owned is None:
            self.changes_ownership = True

    def _compare_added(self, desired: Json, owned: Fields | None, path: LinkedPath) -> None:
        """Compare a desired value without a live one. Empty values of ours were omitted by the
        server.
        """
        if desired is None or (owned is not None and is_zero(desired)):
            return
        is_kubernetes_field = self._is_kubernetes_field(path)
        if is_kubernetes_field and desired == []:
            return
        if is_kubernetes_field and not desired and field_name(path) in OMITTED_FIELDS:
            self.changes_ownership = True
        else:
            self.differences.append(FieldDifference(path, None, desired))

    def _compare_null(
        self, live: Json, owned: Fields | None, path: LinkedPath, parent: str
    ) -> None:
        """Compare a desired null, which removes an atomic value or resets it to the default."""
        if isinstance(live, dict) and not self._is_atomic(live, owned, path, parent):
            self._compare_mapping({}, live, owned, path, parent)
        elif isinstance(live, list):
            self._compare_list([], live, owned, path, parent)
        elif is_zero(live) or self._is_default(live, path, parent, {}):
            self.changes_ownership = self.changes_ownership or owned is None
        else:
            self.differences.append(FieldDifference(path, live, None))

    def _compare_removed(
        self,
        live: Json,
        owned: Fields | None,
        path: tuple[LinkedPath, PathStep],
        siblings: JsonObject,
    ) -> None:
        """Compare a value that is not desired any more.

        It is removed, unless another manager owns it or it is a default.
        """
        self.changes_ownership = True
        name, parent = field_name(path), field_name(path[0])
        if live is None or owned is None or name == LAST_APPLIED:
            return
        if self._is_default(live, path, parent, siblings):
            return
        # Report a mapping field by field, but a list item as one.
        is_removed_whole = not owned or (SELF in owned and not isinstance(path[1], str))
        if is_removed_whole and not self._other_fields_at(path):
            self.differences.append(FieldDifference(path, live, None))
        elif isinstance(live, dict):
            self.compare_fields({}, live, owned, path, name)
        elif isinstance(live, list) and owned:
            self._compare_list([], live, owned, path, parent)

    def _compare_mapping(
        self,
        desired: JsonObject,
        live: JsonObject,
        owned: Fields | None,
        path: LinkedPath,
        parent: str,
    ) -> None:
        if self._is_atomic(desired, owned, path, parent):
            self.changes_ownership = self.changes_ownership or owned is None
            self._compare_atomic(desired, live, path, parent)
        elif owned is None and not desired:
            self.changes_ownership = True
        else:
            self.compare_fields(desired, live, owned, path, field_name(path))

    def _compare_list(
        self,
        desired: list[Json],
        live: list[Json],
        owned: Fields | None,
        path: LinkedPath,
        parent: str,
    ) -> None:
        our_items = parse_items(owned) if owned else NO_ITEMS
        names, is_set = self._list_keys(our_items, path, parent)
        if names:
            desired_items, live_items = index_items(desired, names), index_items(live, names)
            if desired_items is not None and live_items is not None:
                self._compare_items(desired_items, live_items, our_items.keyed, (path, names))
                return
        elif is_set and all(map(is_scalar, [*desired, *live])):
            self._compare_set(desired, live, our_items.values, path)
            return
        self.changes_ownership = self.changes_ownership or (owned is None and bool(desired))
        self._compare_atomic(desired, live, path, parent)

    def _list_keys(
        self, our_items: OwnedItems, path: LinkedPath, parent: str
    ) -> tuple[tuple[str, ...], bool]:
        """Return the keys of list items, and whether the list is a set: by its owners, else by
        name.
        """
        if our_items.names or our_items.values:
            return our_items.names, bool(our_items.values)
        if self._is_builtin:
            merge_rule = find_merge_strategy(parent, field_name(path))
            return (() if self._is_crd else merge_rule.keys), merge_rule.is_set
        for fields in self._other_fields_at(path):
            items = parse_items(fields)
            if items.names or items.values:
                return items.names, bool(items.values)
        return (), False

    def _compare_items(
        self,
        desired: dict[tuple[Scalar, ...], JsonObject],
        live: dict[tuple[Scalar, ...], JsonObject],
        our_items: dict[tuple[Scalar, ...], Fields],
        path_and_keys: tuple[LinkedPath, tuple[str, ...]],
    ) -> None:
        path, names = path_and_keys
        parent = field_name(path)
        is_live: dict[tuple[Scalar, ...], bool] = {}
        for key, item in desired.items():
            values = key if key in live else _complete_key(key, live)
            live_item, inner = live.get(values), our_items.get(values)
            is_live[values] = live_item is not None
            item_path: LinkedPath = (path, ItemKey(names, values))
            if live_item is None:
                self.differences.append(FieldDifference(item_path, None, item))
            elif inner == {}:
                self._compare_atomic(item, live_item, item_path, parent)
            else:
                self.compare_fields(item, live_item, inner, item_path, parent)
        for values, inner in our_items.items():
            if values not in is_live:
                self._compare_removed(live.get(values), inner, (path, ItemKey(names, values)), {})
        self._compare_order(
            live, [values for values, has_live_item in is_live.items() if has_live_item], path
        )

    def _compare_set(
        self, desired: list[Json], live: list[Json], our_values: set[Scalar], path: LinkedPath
    ) -> None:
        desired_values = [value for value in desired if not isinstance(value, CONTAINERS)]
        live_values = {(value,): True for value in live if not isinstance(value, CONTAINERS)}
        for value in desired_values:
            if (value,) not in live_values:
                self.differences.append(FieldDifference((path, SetValue(value)), None, value))
            elif value not in our_values:
                self.changes_ownership = True
        for value in our_values - set(desired_values):
            self._compare_removed(
                value if (value,) in live_values else None, {}, (path, SetValue(value)), {}
            )
        self._compare_order(
            live_values, [(value,) for value in desired_values if (value,) in live_values], path
        )

    def _compare_order(
        self,
        live: Iterable[tuple[Scalar, ...]],
        desired: list[tuple[Scalar, ...]],
        path: LinkedPath,
    ) -> None:
        """Compare the order of items that are on both sides."""
        if list(live) == desired:
            return
        desired_keys = frozenset(desired)
        live_order = [values for values in live if values in desired_keys]
        if live_order != desired:
            self.differences.append(
                FieldDifference(path, _format_order(live_order), _format_order(desired))
            )

    def _compare_atomic(self, desired: Json, live: Json, path: LinkedPath, parent: str) -> None:
        """Compare a value that is replaced as a whole."""
        if isinstance(desired, str) and desired == live:
            return
        if isinstance(desired, dict) and isinstance(live, dict):
            self._compare_atomic_mapping(desired, live, path)
        elif isinstance(desired, list) and isinstance(live, list) and len(desired) == len(live):
            for index, (value, live_value) in enumerate(zip(desired, live, strict=True)):
                self._compare_atomic(value, live_value, (path, index), parent)
        elif not self._is_same(desired, live, path, parent):
            self.differences.append(FieldDifference(path, live, desired))

    def _compare_atomic_mapping(
        self, desired: JsonObject, live: JsonObject, path: LinkedPath
    ) -> None:
        """Compare mappings that are replaced as a whole: live fields are removed unless they are
        defaults.
        """
        parent = field_name(path)
        for name, value in desired.items():
            if name in live:
                self._compare_atomic(value, live[name], (path, name), parent)
            elif not is_zero(value):
                self.differences.append(FieldDifference((path, name), None, value))
        for name, live_value in live.items():
            field_path: LinkedPath = (path, name)
            if name not in desired and not self._is_default(live_value, field_path, parent, live):
                self.differences.append(FieldDifference(field_path, live_value, None))

    def _is_same(self, desired: Json, live: Json, path: LinkedPath, parent: str) -> bool:
        if is_equal(desired, live):
            return True
        if not (is_scalar(desired) and is_scalar(live)):
            return is_zero(desired) and is_zero(live)
        if not self._is_builtin or self._is_crd:
            return False
        name = field_name(path)
        if is_same_scalar(desired, live, name=name, parent=parent):
            return True
        if desired is None and is_zero(live):
            return True
        is_unset = desired in {None, ""} or (not desired and name in ALLOCATED_FIELDS)
        return is_unset and self._is_default(live, path, parent, {})

    def _is_kubernetes_field(self, path: LinkedPath) -> bool:
        """Return whether Kubernetes defines the field; it defines the metadata of every kind."""
        return self._is_builtin or field_names(path)[0] == "metadata"

    def _is_atomic(
        self, value: JsonObject, owned: Fields | None, path: LinkedPath, parent: str
    ) -> bool:
        """Return whether a mapping is replaced as a whole."""
        has_known_names = self._is_builtin and not self._is_crd
        if has_known_names and find_merge_strategy(parent, field_name(path)).is_atomic:
            return True
        return bool(value) and owned == {} and not any(self._other_fields_at(path))

    def _is_default(self, live: Json, path: LinkedPath, parent: str, siblings: JsonObject) -> bool:
        if not self._is_builtin:
            return False
        if self._is_crd and parent not in {"", "spec", "names", "conversion"}:
            return False
        return is_default(live, name=field_name(path), parent=parent, siblings=siblings)

    def _other_fields_at(self, path: LinkedPath) -> list[Fields]:
        """Return the fields that other managers own at a path and below."""
        if not path or not self._other_fields:
            return self._other_fields
        parent_path, last = path
        return fields_below(self._other_fields_at(parent_path), managed_element(last))


def _complete_key(
    key: tuple[Scalar, ...], live: dict[tuple[Scalar, ...], JsonObject]
) -> tuple[Scalar, ...]:
    """Return the key, with missing values from the only live item that matches."""
    if None not in key:
        return key
    matching = [
        live_key
        for live_key in live
        if all(value in {None, live_value} for value, live_value in zip(key, live_key, strict=True))
    ]
    return matching[0] if len(matching) == 1 else key


def _format_order(order: list[tuple[Scalar, ...]]) -> str:
    return ", ".join(" ".join(map(format_scalar, values)) for values in order)
