"""Placeholder steps at which the child units of a unit start.

A child unit starts with the wave of its unit resource, in parallel with the other objects of that
wave, and the next wave waits for it:

    wave 0 ──▶ placeholder ──▶ wave 1 ──▶ wave 2
                     └──▶ child ─────────▲

A placeholder has no objects. It limits the number of edges to one per child, however many children
the next wave has. Namespaces and CRDs of the wave come before the placeholder.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from tidegate.model.k8s.objects import versionless_key
from tidegate.model.plans.manifest import Manifest
from tidegate.model.plans.plan import (
    EdgeReason,
    PlanItem,
    PlannedUnit,
    Precedence,
    Step,
    digest_step,
)
from tidegate.model.units.policy import GateScope, Policy
from tidegate.model.units.semantics import ChildGates
from tidegate.model.units.unit import UnitId
from tidegate.plan.build.chains import filter_items, step_id
from tidegate.plan.build.stages import STAGES

END_STAGE = "end"
"""The stage after all steps of a unit, and after the child units of its last wave."""
PREREQUISITE_KINDS = frozenset(
    {("", "Namespace"), ("apiextensions.k8s.io", "CustomResourceDefinition")}
)
"""Kinds that a child unit may need before its first write."""


def with_placeholders(
    steps: Iterable[Step],
    manifests_by_step: Mapping[str, tuple[Manifest, ...]],
    unit: PlannedUnit,
    not_awaited: Container[UnitId] = (),
) -> tuple[list[Step], list[Precedence]]:
    """Return the steps of a unit with placeholders for its child units, and the resulting
    precedences.

    `manifests_by_step` has the manifests of each step by id. Units in `not_awaited` are not
    awaited.
    """
    result: list[Step] = []
    starts: dict[UnitId, tuple[Step, Manifest]] = {}
    for step in steps:
        manifests = manifests_by_step.get(step.id, ())
        children = [
            manifest
            for manifest in manifests
            if any(name not in starts for name in manifest.child_units)
        ]
        prerequisites, remainder = _split_prerequisites(step) if children else (None, step)
        result += [prerequisites] if prerequisites else []
        if children:
            result.append(_placeholder(step))
            for manifest in children:
                for name in manifest.child_units:
                    starts.setdefault(name, (result[-1], manifest))
        result += [remainder] if remainder.batches else []
    policy = unit.policy
    awaited = {
        name
        for name, (placeholder, child) in starts.items()
        if name not in not_awaited
        and not placeholder.only_on_failure
        and _is_awaited(child, policy)
    }
    placeholders = {starts[name][0].id: starts[name][0] for name in awaited}
    waits_at_end = policy.semantics.child_gates is ChildGates.GATES
    next_steps = {
        name: None if waits_at_end else step_after(result, placeholder)
        for name, placeholder in placeholders.items()
    }
    if None in next_steps.values():
        end = end_step(unit)
        result.append(end)
        next_steps = {name: step or end for name, step in next_steps.items()}
    return result, list(_precedences(starts, awaited, next_steps))


def end_step(unit: PlannedUnit) -> Step:
    """Return the placeholder that ends a unit."""
    name, empty_digest = step_id(unit, END_STAGE), digest_step(())
    return Step(id=name, unit=unit.id, digest=empty_digest, cluster=unit.cluster, stage=END_STAGE)


def step_after(steps: Sequence[Step], placeholder: Step) -> Step | None:
    """Return the first step after the wave or stage of a placeholder, or None."""
    position = next(index for index, step in enumerate(steps) if step.id == placeholder.id)
    later_steps = (
        later_step
        for later_step in islice(steps, position + 1, None)
        if later_step.wave_key != placeholder.wave_key
    )
    return next((later_step for later_step in later_steps if not later_step.only_on_failure), None)


def _split_prerequisites(step: Step) -> tuple[Step | None, Step]:
    """Return the prerequisites of a step, and the rest of it. Flux stages are separate already."""
    prerequisites = None if step.stage in STAGES else filter_items(step, _is_prerequisite)
    if prerequisites is None or not prerequisites.batches:
        return None, step
    remainder = filter_items(step, lambda item: not _is_prerequisite(item))
    if remainder is None:
        return prerequisites, msgspec.structs.replace(step, batches=())
    return prerequisites, msgspec.structs.replace(remainder, id=f"{step.id}.rest", part=2)


def _is_prerequisite(item: PlanItem) -> bool:
    return (item.ref.kind.group, item.ref.kind.name) in PREREQUISITE_KINDS


def _placeholder(step: Step) -> Step:
    return msgspec.structs.replace(step, id=f"{step.id}.0", batches=(), digest=digest_step(()))


def _is_awaited(child: Manifest, policy: Policy) -> bool:
    match policy.semantics.child_gates:
        case ChildGates.ALWAYS:
            return True
        case ChildGates.GATES if policy.gates is GateScope.ALL:
            return True
        case ChildGates.GATES if policy.gates is GateScope.LISTED:
            return versionless_key(child.ref) in map(versionless_key, policy.gating_refs)
        case ChildGates.NEVER:
            return child.is_awaited
        case _:
            return False


def _precedences(
    starts: Mapping[UnitId, tuple[Step, Manifest]],
    awaited: Container[UnitId],
    next_steps: Mapping[str, Step | None],
) -> Iterator[Precedence]:
    for name, (placeholder, child) in starts.items():
        location = child.origin
        yield Precedence(
            before=placeholder.id, after=name, reason=EdgeReason.PARENT, location=location
        )
        after = next_steps.get(placeholder.id)
        if after is not None and name in awaited:
            yield Precedence(
                before=name, after=after.id, reason=EdgeReason.PARENT, location=location
            )
