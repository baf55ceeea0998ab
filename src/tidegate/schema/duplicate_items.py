"""Entries of a list that a server cannot tell apart when it merges: it refuses to apply them.

Client-side apply takes them: two variables of one name, two ports of one number.
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
"""Kinds with lists in which people repeat themselves."""


def find_duplicate_items(kind: Kind, body: bytes) -> list[str]:
    """The lists with entries of one key, as `spec.containers[0].env: A`."""
    shape = find_shape(kind) if (kind.group, kind.name) in KINDS else None
    if shape is None:
        return []
    spec = get_mapping(msgspec.json.decode(body), "spec")
    return list(_repeats(spec, find_child_shape(shape, "spec"), "spec"))


def _repeats(value: Json, shape: Shape | None, path: str) -> Iterator[str]:
    if isinstance(value, dict) and shape is not None:
        for name, inner in value.items():
            yield from _repeats(inner, find_child_shape(shape, name), f"{path}.{name}")
    elif isinstance(value, list) and shape is not None:
        if shape.merge is Merge.KEYED:
            yield from _repeated(value, shape, path)
        items = shape.items() if shape.items is not None else None
        for place, one in enumerate(value):
            yield from _repeats(one, items, f"{path}[{place}]")


def _repeated(value: list[Json], shape: Shape, path: str) -> Iterator[str]:
    seen: set[tuple[str, ...]] = set()
    for one in value:
        if isinstance(one, dict):
            told = (one.get(key, shape.key_defaults.get(key)) for key in shape.keys)
            key = tuple(map(str, told))
            if key in seen:
                yield f"{path}: {'/'.join(key)}"
            seen.add(key)
