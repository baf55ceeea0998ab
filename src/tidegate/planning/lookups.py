"""Helm `lookup` calls for objects that the same rollout deploys.

A template may find other objects when its release starts than when it is planned. If it found
nothing, and a unit of the rollout deploys the object, there is a finding. A chart that cannot be
rendered without the object is planned without its objects until then. If no unit deploys the
object, the release is faulty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tidegate.errors import Location
from tidegate.knowledge.catalog import KindCatalog
from tidegate.model.display import join_limited
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.model.units.chart_request import LookupResult
from tidegate.model.units.unit import Unit, UnitId
from tidegate.planning.exclusions import fault_findings
from tidegate.planning.facts import PlanningFacts
from tidegate.planning.manifests import ManifestSet, UnitManifests
from tidegate.planning.provided import CRD, operator_products
from tidegate.workspace.cluster_inputs import LookupPath, parse_lookup_path
from tidegate.workspace.discovery.unit_tree import RenderedUnit
from tidegate.workspace.rendering.charts import is_empty_response

LOOKUP_CODE = "flux.lookup-late"


class _DeployedObject(msgspec.Struct, frozen=True):
    """An object that a unit deploys to a cluster, directly or through an operator."""

    unit: UnitId
    cluster: str
    ref: Ref


def resolve_lookups(
    manifest_set: ManifestSet,
    members: Sequence[RenderedUnit],
    facts: PlanningFacts,
    *,
    can_replan: bool,
) -> list[Finding]:
    """Return findings about releases that look up objects which do not exist yet.

    Without `can_replan` there is no new plan when a release is due.
    """
    with_lookups = [
        unit_manifests
        for unit_manifests in manifest_set.units
        if any(map(_may_find_more, unit_manifests.rendered.lookups.values()))
    ]
    if not with_lookups:
        return []
    deployed, findings = (
        [*_deployed_objects(manifest_set.units, facts.evaluator.rules.catalog)],
        list[Finding](),
    )
    unknown: dict[UnitId, UnitManifests] = {}
    for unit_manifests in with_lookups:
        unit = unit_manifests.manifests.unit
        served_kinds = facts.kinds[unit.destination.cluster]
        plurals = {served.kind: served.plural for served in served_kinds}
        provided = [*_provided_lookups(unit_manifests, deployed, plurals)]
        if provided:
            findings.append(_postponed_finding(unit, _join_objects(provided)))
        if unit_manifests.rendered.lookup_error is not None and not (provided and can_replan):
            unknown[unit.id] = unit_manifests
    findings += _postpone_unknown(members, manifest_set, unknown) if can_replan else ()
    by_id = {member.unit.id: member for member in members}
    for unit_id, unit_manifests in unknown.items():
        manifest_set.units.remove(unit_manifests)
        manifest_set.faulty[unit_id] = by_id[unit_id]
        if unit_manifests.rendered.lookup_error is not None:
            findings += fault_findings(
                unit_manifests.manifests.unit, [unit_manifests.rendered.lookup_error]
            )
    return findings


def _postpone_unknown(
    members: Sequence[RenderedUnit], manifest_set: ManifestSet, unknown: dict[UnitId, UnitManifests]
) -> Iterator[Finding]:
    """Remove units from `unknown` that wait for units whose objects are not known yet.

    These units may deploy the objects that are looked up.
    """
    order = _UnitOrder([member.unit for member in members])
    pending = {
        unit_manifests.manifests.unit.id
        for unit_manifests in manifest_set.units
        if unit_manifests.rendered.lookup_error is not None
    }
    pending -= unknown.keys()
    has_changed = True
    while has_changed:
        has_changed = False
        for unit_id in [*unknown]:
            before = pending & order.units_before(unit_id)
            if before:
                has_changed = True
                pending.add(unit_id)
                unit = unknown.pop(unit_id).manifests.unit
                yield _postponed_finding(
                    unit,
                    "objects that may be deployed by "
                    + ", ".join(f"`{predecessor}`" for predecessor in sorted(before)),
                )


class _UnitOrder:
    """Which units come before a unit: dependencies of it and its parents, with their children."""

    def __init__(self, units: list[Unit]) -> None:
        self._units = {unit.id: unit for unit in units}
        self._children: dict[UnitId, list[UnitId]] = {}
        for unit in units:
            if unit.parent is not None:
                self._children.setdefault(unit.parent, []).append(unit.id)

    def units_before(self, unit_id: UnitId) -> set[UnitId]:
        before: set[UnitId] = set()
        pending = [*self._dependencies_with_parents(unit_id)]
        while pending:
            predecessor = pending.pop()
            if predecessor not in before:
                before.add(predecessor)
                pending += [
                    *self._dependencies_with_parents(predecessor),
                    *self._children.get(predecessor, ()),
                ]
        return before

    def _dependencies_with_parents(self, unit_id: UnitId) -> Iterator[UnitId]:
        """Yield the dependencies of a unit and of its parents."""
        current: UnitId | None = unit_id
        seen: set[UnitId] = set()
        while current in self._units and current not in seen:
            seen.add(current)
            yield from (
                dependency.unit
                for dependency in self._units[current].dependencies
                if dependency.unit is not None
            )
            current = self._units[current].parent


def _may_find_more(answer: LookupResult) -> bool:
    """Return whether a later lookup may find more: the result is empty or a list."""
    return is_empty_response(answer) or "items" in msgspec.json.decode(answer.body)


def _deployed_objects(
    all_manifests: Iterable[UnitManifests], catalog: KindCatalog
) -> Iterator[_DeployedObject]:
    for unit_manifests in all_manifests:
        unit = unit_manifests.manifests.unit
        for manifest in unit_manifests.manifests.manifests:
            yield _DeployedObject(unit.id, unit.destination.cluster, manifest.ref)
            for ref in operator_products(manifest.ref, msgspec.json.decode(manifest.body), catalog):
                yield _DeployedObject(unit.id, unit.destination.cluster, ref)


def _provided_lookups(
    unit_manifests: UnitManifests, deployed: Iterable[_DeployedObject], plurals: dict[Kind, str]
) -> Iterator[_DeployedObject]:
    """Yield the objects of other units that a lookup did not find."""
    unit = unit_manifests.manifests.unit
    from_others = [
        deployed_object
        for deployed_object in deployed
        if deployed_object.unit != unit.id and deployed_object.cluster == unit.destination.cluster
    ]
    for path, answer in unit_manifests.rendered.lookups.items():
        lookup = parse_lookup_path(path)
        if lookup is None or not _may_find_more(answer):
            continue
        known_names = {get_text(item, "metadata", "name") for item in _items(answer)}
        for deployed_object in from_others:
            if deployed_object.ref.name not in known_names and _matches(
                deployed_object.ref, lookup, plurals
            ):
                yield deployed_object


def _items(answer: LookupResult) -> list[dict[str, Json]]:
    return get_mappings(msgspec.json.decode(answer.body), "items")


def _matches(ref: Ref, lookup: LookupPath, plurals: dict[Kind, str]) -> bool:
    if not lookup.plural:  # the group is not served; its CRDs come first
        group = lookup.api_version.rpartition("/")[0]
        defines = (ref.kind.group, ref.kind.name) == CRD
        return defines and ref.name.partition(".")[2] == group
    if ref.kind.api_version != lookup.api_version or plurals.get(ref.kind) != lookup.plural:
        return False
    if lookup.name:
        return (ref.namespace, ref.name) == (lookup.namespace, lookup.name)
    return lookup.namespace in {"", ref.namespace}


def _join_objects(provided: list[_DeployedObject]) -> str:
    names = [f"{deployed.ref} (`{deployed.unit}`)" for deployed in provided]
    return f"{join_limited(names)}, deployed by other units"


def _postponed_finding(unit: Unit, description: str) -> Finding:
    return Finding(
        code=LOOKUP_CODE,
        severity=Severity.NOTE,
        message=f"`{unit.id}` can only be rendered during the rollout: it looks up {description}",
        location=unit.location or Location(f"unit {unit.id}"),
        reason="`sync` and `simulate` render it again at that point",
        fix="make it depend on these units; an object that does not exist yet is not found",
    )
