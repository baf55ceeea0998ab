"""Uninstall of releases whose units were removed from Git or moved.

The record of a release lists the objects to delete and the hooks to run before and after, like
for `helm uninstall`. HelmReleases that Flux deployed are found without a Tidegate record:

    Kustomization ── status.inventory ──▶ HelmRelease ── status.history ──▶ Helm records

kustomize-controller prunes what its inventory names and its labels own. helm-controller
uninstalls the release in the HelmRelease's status, removes its finalizer, and deletes the
HelmChart it created.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec
from msgspec import structs

from tidegate.clusters.evaluator import prune_candidate
from tidegate.clusters.journal import read_journal
from tidegate.clusters.session import Session
from tidegate.dialect.flux.release import read_helm_release
from tidegate.dialect.helm.action_policy import with_action
from tidegate.dialect.helm.record import (
    ReleaseStatus,
)
from tidegate.dialect.helm.record_owner import manifest_refs, newest_record
from tidegate.dialect.ownership.inventories import inventory_refs
from tidegate.dialect.ownership.tracking import FLUX_GROUPS
from tidegate.dialect.semantics import KSTATUS
from tidegate.documents import Document
from tidegate.errors import Location
from tidegate.health.readiness_timeout import readiness_timeout
from tidegate.model.k8s.json_fields import get_list, get_mappings, get_text
from tidegate.model.k8s.objects import (
    JsonObject,
    Kind,
    Propagation,
    Ref,
    object_body,
    versionless_key,
)
from tidegate.model.plans.manifest import Manifests
from tidegate.model.plans.plan import Plan, PlanFragment, PlannedUnit
from tidegate.model.rollouts.journal import UnitOrigin
from tidegate.model.units.policy import ObjectOptions, Order, Permission, Policy, Tracking
from tidegate.model.units.release_history import ReleaseAction, ReleaseSpec
from tidegate.model.units.unit import Unit, UnitId
from tidegate.plan.build.build import plan_unit
from tidegate.plan.build.child_units import end_step
from tidegate.plan.changes.delete_unit import build_deletion
from tidegate.plan.changes.prune import PruneCandidate
from tidegate.planning.manifests import KnownKinds
from tidegate.releases.records import read_records
from tidegate.releases.remediation import parse_release, record_manifest

UNINSTALL_POLICY = Policy(
    rules=KSTATUS,
    order=Order.HELM,
    tracking=Tracking.FLUX,
    manager="helm-controller",
    object_options=ObjectOptions(propagation=Propagation.BACKGROUND),
)


def uninstall_policy(release: ReleaseSpec) -> Policy:
    """Return the policy for uninstalling a release."""
    return with_action(
        UNINSTALL_POLICY, msgspec.structs.replace(release, action=ReleaseAction.UNINSTALL)
    )


async def read_uninstall(
    unit: Unit, session: Session, hook_owner: UnitId | None = None
) -> tuple[Manifests, tuple[Ref, ...]]:
    """Return the uninstall hooks of a release, and the objects that are deleted with it.

    `hook_owner`: the unit in the ownership marker of the hooks, if it is another one.
    """
    release, nothing = unit.policy.release, Manifests(unit=unit)
    if release is None:
        return nothing, ()
    cluster, location = unit.destination.cluster, f"unit {unit.id}"
    latest = newest_record(await read_records(release, cluster, session, location=location))
    if latest is None:
        return nothing, ()
    catalog = session.evaluator.rules.catalog
    kinds = KnownKinds.from_served(await session.kinds(unit.destination.cluster), (), catalog)
    manifest = record_manifest(latest)
    planned = msgspec.structs.replace(plan_unit(unit), id=hook_owner or unit.id)
    manifests = parse_release(planned, release, manifest, kinds.is_namespaced) or nothing
    return msgspec.structs.replace(manifests, unit=unit), tuple(
        manifest_refs(latest, release.namespace)
    )


async def plan_uninstall(unit: Unit, hook_owner: UnitId, session: Session) -> Plan:
    """Return the plan that uninstalls a release; it has a step even if no objects are left."""
    hooks, refs = await read_uninstall(unit, session, hook_owner)
    planned = plan_unit(unit)
    live_objects = await session.reader(planned.cluster).get_many(refs)
    candidates = (prune_candidate(object_body(live), planned) for live in live_objects.values())
    return with_final_step(
        build_deletion(
            hooks,
            [candidate for candidate in candidates if candidate is not None],
            readiness_timeout=readiness_timeout,
        )
    )


def with_final_step(plan: Plan) -> Plan:
    """Return the plan, with one empty step if there is nothing to delete."""
    if plan.steps:
        return plan
    return Plan.from_fragment(PlanFragment(units=plan.units, steps=(end_step(plan.units[0]),)))


async def is_installed(unit: Unit, session: Session) -> bool:
    """Return whether a unit is a release that Helm lists as installed or being uninstalled."""
    release = unit.policy.release
    if release is None:
        return False
    cluster, location = unit.destination.cluster, f"unit {unit.id}"
    latest = newest_record(await read_records(release, cluster, session, location=location))
    return latest is not None and latest.status is not ReleaseStatus.UNINSTALLED


HELM_RELEASE = "HelmRelease"
HELM_CHART = Kind("source.toolkit.fluxcd.io", "v1", "HelmChart")


async def find_leftover_releases(
    units: Iterable[PlannedUnit], known_units: Collection[UnitId], session: Session
) -> list[tuple[UnitOrigin, str]]:
    """Return HelmReleases in the inventories of these units that are unknown units, by cluster."""
    parents = {unit.id: unit for unit in units if unit.id.kind in FLUX_GROUPS}
    leftovers: list[tuple[UnitOrigin, str]] = []
    for unit_id, kustomization in (await read_unit_resources(parents, session)).items():
        parent = parents[unit_id]
        refs = [ref for ref in inventory_refs(kustomization) or () if _is_release(ref)]
        release_ids = [
            UnitId(HELM_RELEASE, parent.cluster, ref.namespace, ref.name) for ref in refs
        ]
        bodies = await read_unit_resources(
            (release_id for release_id in release_ids if release_id not in known_units), session
        )
        leftovers += [
            (_unit_origin(release_id, body, parent.id), parent.cluster)
            for release_id, body in bodies.items()
            if _can_prune(body, parent)
        ]
    return leftovers


def _is_release(ref: Ref) -> bool:
    return (ref.kind.group, ref.kind.name) == (FLUX_GROUPS[HELM_RELEASE], HELM_RELEASE)


def _can_prune(body: JsonObject, parent: PlannedUnit) -> bool:
    """Return whether the parent unit would prune the object."""
    candidate = prune_candidate(body, parent)
    return candidate is not None and candidate.options.prune is not Permission.NO


def _unit_origin(unit_id: UnitId, body: JsonObject, parent: UnitId) -> UnitOrigin:
    (unit,) = read_helm_release(
        Document(body, Location(f"{unit_id} in the cluster")), unit_id.namespace
    ).units
    spec = unit.policy.release
    installed = installed_release(body)
    if spec is None or installed is None:
        return UnitOrigin(unit_id, parent, cascades=True)
    storage, release, namespace = installed
    uninstalled = structs.replace(
        spec, storage=storage, name=release, namespace=namespace, ignores=()
    )
    propagation = unit.policy.deletion_propagation
    return UnitOrigin(
        unit_id, parent, cascades=True, deletion_propagation=propagation, release=uninstalled
    )


def installed_release(unit_resource: JsonObject) -> tuple[str, str, str] | None:
    """Return storage namespace, name and namespace of the release in a HelmRelease's status.

    None if the status has no history.
    """
    storage, history = (
        get_text(unit_resource, "status", "storageNamespace"),
        get_mappings(unit_resource, "status", "history"),
    )
    if not (storage and history):
        return None
    default_namespace = get_text(unit_resource, "metadata", "namespace")
    return (
        storage,
        get_text(history[0], "name"),
        get_text(history[0], "namespace", default=default_namespace),
    )


async def read_unit_resources(
    units: Iterable[UnitId], session: Session
) -> dict[UnitId, JsonObject]:
    """Return the live unit resources of Flux units, where their kinds are served."""
    by_cluster: dict[str, dict[tuple[str, str, str, str], UnitId]] = {}
    for unit_id in units:
        cluster = session.cluster_or_default(unit_id.cluster)
        identity_key = (FLUX_GROUPS[unit_id.kind], unit_id.kind, unit_id.namespace, unit_id.name)
        by_cluster.setdefault(cluster, {})[identity_key] = unit_id
    resources: dict[UnitId, JsonObject] = {}
    for cluster, ids in by_cluster.items():
        kinds = {
            (served_kind.kind.group, served_kind.kind.name): served_kind.kind
            for served_kind in await session.kinds(cluster)
        }
        refs = {
            Ref(kinds[group, kind], namespace, name): unit_id
            for (group, kind, namespace, name), unit_id in ids.items()
            if (group, kind) in kinds
        }
        live_objects = await session.reader(cluster).get_many(refs)
        resources |= {refs[ref]: object_body(live) for ref, live in live_objects.items()}
    return resources


async def remaining_resources(
    origin: UnitOrigin, parent: PlannedUnit | None, session: Session
) -> tuple[PruneCandidate, ...]:
    """Return what is deleted after the uninstall: the HelmRelease, and the HelmChart it created.

    Empty if the parent's journal contains the HelmRelease: the parent prunes it.
    """
    if origin.unit.kind != HELM_RELEASE or parent is None:
        return ()
    unit_resource = (await read_unit_resources((origin.unit,), session)).get(origin.unit)
    if unit_resource is None or not _can_prune(unit_resource, parent):
        return ()
    ref = Ref(
        Kind.of(get_text(unit_resource, "apiVersion"), HELM_RELEASE),
        origin.unit.namespace,
        origin.unit.name,
    )
    journal = (await read_journal(parent, session.world)).journal
    if versionless_key(ref) in map(versionless_key, journal.entries):
        return ()
    finalizers = tuple(map(str, get_list(unit_resource, "metadata", "finalizers")))
    charts = await session.reader(parent.cluster).get_many(_chart_refs(unit_resource))
    return (
        PruneCandidate(ref, removed_finalizers=finalizers),
        *(PruneCandidate(chart.ref) for chart in charts.values()),
    )


def _chart_refs(unit_resource: JsonObject) -> Iterator[Ref]:
    namespace, separator, name = get_text(unit_resource, "status", "helmChart").partition("/")
    if separator:
        yield Ref(HELM_CHART, namespace, name)


def moved_release(unit_resource: JsonObject, release: ReleaseSpec) -> ReleaseSpec | None:
    """Return the release in a HelmRelease's status, if it is not the desired one; else None."""
    installed = installed_release(unit_resource)
    if installed is None or installed == (release.storage, release.name, release.namespace):
        return None
    storage, name, namespace = installed
    return structs.replace(release, storage=storage, name=name, namespace=namespace)
