"""Availability of operators and of the objects they need, and readiness holds of pods.

Pods with a hold run and are not ready until they are unsealed or set up. `unready_reason`
returns to the simulated kubelet why a pod cannot be ready now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from itertools import islice

from tidegate.knowledge.catalog import KindCatalog, is_ready, list_containers, selects_workload
from tidegate.knowledge.references import NeededObject
from tidegate.model.k8s.json_fields import get_int, get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.kinds import CONFIG_MAP, CRD, JOB
from tidegate.model.k8s.objects import JsonObject, Kind, Ref
from tidegate.model.operators.rows import WILDCARD, KindRow, ReadinessBlocker, RequiredState
from tidegate.model.times import Ms
from tidegate.sandbox.controllers.conditions import read_timestamp
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.controllers.selectors import slices_for_service
from tidegate.sandbox.kinds import WORKLOADS
from tidegate.sandbox.server.kind_registry import list_served_versions
from tidegate.sandbox.server.store import StoredObject
from tidegate.schema.builtin import served_kinds
from tidegate.schema.custom_kinds import builtin_groups


def is_available(workload: StoredObject) -> bool:
    """Return whether at least one pod of a workload is available."""
    if workload.is_deleting:
        return False
    status = get_mapping(workload.body, "status")
    counts = ("availableReplicas", "numberAvailable", "readyReplicas")
    return any(get_int(status, count) > 0 for count in counts)


def available_since(workload: StoredObject) -> Ms:
    """Return since when a workload is available."""
    for condition in get_mappings(workload.body, "status", "conditions"):
        if condition.get("type") == "Available" and condition.get("status") == "True":
            return read_timestamp(condition.get("lastTransitionTime")) or last_changed(workload)
    return last_changed(workload)


def last_changed(stored: StoredObject) -> Ms:
    """Return when an object was last changed, according to its managed fields."""
    times = [entry.time for entry in stored.managed_fields if entry.time]
    last = max(times, default="") or get_text(stored.metadata, "creationTimestamp")
    return read_timestamp(last) or Ms(0)


def row_for(catalog: KindCatalog, kind: Kind) -> KindRow | None:
    """Return the row of a kind, or the generic row; None for built-in kinds."""
    row = catalog.find_row(kind)
    if row is not None or kind.group in builtin_groups():
        return row
    return catalog.rows.get((WILDCARD, WILDCARD))


def find_operator(catalog: KindCatalog, reader: ObjectReader, kind: Kind) -> StoredObject | None:
    """Return the available operator of a kind, or None; reads all workloads."""
    for workload in _workloads(reader):
        if is_available(workload) and catalog.is_operator(workload.body, kind):
            return workload
    return None


def is_served(catalog: KindCatalog, reader: ObjectReader, kind: Kind) -> bool:
    """Return whether the operator of a kind is available."""
    row = row_for(catalog, kind)
    is_external = row is not None and row.served_by.outside
    return is_external or find_operator(catalog, reader, kind) is not None


def unserved_reason(catalog: KindCatalog, reader: ObjectReader, kind: Kind) -> str:
    """Return why a kind has no available operator."""
    idle = [
        workload.ref for workload in _workloads(reader) if catalog.is_operator(workload.body, kind)
    ]
    if idle:
        return f"the operator of {kind.name} does not run: {idle[0]} is not available"
    return (
        f"no operator for {kind.name}: no workload in the cluster is a known operator of"
        f" {kind.group}"
    )


def find_needed(
    catalog: KindCatalog, reader: ObjectReader, needed: NeededObject
) -> StoredObject | None:
    """Return the needed object, in its namespace or cluster-scoped; None if absent."""
    for version in _versions_of(catalog, reader, needed.group, needed.kind):
        kind = Kind(needed.group, version, needed.kind)
        for namespace in dict.fromkeys((needed.namespace, "")):
            stored = reader.get(Ref(kind, namespace, needed.name))
            if stored is not None:
                return stored
    return None


def is_need_satisfied(catalog: KindCatalog, reader: ObjectReader, needed: NeededObject) -> bool:
    """Return whether a needed object has the required state."""
    stored = find_needed(catalog, reader, needed)
    if stored is None or stored.is_deleting:
        return False
    match needed.need.until:
        case RequiredState.EXISTS:
            return True
        case RequiredState.READY:
            row = row_for(catalog, stored.ref.kind)
            return row is None or is_ready(row, stored.body)
        case RequiredState.SERVING:
            return _has_serving_endpoint(reader, stored.ref)


def custom_kinds(reader: ObjectReader) -> Iterator[Kind]:
    """Yield the kinds of the cluster's CRDs, each once."""
    for definition in reader.list_objects(CRD):
        yield from (kind for kind, _ in islice(list_served_versions(definition.body), 1))


def _versions_of(
    catalog: KindCatalog, reader: ObjectReader, group: str, kind: str
) -> Iterable[str]:
    row = catalog.rows.get((group, kind))
    if row is not None:
        return row.versions
    builtin = _builtin_versions().get((group, kind))
    if builtin is not None:
        return builtin
    return (
        candidate.version
        for candidate in custom_kinds(reader)
        if (candidate.group, candidate.name) == (group, kind)
    )


def _workloads(reader: ObjectReader) -> Iterator[StoredObject]:
    return (workload for kind in WORKLOADS for workload in reader.list_objects(kind))


def _has_serving_endpoint(reader: ObjectReader, service: Ref) -> bool:
    """Return whether a Service has a serving endpoint, even one published before it is ready."""
    return any(
        _is_serving(get_mapping(endpoint, "conditions"))
        for slice_ in slices_for_service(reader, service)
        for endpoint in get_mappings(slice_.body, "endpoints")
    )


def _is_serving(conditions: JsonObject) -> bool:
    serving = conditions.get("serving")
    return conditions.get("ready") is not False if serving is None else serving is True


@cache
def _builtin_versions() -> dict[tuple[str, str], tuple[str, ...]]:
    versions: dict[tuple[str, str], tuple[str, ...]] = {}
    for served in served_kinds():
        key = (served.kind.group, served.kind.name)
        versions[key] = (*versions.get(key, ()), served.kind.version)
    return versions


def unready_reason(
    reader: ObjectReader, pod: StoredObject, holds: Iterable[ReadinessBlocker]
) -> str:
    """Return why a pod cannot be ready; empty if no hold applies."""
    for hold in holds:
        if selects_workload(hold.pods, pod.body) and not _is_released(reader, pod, hold):
            return hold.reason
    return ""


def _is_released(reader: ObjectReader, pod: StoredObject, hold: ReadinessBlocker) -> bool:
    if any(
        fragment in setting for setting in _pod_settings(reader, pod) for fragment in hold.unless
    ):
        return True
    return any(
        get_int(job.body, "status", "succeeded") > 0
        and any(fnmatchcase(job.ref.name, pattern) for pattern in hold.until_jobs)
        for job in reader.list_objects(JOB, pod.ref.namespace)
    )


def _pod_settings(reader: ObjectReader, pod: StoredObject) -> Iterator[str]:
    """Yield the settings of a pod: command lines, variables and contents of its ConfigMaps."""
    for container in list_containers(pod.body):
        arguments = (*get_list(container, "command"), *get_list(container, "args"))
        yield " ".join(str(word) for word in arguments)
        for variable in get_mappings(container, "env"):
            yield f"{variable.get('name')}={variable.get('value')}"
    for volume in get_mappings(pod.body, "spec", "volumes"):
        name = get_text(volume, "configMap", "name")
        config_map = reader.get(Ref(CONFIG_MAP, pod.ref.namespace, name)) if name else None
        if config_map is not None:
            yield from (str(value) for value in get_mapping(config_map.body, "data").values())
