"""HelmReleases that Flux has brought, by what they have left in a cluster.

    Kustomization ── status.inventory ──▶ HelmRelease ── status.history ──▶ records of Helm

kustomize-controller prunes what its inventory names and its labels own. helm-controller uninstalls
what the status of a HelmRelease says, as its text says how, takes its finalizer off, and deletes
the HelmChart that it has made. Nothing of ours need be there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec import structs

from tidegate.dialect.flux.release import read_helm_release
from tidegate.dialect.inventories import inventory_refs
from tidegate.dialect.tracking import FLUX_GROUPS
from tidegate.documents import Document
from tidegate.errors import Location
from tidegate.flows.journal import read_journal
from tidegate.flows.looking import get_objects, object_body
from tidegate.flows.means import prune_candidate
from tidegate.flows.session import Session
from tidegate.model.journal import UnitOrigin
from tidegate.model.ledger import ReleaseSpec
from tidegate.model.objects import JsonObject, Kind, Ref, versionless_key
from tidegate.model.plan import PlannedUnit
from tidegate.model.policy import Permission
from tidegate.model.reading import get_list, get_mappings, get_text
from tidegate.model.unit import UnitId
from tidegate.plan.pruning import PruneCandidate

HELM_RELEASE = "HelmRelease"
HELM_CHART = Kind("source.toolkit.fluxcd.io", "v1", "HelmChart")


async def find_leftover_releases(
    units: Iterable[PlannedUnit], known_units: Collection[UnitId], session: Session
) -> list[tuple[UnitOrigin, str]]:
    """Return HelmReleases in the inventories of these units that are no known units, by cluster."""
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
    """Whether the parent unit would prune the object."""
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
    propagation = unit.policy.farewell
    return UnitOrigin(unit_id, parent, cascades=True, farewell=propagation, release=uninstalled)


def installed_release(unit_resource: JsonObject) -> tuple[str, str, str] | None:
    """Return storage namespace, name and namespace of the release in a HelmRelease's status.

    None where the status has no history.
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
        refs = [
            Ref(kinds[group, kind], namespace, name)
            for group, kind, namespace, name in ids
            if (group, kind) in kinds
        ]
        for live in await get_objects(session.world, refs, cluster=cluster) if refs else ():
            resources[ids[versionless_key(live.ref)]] = object_body(live)
    return resources


async def remaining_resources(
    origin: UnitOrigin, parent: PlannedUnit | None, session: Session
) -> tuple[PruneCandidate, ...]:
    """Return what is deleted after the uninstall: the HelmRelease, and the HelmChart it created.

    Empty where the parent's journal contains the HelmRelease: the parent prunes it.
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
    charts = await get_objects(session.world, _chart_refs(unit_resource), cluster=parent.cluster)
    return (
        PruneCandidate(ref, removed_finalizers=finalizers),
        *(PruneCandidate(chart.ref) for chart in charts),
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
