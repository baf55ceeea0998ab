"""List items with the same merge key, which a server-side apply rejects.

Client-side apply accepts them: two variables with one name, two ports with one number.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, Kind
from tidegate.schema.builtin import find_shape
from tidegate.schema.shape import Merge, Shape, find_child_shape

KINDS = frozenset(
    [
        ("", "Pod"),
        ("", "ReplicationController"),
        ("", "Service"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("batch", "CronJob"),
        ("batch", "Job"),
    ]
)
"""Kinds with lists in which duplicates are common."""


def find_duplicate_items(kind: Kind, body: bytes) -> list[str]:
    """Return the lists with duplicate keys, as `spec.containers[0].env: A`.

    Like `listItemToPathElement` in `typed/helpers.go` of structured-merge-diff 6.3.3.
    """
    shape = find_shape(kind) if (kind.group, kind.name) in KINDS else None
    if shape is None:
        return []
    spec = get_mapping(msgspec.json.decode(body), "spec")
    return list(_find_duplicates(spec, find_child_shape(shape, "spec"), "spec"))


def _find_duplicates(value: Json, shape: Shape | None, path: str) -> Iterator[str]:
    if isinstance(value, dict) and shape is not None:
        for name, inner in value.items():
            yield from _find_duplicates(inner, find_child_shape(shape, name), f"{path}.{name}")
    elif isinstance(value, list) and shape is not None:
        if shape.merge is Merge.KEYED:
            yield from _duplicate_keys(value, shape, path)
        items = shape.items() if shape.items is not None else None
        for index, item in enumerate(value):
            yield from _find_duplicates(item, items, f"{path}[{index}]")


def _duplicate_keys(value: list[Json], shape: Shape, path: str) -> Iterator[str]:
    seen: set[tuple[str, ...]] = set()
    for item in value:
        if isinstance(item, dict):
            values = (item.get(key, shape.key_defaults.get(key)) for key in shape.keys)
            key = tuple(map(str, values))
            if key in seen:
                yield f"{path}: {'/'.join(key)}"
            seen.add(key)
