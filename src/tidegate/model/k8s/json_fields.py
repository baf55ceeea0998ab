"""Typed access to fields of a JSON object.

Comparing one object reads dozens of fields, so each function walks the path itself: a further call
would cost more than the walk.
"""

from __future__ import annotations

from tidegate.model.k8s.objects import Json, Kind, Ref

EMPTY_MAPPING: dict[str, Json] = {}


def get_value(body: Json, *path: str) -> Json:
    """Return the value at a path. Returns None if there is none."""
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def get_mapping(body: Json, *path: str) -> dict[str, Json]:
    """Return the mapping at a path. Returns an empty one if there is none."""
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body if isinstance(body, dict) else EMPTY_MAPPING


def get_mappings(body: Json, *path: str) -> list[dict[str, Json]]:
    """Return the mappings of the list at a path. Returns an empty list if there is none."""
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return [item for item in body if isinstance(item, dict)] if isinstance(body, list) else []


def get_list(body: Json, *path: str) -> list[Json]:
    """Return the list at a path. Returns an empty one if there is none."""
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body if isinstance(body, list) else []


def get_int(body: Json, *path: str, default: int = 0) -> int:
    """Return the integer at a path. Returns the default if there is none."""
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body if isinstance(body, int) and not isinstance(body, bool) else default


def get_labels(body: Json) -> tuple[tuple[str, str], ...]:
    """Return the string labels of an object, sorted by name."""
    labels = get_mapping(body, "metadata", "labels")
    return tuple(sorted((key, value) for key, value in labels.items() if isinstance(value, str)))


def get_text(body: Json, *path: str, default: str = "") -> str:
    """Return the non-empty string at a path. Returns the default if there is none."""
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body if isinstance(body, str) and body else default


def object_kind(body: Json) -> Kind:
    """Return the kind of an object, from its `apiVersion` and `kind`."""
    fields = body if isinstance(body, dict) else EMPTY_MAPPING
    api_version, name = fields.get("apiVersion"), fields.get("kind")
    return Kind.of(
        api_version if isinstance(api_version, str) else "", name if isinstance(name, str) else ""
    )


def object_ref(body: Json) -> Ref:
    """Return the reference to an object, from its body."""
    metadata = get_mapping(body, "metadata")
    return Ref(object_kind(body), get_text(metadata, "namespace"), get_text(metadata, "name"))
