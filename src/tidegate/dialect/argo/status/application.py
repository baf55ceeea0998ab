"""Status of an Application: sync, health, last operation and history, computed like Argo CD does.

The operation names Tidegate as its initiator.

Like `CompareAppState` in `controller/state.go` and `setApplicationHealth` in `controller/health.go`
of Argo CD 3.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tidegate.dialect.argo.status.operation import (
    SYNCED,
    append_history,
    operation_events,
    operation_message,
    operation_state,
    short_revisions,
    source_fields,
)
from tidegate.model.display import join_limited
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.k8s.pods import POD_SPEC_PATHS
from tidegate.model.k8s.verdict import Health
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.model.rollouts.progress import (
    ObjectProgress,
    SourceRevision,
    StatusUpdate,
    UnitPhase,
    UnitProgress,
)
from tidegate.model.times import format_rfc3339
from tidegate.model.units.source import Revision

OUT_OF_SYNC, UNKNOWN = "OutOfSync", "Unknown"
HEALTH_ORDER = (
    *(Health.HEALTHY, Health.SUSPENDED, Health.PROGRESSING),
    *(Health.MISSING, Health.DEGRADED, Health.UNKNOWN),
)
"""From best to worst, like `healthOrder` in `health.go` of gitops-engine."""
IGNORED_CHILD_HEALTH = frozenset({Health.MISSING, Health.UNKNOWN})
"""Health of a child Application that does not affect its parent."""
IGNORE_HEALTHCHECK = "argocd.argoproj.io/ignore-healthcheck"
COMPARE_OPTIONS = "argocd.argoproj.io/compare-options"
MANAGED_CONDITIONS = frozenset({"SyncError", "ComparisonError", "InvalidSpecError", "UnknownError"})
"""Conditions that are computed anew each time; all others are kept."""
MAX_CAUSES = 3
APPLICATION = ("argoproj.io", "Application")
INGRESS, IMAGE = "Ingress", b'"image"'


def application_status(
    unit_resource: JsonObject, progress: UnitProgress, sources: Sequence[SourceRevision]
) -> StatusUpdate | None:
    """Return the new status of an Application, based on its current one."""
    previous, spec, now = (
        get_mapping(unit_resource, "status"),
        get_mapping(unit_resource, "spec"),
        format_rfc3339(progress.now),
    )
    revisions = _revisions(spec, sources)
    status: JsonObject = {
        **previous,
        "sync": {"status": sync_status(progress), "comparedTo": _compared_to(spec), **revisions},
        "health": _health(previous, progress, now),
        "resources": list[Json](_resources(previous, progress)),
        "reconciledAt": now,
        "resourceHealthSource": "appTree",
        "summary": _summary(previous, progress),
        **_source_types(spec, sources),
    }
    status = _without_empty(status, "resources")
    conditions = list[Json](_conditions(previous, progress, revisions, now))
    status = {**status, "conditions": conditions} if conditions else _without(status, "conditions")
    if not progress.has_operation and not _is_interrupted(previous, progress):
        return StatusUpdate(status)
    status["operationState"] = operation_state(unit_resource, progress, revisions)
    if progress.result == RolloutOutcome.PASSED:
        history = append_history(previous, spec, progress, revisions)
        status = {**status, "history": history} if history else _without(status, "history")
    return StatusUpdate(status, tuple(operation_events(previous, progress, revisions)))


def sync_status(progress: UnitProgress) -> str:
    """Return the sync status: whether all relevant objects are in sync."""
    if not progress.is_valid:
        return UNKNOWN
    counted = (obj for obj in progress.objects if not obj.is_hook and not _is_extraneous(obj))
    return SYNCED if all(obj.in_sync for obj in counted) else OUT_OF_SYNC


def _is_extraneous(obj: ObjectProgress) -> bool:
    """Return whether an object was pruned, or is to be pruned and has `IgnoreExtraneous`."""
    if obj.is_desired or not obj.is_live:
        return not obj.is_desired
    annotations = get_mapping(decode_body(obj), "metadata", "annotations")
    return "IgnoreExtraneous" in get_text(annotations, COMPARE_OPTIONS).split(",")


def aggregate_health(progress: UnitProgress) -> tuple[Health, str]:
    """Return the worst health of the objects, with a message that names these objects."""
    if not progress.is_valid:
        return Health.UNKNOWN, ""
    resources = [obj for obj in progress.objects if not obj.is_hook]
    if resources and not any(obj.is_live for obj in resources):
        return Health.MISSING, ""
    counted = [obj for obj in resources if _affects_health(obj, progress)]
    worst = max((_health_rank(obj) for obj in counted), default=0)
    health = HEALTH_ORDER[worst]
    if health is Health.HEALTHY:
        return health, ""
    causes = [_cause(obj.ref) for obj in counted if obj.health is health]
    return health, f"Caused by {join_limited(causes, MAX_CAUSES)}"


def _affects_health(obj: ObjectProgress, progress: UnitProgress) -> bool:
    ref, unit = obj.ref, progress.unit
    is_application = (ref.kind.group, ref.kind.name) == APPLICATION
    if not obj.is_live or obj.health in {None, Health.HEALTHY}:
        return False
    if is_application and (ref.namespace, ref.name) == (unit.namespace, unit.name):
        return False
    if is_application and obj.health in IGNORED_CHILD_HEALTH:
        return False
    return get_text(decode_body(obj), "metadata", "annotations", IGNORE_HEALTHCHECK) != "true"


def _health_rank(obj: ObjectProgress) -> int:
    return 0 if obj.health is None else HEALTH_ORDER.index(obj.health)


def _cause(ref: Ref) -> str:
    group = f"{ref.kind.group}/" if ref.kind.group else "/"
    return f"{group}{ref.kind.name}:{ref.namespace}/{ref.name}"


def _health(previous: JsonObject, progress: UnitProgress, now: str) -> JsonObject:
    health, message = aggregate_health(progress)
    old_health = get_mapping(previous, "health")
    since = get_text(old_health, "lastTransitionTime", default=now)
    same = get_text(old_health, "status") == health
    message_field: JsonObject = {"message": message} if message else {}
    return {"status": health.value, "lastTransitionTime": since if same else now, **message_field}


def _resources(previous: JsonObject, progress: UnitProgress) -> list[JsonObject]:
    """Return the resources of the Application, sorted by name, and those hooks that exist.

    If nothing was done, hooks were not read: those of the current status are kept.
    """
    resources = [*_resource_entries(progress)]
    if not progress.has_operation:
        resources += (
            resource
            for resource in get_mappings(previous, "resources")
            if resource.get("hook") is True
        )
    names = ("group", "kind", "namespace", "name")
    unique = {
        tuple(get_text(resource, name) for name in names): resource
        for resource in reversed(resources)
    }
    return [unique[key] for key in sorted(unique)]


def _resource_entries(progress: UnitProgress) -> Iterator[JsonObject]:
    for obj in progress.objects:
        if not obj.is_live and (obj.is_hook or not obj.is_desired):
            continue
        kind = obj.ref.kind
        entry: JsonObject = {"group": kind.group} if kind.group else {}
        entry |= {"version": kind.version, "kind": kind.name}
        entry |= {"namespace": obj.ref.namespace} if obj.ref.namespace else {}
        entry["name"] = obj.ref.name
        if obj.is_hook:
            yield {**entry, "hook": True}
            continue
        entry["status"] = SYNCED if obj.in_sync else OUT_OF_SYNC
        entry |= {"requiresPruning": True} if not obj.is_desired else {}
        entry |= {"requiresDeletionConfirmation": True} if obj.requires_confirmation else {}
        entry |= {"syncWave": obj.wave} if obj.wave and obj.is_desired else {}
        yield entry


def revision_name(revision: Revision) -> str:
    """Format a revision like Argo CD: a commit, else a chart version, else a digest."""
    if revision.digest.startswith("sha1:"):
        return revision.hex
    return (
        str(revision) if revision.name.startswith("working") else revision.name or revision.digest
    )


def _revisions(spec: JsonObject, sources: Sequence[SourceRevision]) -> JsonObject:
    names: list[Json] = [revision_name(source.revision) for source in sources]
    if get_list(spec, "sources"):
        return {"revisions": names}
    return {"revision": names[0]} if names else {}


def _compared_to(spec: JsonObject) -> JsonObject:
    more: JsonObject = {
        name: spec[name] for name in ("destination", "ignoreDifferences") if spec.get(name)
    }
    return {**source_fields(spec), "destination": {}, **more}


def _source_types(spec: JsonObject, sources: Sequence[SourceRevision]) -> JsonObject:
    names: list[Json] = [source.tool for source in sources]
    if not all(names) or not names:
        return {}
    return {"sourceTypes": names} if get_list(spec, "sources") else {"sourceType": names[0]}


def _summary(previous: JsonObject, progress: UnitProgress) -> JsonObject:
    """Return images, URLs and `isAppOfApps`; during a rollout, the current summary."""
    if progress.phase is not UnitPhase.FINISHED:
        return get_mapping(previous, "summary")
    live_objects = [obj for obj in progress.objects if obj.is_live and not obj.is_hook]
    candidates = [
        (obj, decode_body(obj))
        for obj in live_objects
        if IMAGE in obj.body or obj.ref.kind.name == INGRESS
    ]
    images = sorted({image for _, body in candidates for image in _images(body)})
    urls = sorted({url for obj, body in candidates for url in _urls(obj.ref, body)})
    summary: JsonObject = {"images": list[Json](images)} if images else {}
    summary |= {"externalURLs": list[Json](urls)} if urls else {}
    has_children = any(
        (obj.ref.kind.group, obj.ref.kind.name) == APPLICATION for obj in live_objects
    )
    return {**summary, "isAppOfApps": True} if has_children else summary


def _images(body: JsonObject) -> Iterator[str]:
    for path in POD_SPEC_PATHS:
        for name in ("initContainers", "containers"):
            yield from (
                get_text(container, "image")
                for container in get_mappings(body, *path, name)
                if container.get("image")
            )


def _urls(ref: Ref, body: JsonObject) -> Iterator[str]:
    """Yield the external URLs of an Ingress."""
    if ref.kind.name != INGRESS:
        return
    secured = {
        str(host) for tls in get_mappings(body, "spec", "tls") for host in get_list(tls, "hosts")
    }
    addresses = get_mappings(body, "status", "loadBalancer", "ingress")
    default_host = next(
        (get_text(address, "hostname") or get_text(address, "ip") for address in addresses), ""
    )
    for rule in get_mappings(body, "spec", "rules"):
        host = get_text(rule, "host", default=default_host)
        scheme = "https" if host in secured else "http"
        for path in get_mappings(rule, "http", "paths") if host else ():
            yield f"{scheme}://{host}{get_text(path, 'path').removesuffix('*').rstrip('/')}"


def _conditions(
    previous: JsonObject, progress: UnitProgress, revisions: JsonObject, now: str
) -> Iterator[JsonObject]:
    """Yield the conditions; an unchanged one keeps its transition time."""
    old_conditions = get_mappings(previous, "conditions")
    conditions = [
        condition
        for condition in old_conditions
        if get_text(condition, "type") not in MANAGED_CONDITIONS
    ]
    if not progress.is_valid:
        conditions.append({"type": "ComparisonError", "message": progress.message})
    elif progress.phase is UnitPhase.FINISHED and progress.result == RolloutOutcome.FAILED:
        message = (
            f"Failed last sync attempt to [{short_revisions(revisions)}]:"
            f" {operation_message(progress)}"
        )
        conditions.append({"type": "SyncError", "message": message})
    elif progress.phase is not UnitPhase.FINISHED:
        conditions += (
            condition
            for condition in old_conditions
            if get_text(condition, "type") in MANAGED_CONDITIONS
        )
    for condition in sorted(
        conditions,
        key=lambda condition: (get_text(condition, "type"), get_text(condition, "message")),
    ):
        same = (
            old
            for old in old_conditions
            if {**old, "lastTransitionTime": ""} == {**condition, "lastTransitionTime": ""}
        )
        since = next((get_text(old, "lastTransitionTime") for old in same), "")
        yield {
            **condition,
            "lastTransitionTime": get_text(condition, "lastTransitionTime") or since or now,
        }


def _is_interrupted(previous: JsonObject, progress: UnitProgress) -> bool:
    """Return whether the current status has a running operation that has finished by now."""
    is_running = get_text(previous, "operationState", "phase") == "Running"
    return is_running and progress.phase is UnitPhase.FINISHED


def decode_body(obj: ObjectProgress) -> JsonObject:
    """Return the body of an object; an empty one if it is unknown."""
    body: JsonObject = msgspec.json.decode(obj.body) if obj.body else {}
    return body


def _without(status: JsonObject, name: str) -> JsonObject:
    return {key: value for key, value in status.items() if key != name}


def _without_empty(status: JsonObject, name: str) -> JsonObject:
    return status if status.get(name) else _without(status, name)
