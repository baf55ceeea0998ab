"""Deletion of several units as one plan, in the reverse order of their deployment.

    delete wave 1 ──▶ placeholder ──▶ delete wave 0 ──▶ end
                           └──▶ child ────▲

A child unit is deleted before the wave of its parent that contains its unit resource, and so before
the namespaces that it needs. A dependent of a unit is deleted before the unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from tidegate.model.k8s.json_fields import get_list
from tidegate.model.k8s.objects import versionless_key
from tidegate.model.plans.manifest import Manifests
from tidegate.model.plans.plan import (
    EdgeReason,
    Plan,
    PlanFragment,
    PlanItem,
    PlannedUnit,
    Precedence,
    Step,
    digest_step,
)
from tidegate.model.units.policy import Order
from tidegate.model.units.unit import Unit, UnitId
from tidegate.plan.build.chains import link_chain, step_id
from tidegate.plan.build.child_units import end_step
from tidegate.plan.build.cycles import sort_steps
from tidegate.plan.build.precedence import make_edges
from tidegate.plan.changes.delete_unit import DELETE, POST_DELETE

VersionlessKey = tuple[str, str, str, str]


def join_deletions(parts: Sequence[tuple[Manifests, Plan]]) -> Plan:
    """Return one plan for the deletion plans of units, given with their manifests."""
    chains: dict[UnitId, list[Step]] = {}
    precedences: list[Precedence] = []
    units_by_id = {unit_manifests.unit.id: unit_manifests.unit for unit_manifests, _ in parts}
    for unit_manifests, plan in parts:
        children_by_wave = _children_by_wave(unit_manifests, units_by_id)
        unit, finalizers_by_key = plan.units[0], _child_finalizers(unit_manifests, units_by_id)
        unit_steps = [_with_removed_finalizers(step, finalizers_by_key) for step in plan.steps]
        chains[unit.id], child_precedences = _with_children(unit_steps, unit, children_by_wave)
        precedences += child_precedences
    precedences += (
        precedence
        for unit in units_by_id.values()
        for precedence in _reverse_dependencies(unit, units_by_id)
    )
    precedences += _reverse_rolling_sync(unit for name, unit in units_by_id.items() if chains[name])
    steps = {step.id: step for chain in chains.values() for step in chain}
    edges = [edge for chain in chains.values() for edge in link_chain(chain)]
    edges += make_edges(precedences, chains)
    units = tuple(plan.units[0] for _, plan in parts)
    ordered = sort_steps(steps, edges)
    return Plan.from_fragment(
        PlanFragment(units=units, steps=ordered, edges=tuple(dict.fromkeys(edges)))
    )


def _children_by_wave(
    unit_manifests: Manifests, units_by_id: Mapping[UnitId, Unit]
) -> dict[int, list[UnitId]]:
    """Return the child units of a unit by wave. A unit with Flux stages has a single wave."""
    is_staged = unit_manifests.unit.policy.order is Order.STAGES
    children: dict[int, list[UnitId]] = {}
    for manifest in unit_manifests.manifests:
        child_units = [name for name in manifest.child_units if name in units_by_id]
        if child_units:
            children.setdefault(0 if is_staged else manifest.wave, []).extend(child_units)
    return children


def _child_finalizers(
    unit_manifests: Manifests, units_by_id: Mapping[UnitId, Unit]
) -> dict[VersionlessKey, tuple[str, ...]]:
    """Return the finalizers of unit resources whose units are deleted, too: only we remove them."""
    finalizers_by_key: dict[VersionlessKey, tuple[str, ...]] = {}
    for manifest in unit_manifests.manifests:
        if any(name in units_by_id for name in manifest.child_units):
            finalizers = get_list(msgspec.json.decode(manifest.body), "metadata", "finalizers")
            finalizers_by_key[versionless_key(manifest.ref)] = tuple(map(str, finalizers))
    return finalizers_by_key


def _with_removed_finalizers(
    step: Step, finalizers_by_key: Mapping[VersionlessKey, tuple[str, ...]]
) -> Step:
    def without_finalizers(item: PlanItem) -> PlanItem:
        finalizers = finalizers_by_key.get(versionless_key(item.ref), ())
        return msgspec.structs.replace(item, removed_finalizers=finalizers) if finalizers else item

    batches = tuple(tuple(map(without_finalizers, batch)) for batch in step.batches)
    return msgspec.structs.replace(step, batches=batches)


def _with_children(
    steps: list[Step], unit: PlannedUnit, children: dict[int, list[UnitId]]
) -> tuple[list[Step], list[Precedence]]:
    """Return the deletion steps of a unit, with a placeholder before each wave that has child
    units.
    """
    if not children:
        return steps, []
    placeholders = {wave: _placeholder(unit, wave) for wave in children}
    post_delete_index = next(
        (index for index, step in enumerate(steps) if step.phase == POST_DELETE), len(steps)
    )
    chain = [*steps[:post_delete_index], *placeholders.values()]
    chain.sort(key=_sort_key)
    chain += [*steps[post_delete_index:], end_step(unit)]
    next_ids = {step.id: next_step.id for step, next_step in pairwise(chain)}
    precedences = []
    for wave, names in children.items():
        placeholder_id = placeholders[wave].id
        for name in names:
            precedences.append(
                Precedence(before=placeholder_id, after=name, reason=EdgeReason.PARENT)
            )
            precedences.append(
                Precedence(before=name, after=next_ids[placeholder_id], reason=EdgeReason.PARENT)
            )
    return chain, precedences


def _placeholder(unit: PlannedUnit, wave: int) -> Step:
    name = f"{step_id(unit, DELETE, wave)}.0"
    empty_digest, cluster = digest_step(()), unit.cluster
    return Step(
        id=name, unit=unit.id, digest=empty_digest, cluster=cluster, phase=DELETE, wave=wave
    )


def _sort_key(step: Step) -> tuple[bool, int, bool]:
    """Return a key that sorts hooks first, then waves in reverse, each after its placeholder."""
    return step.phase == DELETE, -step.wave, not step.is_placeholder


def _reverse_rolling_sync(units: Iterable[Unit]) -> Iterable[Precedence]:
    """Yield the deletion order of the units of ApplicationSets: one by one, last step first."""
    units_by_set: dict[tuple[str, str], list[tuple[int, UnitId]]] = {}
    for unit in units:
        if (
            unit.rolling_sync_step is not None
            and unit.rolling_sync_step.reverse_deletion
            and unit.rolling_sync_step.number
        ):
            members = units_by_set.setdefault((unit.id.cluster, unit.generated_by), [])
            members.append((-unit.rolling_sync_step.number, unit.id))
    for members in units_by_set.values():
        for (_, before), (_, after) in pairwise(sorted(members)):
            yield Precedence(before=before, after=after, reason=EdgeReason.ROLLOUT_STEP)


def _reverse_dependencies(unit: Unit, units_by_id: Mapping[UnitId, Unit]) -> Iterable[Precedence]:
    """Yield the reversed dependencies of a unit, without those on its ancestors."""
    ancestors: set[UnitId] = set()
    parent = unit.parent
    while parent is not None and parent not in ancestors:
        ancestors.add(parent)
        parent = units_by_id[parent].parent if parent in units_by_id else None
    for dependency in unit.dependencies:
        if (
            dependency.unit is not None
            and dependency.unit in units_by_id
            and dependency.unit not in ancestors
        ):
            yield Precedence(
                before=unit.id, after=dependency.unit, location=str(dependency.location or "")
            )
