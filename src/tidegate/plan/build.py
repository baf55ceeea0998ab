"""Units and their manifests become a plan."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.errors import PlanError
from tidegate.model.manifest import WantedUnit
from tidegate.model.plan import (
    Because,
    Edge,
    Fragment,
    Plan,
    PlannedUnit,
    Step,
    digest_bytes,
    digest_step,
)
from tidegate.plan.chains import link_chain, mark_last
from tidegate.plan.cycles import put_in_order, refuse_circles
from tidegate.plan.items import Budget, make_item
from tidegate.plan.stages import group_by_stage
from tidegate.plan.waves import Group, group_by_wave


def build_plan(units: Iterable[WantedUnit], *, budget: Budget) -> Plan:
    """The plan for these units. Raises PlanError for what cannot be put in order."""
    return Plan.of(build_fragment(units, budget=budget))


def build_fragment(units: Iterable[WantedUnit], *, budget: Budget) -> Fragment:
    """The same for a part of a plan, such as a step expands to."""
    wanted = {one.unit.name: one for one in _told_apart(units)}
    _refuse_unknown(wanted)
    refuse_circles({name: one.after for name, one in wanted.items()})
    steps: dict[str, Step] = {}
    edges: list[Edge] = []
    ends: dict[str, tuple[str, str]] = {}
    for name, one in wanted.items():
        made = _steps(one, budget)
        if clash := next((step.id for step in made if step.id in steps), None):
            raise _twice(clash)
        steps |= {step.id: step for step in made}
        edges += link_chain(made)
        chain = [step.id for step in made if not step.rescues]
        if chain:
            ends[name] = (chain[0], chain[-1])
    edges += _between_units(wanted, ends)
    ordered = put_in_order(steps, edges)
    planned = digest_units((one.unit for one in wanted.values()), steps.values())
    return Fragment(units=planned, steps=ordered, edges=tuple(dict.fromkeys(edges)))


def digest_units(units: Iterable[PlannedUnit], steps: Iterable[Step]) -> tuple[PlannedUnit, ...]:
    """The units, each with a digest of what Git says of it."""
    told: dict[str, list[bytes]] = {}
    for step in steps:
        told.setdefault(step.unit, []).append(f"{step.id} {step.digest}".encode())
    return tuple(
        msgspec.structs.replace(unit, digest=digest_bytes(*told.get(unit.name, ())))
        for unit in units
    )


def step_id(unit: PlannedUnit, *spot: object) -> str:
    """What a step is called: by its cluster, its unit and its place in there."""
    return "/".join(str(part) for part in (unit.cluster, unit.name, *spot) if part != "")


def _steps(wanted: WantedUnit, budget: Budget) -> list[Step]:
    if wanted.staged:
        groups = group_by_stage(wanted.manifests)
    else:
        groups = group_by_wave(wanted.manifests, namespace=wanted.namespace)
    return mark_last(_step(wanted.unit, group, budget) for group in groups)


def _step(unit: PlannedUnit, group: Group, budget: Budget) -> Step:
    batches = tuple(
        tuple(make_item(manifest, group.phase, budget) for manifest in batch)
        for batch in group.batches
    )
    spot = (group.stage,) if group.stage else (group.phase, group.wave)
    return Step(
        id=step_id(unit, *spot),
        unit=unit.name,
        digest=digest_step(batches),
        cluster=unit.cluster,
        phase=group.phase,
        wave=group.wave,
        stage=group.stage,
        batches=batches,
        rescues=group.is_rescue,
    )


def _told_apart(units: Iterable[WantedUnit]) -> Iterable[WantedUnit]:
    seen: set[str] = set()
    for one in units:
        if one.unit.name in seen:
            raise _twice(one.unit.name)
        seen.add(one.unit.name)
        yield one


def _twice(name: str) -> PlanError:
    problem = f"two units, or steps of them, are called `{name}`"
    return PlanError("plan.twice", problem, hint="give one of the units another name")


def _refuse_unknown(wanted: dict[str, WantedUnit]) -> None:
    for name, one in wanted.items():
        for other in one.after:
            if other not in wanted:
                problem = f"`{name}` depends on `{other}`, which is not there"
                hint = "correct the name in `dependsOn`, or add that unit"
                raise PlanError("plan.unknown", problem, hint=hint)


def _between_units(
    wanted: dict[str, WantedUnit], ends: dict[str, tuple[str, str]]
) -> Iterable[Edge]:
    """A unit's first step comes after the last one of every unit it depends on."""
    for name, (first, _) in ends.items():
        for before in _last_steps(wanted[name].after, wanted, ends):
            yield Edge(before, first, Because.DEPENDS_ON)


def _last_steps(
    names: Iterable[str], wanted: dict[str, WantedUnit], ends: dict[str, tuple[str, str]]
) -> Iterable[str]:
    """The steps after which units are done; one without objects is done when those before are."""
    behind = list(reversed(list(names)))
    seen: set[str] = set()
    while behind:
        name = behind.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in ends:
            yield ends[name][1]
        else:
            behind += reversed(wanted[name].after)
