"""Building of a plan from units and their manifests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TypeAlias

import msgspec

from tidegate.errors import Location, PlanError
from tidegate.model.k8s.objects import ClusterRef, versionless_key
from tidegate.model.plans.manifest import Manifests
from tidegate.model.plans.plan import (
    ConcurrencyLimit,
    ExternalDependency,
    Plan,
    PlanFragment,
    PlannedUnit,
    Precedence,
    Step,
    digest_bytes,
    digest_step,
)
from tidegate.model.units.depends_on import AwaitedState
from tidegate.model.units.policy import Order
from tidegate.model.units.unit import Unit, UnitId
from tidegate.plan.build.chains import link_chain, mark_last, step_id
from tidegate.plan.build.child_units import end_step, with_placeholders
from tidegate.plan.build.cycles import reject_cycles, sort_steps, unit_dependencies
from tidegate.plan.build.gates import (
    AWAIT_STAGE,
    await_step,
    dependency_items,
    set_gates,
    with_await_steps,
)
from tidegate.plan.build.items import ReadinessTimeout, make_item
from tidegate.plan.build.precedence import make_edges, object_pairs, split_steps
from tidegate.plan.build.releases import CRDS_STAGE as CRDS
from tidegate.plan.build.releases import group_by_release
from tidegate.plan.build.rolling_sync import plan_rolling_syncs
from tidegate.plan.build.stages import PREREQUISITE_STAGES, group_by_stage
from tidegate.plan.build.waves import StepGroup, group_by_wave

ObjectKey: TypeAlias = tuple[str, str, str, str, str]
"""A cluster, and the identity of an object across the versions of its kind."""


def build_plan(
    desired: Iterable[Manifests],
    precedences: Iterable[Precedence] = (),
    external_dependencies: Iterable[ExternalDependency] = (),
    *,
    concurrency_limits: tuple[ConcurrencyLimit, ...] = (),
    readiness_timeout: ReadinessTimeout,
) -> Plan:
    """Return the plan for units.

    Raises PlanError if their steps cannot be ordered.
    """
    return Plan.from_fragment(
        build_fragment(
            desired,
            precedences,
            external_dependencies,
            concurrency_limits=concurrency_limits,
            readiness_timeout=readiness_timeout,
        )
    )


def build_fragment(
    desired: Iterable[Manifests],
    precedences: Iterable[Precedence] = (),
    external_dependencies: Iterable[ExternalDependency] = (),
    *,
    concurrency_limits: tuple[ConcurrencyLimit, ...] = (),
    readiness_timeout: ReadinessTimeout,
) -> PlanFragment:
    """Return a partial plan, such as the result of an expansion.

    Raises PlanError if the steps cannot be ordered.
    """
    manifests_by_unit = _index_by_unit(desired)
    reject_cycles(_dependencies_by_unit(manifests_by_unit.values()))
    provided = {
        (unit_manifests.unit.destination.cluster, *versionless_key(manifest.ref))
        for unit_manifests in manifests_by_unit.values()
        for manifest in unit_manifests.manifests
    }
    dependents = _dependents_of_parents(
        unit_manifests.unit for unit_manifests in manifests_by_unit.values()
    )
    steps_by_unit = {
        name: _unit_steps(unit_manifests, provided, dependents.get(name, ()), readiness_timeout)
        for name, unit_manifests in manifests_by_unit.items()
    }
    rolling_sync = plan_rolling_syncs(
        unit_manifests.unit for unit_manifests in manifests_by_unit.values()
    )
    all_precedences = [
        *precedences,
        *_declared_precedences(manifests_by_unit.values(), provided),
        *rolling_sync.precedences,
    ]
    all_precedences += [
        precedence
        for _, child_precedences in steps_by_unit.values()
        for precedence in child_precedences
    ]
    pairs, external_dependencies = object_pairs(all_precedences), list(external_dependencies)
    delayed_objects = {dependency.dependent for dependency in external_dependencies}
    chains = {
        name: mark_last(
            with_await_steps(
                split_steps(steps, pairs, delayed_objects),
                plan_unit(manifests_by_unit[name].unit),
                external_dependencies,
            )
        )
        for name, (steps, _) in steps_by_unit.items()
    }
    steps = _index_by_id([*chains.values(), rolling_sync.placeholders])
    edges = [edge for chain in chains.values() for edge in link_chain(chain)]
    edges += make_edges(all_precedences, chains)
    return PlanFragment(
        units=digest_units(
            (
                *(plan_unit(unit_manifests.unit) for unit_manifests in manifests_by_unit.values()),
                *rolling_sync.units,
            ),
            steps.values(),
        ),
        steps=sort_steps(steps, edges),
        edges=tuple(dict.fromkeys(edges)),
        slots=(
            *concurrency_limits,
            *rolling_sync.concurrency_limits,
            *_worker_limits(unit_manifests.unit for unit_manifests in manifests_by_unit.values()),
        ),
    )


def plan_unit(unit: Unit) -> PlannedUnit:
    """Return the entry of a unit in a plan, without its digest."""
    return PlannedUnit(
        id=unit.id,
        source=", ".join(source.canonical_location for source in unit.sources),
        cluster=unit.destination.cluster,
        policy=unit.policy,
        group=unit.concurrency_group or _worker_group(unit),
        parent=unit.parent,
    )


def _worker_group(unit: Unit) -> str:
    """Return the concurrency group of the controller of a unit, or "" if its workers are
    unlimited.
    """
    has_worker_limit = bool(unit.policy.semantics.max_concurrent_units)
    parts = (unit.policy.manager, unit.id.cluster)
    return " of ".join(filter(None, parts)) if has_worker_limit else ""


def _worker_limits(units: Iterable[Unit]) -> Iterator[ConcurrencyLimit]:
    workers_by_group = {
        _worker_group(unit): unit.policy.semantics.max_concurrent_units
        for unit in units
        if not unit.concurrency_group
    }
    return (
        ConcurrencyLimit(group, workers, frees_idle_slots=True)
        for group, workers in workers_by_group.items()
        if group
    )


def digest_units(units: Iterable[PlannedUnit], steps: Iterable[Step]) -> tuple[PlannedUnit, ...]:
    """Return the units, each with a digest of its steps."""
    step_digests: dict[UnitId, list[bytes]] = {}
    for step in steps:
        step_digests.setdefault(step.unit, []).append(f"{step.id} {step.digest}".encode())
    return tuple(
        msgspec.structs.replace(unit, digest=digest_bytes(*step_digests.get(unit.id, ())))
        for unit in units
    )


def _dependents_of_parents(units: Iterable[Unit]) -> dict[UnitId, set[UnitId]]:
    """Return the direct and indirect dependents of each parent unit.

    A parent cannot wait for them, although it creates them.
    """
    units = list(units)
    direct_dependents: dict[UnitId, list[UnitId]] = {}
    for unit in units:
        for dependency in unit.dependencies:
            if dependency.unit is not None:
                direct_dependents.setdefault(dependency.unit, []).append(unit.id)
    parents = {unit.id: unit.parent for unit in units if unit.parent is not None}
    dependents: dict[UnitId, set[UnitId]] = {}
    for parent in {*parents.values()} & direct_dependents.keys():
        visited, pending = dependents.setdefault(parent, set()), [*direct_dependents[parent]]
        while pending:
            dependent = pending.pop()
            if dependent not in visited and dependent != parent:
                visited.add(dependent)
                pending += direct_dependents.get(dependent, [])
                pending += [parents[dependent]] if dependent in parents else []
    return dependents


def _unit_steps(
    unit_manifests: Manifests,
    provided: Collection[ObjectKey],
    dependents: Collection[UnitId],
    readiness_timeout: ReadinessTimeout,
) -> tuple[list[Step], list[Precedence]]:
    """Return the steps of a unit in order, and the precedences of its child units.

    The first step waits for dependencies that no unit of the plan provides.
    """
    unit, planned = unit_manifests.unit, plan_unit(unit_manifests.unit)
    if not unit_manifests.has_known_objects:
        return [end_step(planned)], []
    release = unit.policy.release
    if unit.policy.order is Order.STAGES:
        groups = group_by_stage(unit_manifests.manifests, unit.policy.first_kinds)
    elif release is not None:
        groups = group_by_release(unit_manifests.manifests, release.action)
    else:
        groups = group_by_wave(unit_manifests.manifests, namespace=unit.destination.namespace)
    group_steps = [_group_step(planned, group, readiness_timeout) for group in groups]
    manifests_by_step = {
        step.id: group.manifests for step, group in zip(group_steps, groups, strict=True)
    }
    child_keys = {
        versionless_key(manifest.ref)
        for manifest in unit_manifests.manifests
        if manifest.child_units
    }
    steps, child_precedences = with_placeholders(
        set_gates(group_steps, planned, child_keys), manifests_by_step, planned, dependents
    )
    if unit.policy.regenerates_during_rollout and not steps:
        steps = [end_step(planned)]  # it may have objects by then
    awaited = dependency_items(unit, provided)
    return [
        *([await_step(planned, AWAIT_STAGE, awaited)] if awaited else ()),
        *steps,
    ], child_precedences


def _group_step(unit: PlannedUnit, group: StepGroup, readiness_timeout: ReadinessTimeout) -> Step:
    batches = tuple(
        tuple(make_item(manifest, group.hook_event, readiness_timeout) for manifest in batch)
        for batch in group.batches
    )
    position = (group.stage,) if group.stage else (group.phase, group.wave)
    return Step(
        id=step_id(unit, *position),
        unit=unit.id,
        digest=digest_step(batches),
        cluster=unit.cluster,
        phase=group.phase,
        wave=group.wave,
        stage=group.stage,
        batches=batches,
        only_on_failure=group.runs_on_failure,
        is_prerequisite=group.stage in {*PREREQUISITE_STAGES, CRDS},
    )


def _declared_precedences(
    desired: Iterable[Manifests], provided: Collection[ObjectKey]
) -> Iterator[Precedence]:
    """Yield the precedences for declared dependencies that the plan provides."""
    for unit in (unit_manifests.unit for unit_manifests in desired):
        for dependency in unit.dependencies:
            object_ref = (
                None
                if dependency.ref is None
                else ClusterRef(unit.destination.cluster, dependency.ref)
            )
            if dependency.state is AwaitedState.ABSENT:
                continue
            if (
                object_ref is not None
                and (object_ref.cluster, *versionless_key(object_ref.ref)) not in provided
            ):
                continue
            before = dependency.unit or object_ref
            if before is not None:
                location = str(dependency.location or "")
                strength = dependency.strength
                yield Precedence(before=before, after=unit.id, strength=strength, location=location)


def _dependencies_by_unit(
    desired: Iterable[Manifests],
) -> dict[UnitId, dict[UnitId, Location | None]]:
    """Return the dependencies of each unit, with the locations that declare them.

    Raises PlanError for an unknown unit.
    """
    units = {unit_manifests.unit.id: unit_manifests.unit for unit_manifests in desired}
    dependencies: dict[UnitId, dict[UnitId, Location | None]] = {}
    for name, unit in units.items():
        dependencies[name] = unit_dependencies(unit)
        for dependency in unit.dependencies:
            if dependency.unit is not None and dependency.unit not in units:
                problem = f"`{name}` depends on `{dependency.unit}`, which does not exist"
                hint = f"correct the name in `dependsOn`, or add `{dependency.unit}`"
                raise PlanError("plan.unknown", problem, location=dependency.location, hint=hint)
    return dependencies


def _index_by_unit(desired: Iterable[Manifests]) -> dict[UnitId, Manifests]:
    by_unit: dict[UnitId, Manifests] = {}
    for unit_manifests in desired:
        if unit_manifests.unit.id in by_unit:
            raise _duplicate_error(str(unit_manifests.unit.id))
        by_unit[unit_manifests.unit.id] = unit_manifests
    return by_unit


def _index_by_id(chains: Iterable[Iterable[Step]]) -> dict[str, Step]:
    steps: dict[str, Step] = {}
    for step in (step for chain in chains for step in chain):
        if step.id in steps:
            raise _duplicate_error(step.id)
        steps[step.id] = step
    return steps


def _duplicate_error(name: str) -> PlanError:
    problem = f"duplicate unit or step name `{name}`"
    return PlanError("plan.duplicate", problem, hint="rename one of the units")
