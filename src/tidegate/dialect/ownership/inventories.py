"""Inventories in the status of unit resources: Flux inventories and Argo CD resources.

A HelmRelease of an older Flux has none; the release record that its history names has the objects.
"""

from __future__ import annotations

from tidegate.dialect.flux.status.kustomization import RBAC
from tidegate.dialect.helm.record import record_ref
from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import JsonObject, Kind, Ref

ID_PARTS = 4


def inventory_refs(unit_resource: JsonObject) -> list[Ref] | None:
    """Return all objects in the status of a unit, in order; None if it does not list them."""
    status = get_mapping(unit_resource, "status")
    if get_text(unit_resource, "kind") == "Application":
        resources = get_mappings(status, "resources")
        return (
            [_ref_from_resource(resource) for resource in resources]
            if "resources" in status
            else None
        )
    if get_value(status, "inventory") is None:
        return None
    refs = (_ref_from_entry(entry) for entry in get_mappings(status, "inventory", "entries"))
    return [ref for ref in refs if ref is not None]


def _ref_from_resource(resource: JsonObject) -> Ref:
    kind = Kind(
        get_text(resource, "group"), get_text(resource, "version"), get_text(resource, "kind")
    )
    return Ref(kind, get_text(resource, "namespace"), get_text(resource, "name"))


def _ref_from_entry(entry: JsonObject) -> Ref | None:
    """Return the object of an entry `NAMESPACE_NAME_GROUP_KIND`; `__` is `:` in RBAC names."""
    parts = get_text(entry, "id").split("_")
    if len(parts) < ID_PARTS:
        return None
    namespace, *name_parts, group, kind = parts
    name = "_".join(name_parts)
    name = name.replace("__", ":") if group == RBAC else name
    return Ref(Kind(group, get_text(entry, "v"), kind), namespace, name)


def last_release_record(unit_resource: JsonObject) -> tuple[Ref, str] | None:
    """Return the record of the last release of a HelmRelease, and the namespace of the release.

    None if the status has no history.
    """
    history = get_mappings(unit_resource, "status", "history")
    if not history:
        return None
    last, namespace = history[0], get_text(unit_resource, "metadata", "namespace")
    storage = get_text(unit_resource, "status", "storageNamespace", default=namespace)
    record = record_ref(get_text(last, "name"), get_int(last, "version"), storage)
    return record, get_text(last, "namespace", default=namespace)


def targets_other_cluster(unit_resource: JsonObject) -> bool:
    """Return whether a Flux unit deploys to another cluster."""
    return get_value(unit_resource, "spec", "kubeConfig") is not None
