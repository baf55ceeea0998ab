"""Previous releases of units: another name, namespace, storage namespace or chart.

helm-controller uninstalls the previous release before it installs the new one. Here that is a
separate unit, between the dependencies of its successor and the successor:

    dependencies ──▶ uninstall of the previous release ──▶ install ──▶ dependents

A previous release is known by its records, which name their unit; one that Flux installed, by
the status of the live HelmRelease. So nothing is lost when Tidegate is killed: the release is
found as long as a record exists.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from tidegate.clusters.session import Session
from tidegate.dialect.helm.record import OWNER_SELECTOR, PENDING, read_annotations
from tidegate.dialect.helm.record_owner import (
    UNIT,
    PreviousRelease,
    is_uninstalled,
    previous_release,
    revision_number,
)
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.kinds import SECRET
from tidegate.model.k8s.objects import Json, JsonObject, LiveObject, object_body
from tidegate.model.plans.plan import Edge, EdgeReason, Plan, PlanFragment, PlannedUnit
from tidegate.model.units.release_history import ReleaseSpec
from tidegate.model.units.unit import Destination, Unit, UnitId
from tidegate.planning.plan import PlanResult
from tidegate.removal.removed_units import with_removed_units
from tidegate.removal.uninstall import (
    moved_release,
    plan_uninstall,
    read_unit_resources,
    uninstall_policy,
)
from tidegate.world.messages import Forbidden
from tidegate.world.requests import Selection, View


def find_pending_releases(
    units: Iterable[PlannedUnit], records: Iterable[LiveObject]
) -> Iterator[Finding]:
    """Yield a finding for each release whose last revision another tool left pending.

    Helm rejects actions on such a release.
    """
    newest: dict[tuple[str, str], dict[str, Json]] = {}
    for metadata in (get_mapping(object_body(record), "metadata") for record in records):
        key = (get_text(metadata, "namespace"), get_text(metadata, "labels", "name"))
        if _revision_number(metadata) > _revision_number(newest.get(key, {})):
            newest[key] = metadata
    for unit in units:
        release = unit.policy.release
        latest = newest.get((release.storage, release.name), {}) if release is not None else {}
        is_ours = read_annotations(latest).get(UNIT) == unit.id.tracking_id
        if release is not None and not is_ours and get_text(latest, "labels", "status") in PENDING:
            yield _pending_finding(unit, release, latest)


def _revision_number(metadata: dict[str, Json]) -> int:
    version = get_text(metadata, "labels", "version")
    return int(version) if version.isdecimal() else 0


def _pending_finding(unit: PlannedUnit, release: ReleaseSpec, metadata: dict[str, Json]) -> Finding:
    status = get_text(metadata, "labels", "status")
    return Finding(
        code="flux.release-locked",
        severity=Severity.NOTE,
        message=(
            f"revision {_revision_number(metadata)} of release"
            f" `{release.namespace}/{release.name}` is `{status}` and was not created by"
            f" `{unit.id}`; it is marked `failed`, and the next action is an upgrade"
        ),
        reason="its client was killed or is still running; helm-controller also unlocks it",
        fix="make sure that no other client is working on the release",
    )


PAGE_SIZE = 500
RECORDS = Selection(SECRET, label_selector=OWNER_SELECTOR, view=View.METADATA)
"""The records of all Helm releases of a cluster."""


async def with_removals(plan_result: PlanResult, session: Session) -> PlanResult:
    """Return the plan with the removal of all that left Git: units and previous releases."""
    return await with_moved_releases(await with_removed_units(plan_result, session), session)


async def with_moved_releases(plan_result: PlanResult, session: Session) -> PlanResult:
    """Return the plan with the uninstall of previous releases."""
    releases = [unit for unit in plan_result.plan.units if unit.policy.release is not None]
    plan, findings = plan_result.plan, list(plan_result.findings)
    removed, previous = list(plan_result.removed_units), dict[UnitId, UnitId]()
    for cluster in dict.fromkeys(unit.cluster for unit in releases):
        cluster_units = [unit for unit in releases if unit.cluster == cluster]
        namespaces = _release_namespaces(cluster_units)
        listing = await session.reader(cluster).list_in({RECORDS: namespaces}, page_size=PAGE_SIZE)
        listing.raise_errors("reading Helm release records", ignored=Forbidden)
        records = listing.items
        if RECORDS not in listing.pages:
            findings.append(_partial_list_finding(namespaces, cluster))
        findings += find_pending_releases(cluster_units, records)
        unit_resources = await read_unit_resources((unit.id for unit in cluster_units), session)
        for unit, release in _previous_releases(cluster_units, records, unit_resources):
            uninstall = await plan_uninstall(_uninstall_unit(unit, release), unit.id, session)
            plan = _insert_before(plan, uninstall, unit.id)
            removed += uninstall.units
            previous[uninstall.units[0].id] = unit.id
            findings.append(_moved_finding(unit, release))
    return structs.replace(
        plan_result,
        plan=plan,
        findings=tuple(findings),
        removed_units=tuple(removed),
        previous_releases=previous,
    )


def _release_namespaces(units: Iterable[PlannedUnit]) -> list[str]:
    """Return the namespaces of the releases, for users who may not list all Secrets."""
    namespaces = {
        namespace
        for unit in units
        if (release := unit.policy.release) is not None
        for namespace in (release.storage, release.namespace)
    }
    return sorted(namespaces)


def _installed_releases(records: Iterable[LiveObject]) -> dict[tuple[str, str], JsonObject]:
    """Return the newest record of each installed release, by storage namespace and name."""
    bodies = [object_body(record) for record in records]
    latest: dict[tuple[str, str], JsonObject] = {}
    for body in sorted(bodies, key=revision_number):
        metadata = get_mapping(body, "metadata")
        latest[get_text(metadata, "namespace"), get_text(metadata, "labels", "name")] = body
    return {key: body for key, body in latest.items() if not is_uninstalled(body)}


def _previous_releases(
    units: Iterable[PlannedUnit],
    records: Iterable[LiveObject],
    unit_resources: Mapping[UnitId, JsonObject],
) -> Iterator[tuple[PlannedUnit, ReleaseSpec]]:
    """Yield, by unit, the installed releases that are not its current one, in name order.

    Tidegate's records name their unit; for records of Flux, unit resources do. A changed chart
    is known since the chart was rendered.
    """
    installed = _installed_releases(records)
    candidates = (previous_release(body) for body in installed.values())
    by_tracking_id = defaultdict[str, list[PreviousRelease]](list)
    for candidate in sorted(candidate for candidate in candidates if candidate is not None):
        by_tracking_id[candidate.unit_tracking_id].append(candidate)
    for unit in units:
        release = unit.policy.release
        if release is None:
            continue
        previous = [
            structs.replace(
                release,
                storage=candidate.storage,
                name=candidate.name,
                namespace=candidate.namespace,
            )
            for candidate in by_tracking_id[unit.id.tracking_id]
        ]
        reported = (
            moved_release(unit_resources[unit.id], release) if unit.id in unit_resources else None
        )
        previous += (
            [reported] if reported and (reported.storage, reported.name) in installed else []
        )
        current = (release.storage, release.name, release.namespace)
        others = {(spec.storage, spec.name, spec.namespace): spec for spec in previous}
        yield from ((unit, spec) for key, spec in others.items() if key != current)
        if release.former_chart:
            yield unit, structs.replace(release, chart=release.former_chart)


def _uninstall_unit(unit: PlannedUnit, release: ReleaseSpec) -> Unit:
    """Return a unit for the uninstall, with a name that no Kubernetes object can have."""
    name = f"{unit.id.name}@{release.storage}.{release.namespace}.{release.name}"
    unit_id = structs.replace(unit.id, name=name)
    policy = structs.replace(
        uninstall_policy(release),
        identity=unit.policy.identity,
        deletion_propagation=unit.policy.deletion_propagation,
    )
    return Unit(id=unit_id, destination=Destination(unit.cluster, release.namespace), policy=policy)


def _insert_before(plan: Plan, uninstall: Plan, unit: UnitId) -> Plan:
    """Insert the uninstall after the dependencies of the unit, and before the unit."""
    unit_steps = {step.id for step in plan.steps if step.unit == unit}
    inner = {edge.after for edge in plan.edges if edge.before in unit_steps}
    heads = {name for name in unit_steps if name not in inner}
    first, last = uninstall.steps[0].id, uninstall.steps[-1].id
    waits = (edge for edge in plan.edges if edge.after in heads)
    edges = [*plan.edges, *uninstall.edges]
    edges += [structs.replace(edge, after=first) for edge in waits]
    edges += [Edge(last, name, EdgeReason.STAGE) for name in sorted(heads)]
    index = next(
        (index for index, step in enumerate(plan.steps) if step.unit == unit), len(plan.steps)
    )
    return Plan.from_fragment(
        PlanFragment(
            units=(*plan.units, *uninstall.units),
            steps=(*plan.steps[:index], *uninstall.steps, *plan.steps[index:]),
            edges=tuple(dict.fromkeys(edges)),
            slots=plan.slots,
        )
    )


def _partial_list_finding(namespaces: Iterable[str], cluster: str) -> Finding:
    suffix = f" of cluster `{cluster}`" if cluster else ""
    return Finding(
        code="flux.release-unknown",
        severity=Severity.NOTE,
        message="searching previous releases only in "
        + ", ".join(f"`{namespace}`" for namespace in namespaces)
        + f"{suffix}: listing Secrets of all namespaces is forbidden",
        reason="a release with its records in another namespace is not uninstalled",
        fix="allow listing Secrets in all namespaces, or uninstall a moved release manually",
    )


def _moved_finding(unit: PlannedUnit, previous: ReleaseSpec) -> Finding:
    current = unit.policy.release or previous
    if current.former_chart == previous.chart:
        return _chart_changed_finding(unit, current)
    return Finding(
        code="flux.release-moved",
        severity=Severity.NOTE,
        message=(
            f"`{unit.id}` was release `{previous.namespace}/{previous.name}` with its records"
            f" in `{previous.storage}` and is now `{current.namespace}/{current.name}` in"
            f" `{current.storage}`; the old release is uninstalled and the new one installed"
        ),
        reason="Helm identifies a release by name and namespaces; helm-controller does the same",
    )


def _chart_changed_finding(unit: PlannedUnit, current: ReleaseSpec) -> Finding:
    return Finding(
        code="flux.release-moved",
        severity=Severity.NOTE,
        message=(
            f"`{unit.id}` was a release of chart `{current.former_chart}` and is now one of"
            f" `{current.chart}`; the old release is uninstalled and the new one installed"
        ),
        reason="helm-controller treats a chart with another name as another release",
        fix="set `upgrade.chartNameChangeStrategy: InPlaceUpdate` to upgrade it in place",
    )
