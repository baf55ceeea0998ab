"""Prerequisites of a write: the kind is served and the namespace exists.

An object whose prerequisite is neither live nor planned fails before the first write. A step
that expands may add anything, so nothing is reported before all such steps are expanded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from tidegate.engine.cluster.compare import ComparedItem
from tidegate.engine.cluster.live_cache import LiveCache
from tidegate.engine.cluster.preflight.admission_context import UNWRITTEN_ACTIONS
from tidegate.engine.cluster.preflight.checks import ObjectFailure, will_be_written
from tidegate.engine.cluster.preflight.probes import crd_kinds
from tidegate.engine.cluster.procedures import ApiCall, Pause, Procedure
from tidegate.engine.messages import Failure
from tidegate.model.k8s.kinds import CRD, NAMESPACE
from tidegate.model.k8s.objects import ClusterRef, Kind, Ref
from tidegate.model.plans.plan import PlanItem, PlannedUnit, Step, step_items
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.unit import UnitId
from tidegate.world.messages import ErrorOutcome, NotFound
from tidegate.world.requests import Get

SERVED_TIMEOUT = Ms(30 * SECOND)
"""How long it may take until the kind of a CRD is served."""
POLL_INTERVAL = Ms(SECOND // 2)
SKIP_OPTION = "SkipDryRunOnMissingResource=true"


def find_unmet_prerequisites(
    steps: list[Step],
    compared_items: list[ComparedItem],
    live_cache: LiveCache,
    units: Mapping[UnitId, PlannedUnit],
) -> Procedure[list[ObjectFailure]]:
    """Return the objects to be written whose kind or namespace is neither live nor planned.

    `steps` are those of the rollout whose objects count as planned. A missing namespace is found
    by a dry run on the server only.
    """
    if _may_expand(steps):
        return []
    written = [compared_item for compared_item in compared_items if will_be_written(compared_item)]
    planned = [(step.cluster, item) for step in steps for item in step_items(step)]
    dry_run = [item for item in written if units[item[0].unit].policy.semantics.dry_runs_on_server]
    without_namespace = yield from _find_without_namespace(dry_run, planned, live_cache)
    return [
        *find_unserved(steps, written, live_cache),
        *map(_namespace_failure, without_namespace),
    ]


def find_unserved(
    steps: Sequence[Step], written: Iterable[ComparedItem], live_cache: LiveCache
) -> list[ObjectFailure]:
    """Return the written objects whose kind is neither served nor planned."""
    if _may_expand(steps):
        return []
    unserved_items = [
        compared_item
        for compared_item in written
        if not live_cache.is_served(compared_item[2].object_ref)
        and not compared_item[1].options.skip_missing_kind
    ]
    kinds_by_cluster = {
        name: planned_kinds(
            item for step in steps if step.cluster == name for item in step_items(step)
        )
        for name in dict.fromkeys(step.cluster for step, *_ in unserved_items)
    }
    return [
        _unserved_failure(compared_item, live_cache)
        for compared_item in unserved_items
        if compared_item[1].ref.kind not in kinds_by_cluster[compared_item[0].cluster]
    ]


def _may_expand(steps: Iterable[Step]) -> bool:
    """Return whether a step may add any objects when it runs."""
    return any(step.expansion and not step.batches for step in steps)


def planned_kinds(items: Iterable[PlanItem]) -> set[Kind]:
    """Return the kinds that planned CRDs define."""
    crds = (item for item in items if item.ref.kind == CRD)
    bodies = (item.body for item in crds if item.action not in UNWRITTEN_ACTIONS)
    return {kind for body in bodies for kind in crd_kinds(msgspec.json.decode(body))}


def wait_until_served(
    object_ref: ClusterRef, live_cache: LiveCache, now: Callable[[], Ms]
) -> Procedure[ErrorOutcome | None]:
    """Sync an object whose CRD was just written.

    Return after a timeout if the kind is still not served; the write then fails.
    """
    deadline = now() + SERVED_TIMEOUT
    while live_cache.find_unsynced((object_ref,)):
        if live_cache.is_served(object_ref):
            return (yield from live_cache.sync((object_ref,)))
        error = yield from live_cache.discover_kinds((object_ref.cluster,))
        if error is not None or now() >= deadline:
            return error
        if not live_cache.is_served(object_ref):
            yield Pause(Ms(now() + POLL_INTERVAL))
    return None


def _find_without_namespace(
    written: list[ComparedItem], planned: list[tuple[str, PlanItem]], live_cache: LiveCache
) -> Procedure[list[ComparedItem]]:
    """Return the items whose namespace does not exist.

    A namespace with a live object is not read.
    """
    existing = {(object_ref.cluster, object_ref.ref.namespace) for object_ref in live_cache.objects}
    existing |= {
        (cluster, item.ref.name)
        for cluster, item in planned
        if item.ref.kind == NAMESPACE and item.action not in UNWRITTEN_ACTIONS
    }
    namespaces = dict.fromkeys((step.cluster, item.ref.namespace) for step, item, _ in written)
    unknown = [
        _namespace_ref(*namespace)
        for namespace in namespaces
        if namespace[1] and namespace not in existing
    ]
    outcomes = yield tuple(
        ApiCall(object_ref.cluster, Get(object_ref.ref)) for object_ref in unknown
    )
    missing = {
        (object_ref.cluster, object_ref.ref.name)
        for object_ref, outcome in zip(unknown, outcomes, strict=True)
        if isinstance(outcome, NotFound)
    }
    return [
        compared_item
        for compared_item in written
        if (compared_item[0].cluster, compared_item[1].ref.namespace) in missing
    ]


def _namespace_ref(cluster: str, name: str) -> ClusterRef:
    return ClusterRef(cluster, Ref(NAMESPACE, "", name))


def _unserved_failure(compared_item: ComparedItem, live_cache: LiveCache) -> ObjectFailure:
    step, item, _ = compared_item
    kind = item.ref.kind
    other_versions = [
        served_kind
        for served_kind in live_cache.served_kinds.get(step.cluster, {})
        if _is_other_version(served_kind, kind)
    ]
    if other_versions:
        names = " and ".join(f"`{served_kind}`" for served_kind in sorted(other_versions))
        message = f"the cluster does not serve `{kind}`; it serves {names}"
        return step, item.ref, Failure("NotServed", message, final=True)
    message = (
        f"the cluster does not serve `{item.ref.kind}`, and the plan does not define it;"
        f" install its CRD first, or defer the check with `{SKIP_OPTION}`"
    )
    return step, item.ref, Failure("NotServed", message, final=True)


def _is_other_version(served: Kind, desired: Kind) -> bool:
    """Return whether both are one kind in different versions.

    Built-in kinds also moved between groups.
    """
    if served.name != desired.name:
        return False
    return served.group == desired.group or all(map(_is_built_in, (served.group, desired.group)))


def _is_built_in(group: str) -> bool:
    return "." not in group or group.endswith(".k8s.io")


def _namespace_failure(compared_item: ComparedItem) -> ObjectFailure:
    step, item, _ = compared_item
    message = (
        f"namespace `{item.ref.namespace}` not found in the cluster or the plan;"
        " create it first, or add it to the plan"
    )
    return step, item.ref, Failure("NoNamespace", message, final=True)
