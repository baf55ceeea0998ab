"""What own objects say that they have brought: Flux's inventories, Argo CD's resources.

A HelmRelease of older Flux has none: the record of its release, which it names, has the objects.
"""

from __future__ import annotations

from tidegate.dialect.flux.status import RBAC
from tidegate.dialect.helm.record import record_ref
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import mapping, mappings, number, part, text

Body = dict[str, Json]
ID_PARTS = 4


def inventory_refs(own: Body) -> list[Ref] | None:
    """All objects of a unit, in its own words and order; None where it does not say."""
    status = mapping(own, "status")
    if text(own, "kind") == "Application":
        found = mappings(status, "resources")
        return [_resource(one) for one in found] if "resources" in status else None
    if part(status, "inventory") is None:
        return None
    read = (_entry(one) for one in mappings(status, "inventory", "entries"))
    return [one for one in read if one is not None]


def _resource(one: Body) -> Ref:
    kind = Kind(text(one, "group"), text(one, "version"), text(one, "kind"))
    return Ref(kind, text(one, "namespace"), text(one, "name"))


def _entry(one: Body) -> Ref | None:
    """An entry of Flux's: `NAMESPACE_NAME_GROUP_KIND`; a colon of RBAC's names is two strokes."""
    parts = text(one, "id").split("_")
    if len(parts) < ID_PARTS:
        return None
    namespace, *inner, group, kind = parts
    name = "_".join(inner)
    name = name.replace("__", ":") if group == RBAC else name
    return Ref(Kind(group, text(one, "v"), kind), namespace, name)


def release_of(own: Body) -> tuple[Ref, str] | None:
    """Where the record of a HelmRelease's last release is, and the namespace that it went to."""
    history = mappings(own, "status", "history")
    if not history:
        return None
    last, home = history[0], text(own, "metadata", "namespace")
    storage = text(own, "status", "storageNamespace", default=home)
    record = record_ref(text(last, "name"), number(last, "version"), storage)
    return record, text(last, "namespace", default=home)


def goes_elsewhere(own: Body) -> bool:
    """Whether a unit of Flux's brings its objects to another cluster than its own."""
    return part(own, "spec", "kubeConfig") is not None
