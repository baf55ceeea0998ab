"""Units and their manifests become a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from tidegate.errors import PlanError
from tidegate.model.manifest import Manifest, WantedUnit
from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.model.plan import (
    Because,
    Edge,
    Fragment,
    Item,
    Plan,
    PlannedUnit,
    Step,
    digest_bytes,
    digest_step,
)
from tidegate.model.reading import part
from tidegate.plan.cycles import put_in_order
from tidegate.plan.stages import group_by_stage
from tidegate.plan.waves import Group, group_by_wave

Budget = Callable[[dict[str, Json]], Ms | None]
JOBS = ("batch", "Job")


def build_plan(units: Iterable[WantedUnit], *, budget: Budget) -> Plan:
    """The plan for these units. Raises PlanError for what cannot be put in order."""
    return Plan.of(build_fragment(units, budget=budget))


def build_fragment(units: Iterable[WantedUnit], *, budget: Budget) -> Fragment:
    """The same for a part of a plan, such as a step expands to."""
    wanted = tuple(units)
    steps: list[Step] = []
    edges: list[Edge] = []
    ends: dict[str, tuple[str, str]] = {}
    for unit in wanted:
        groups = (group_by_stage if unit.staged else group_by_wave)(unit.manifests)
        made = [
            _step(unit.unit, group, budget, last=place == len(groups))
            for place, group in enumerate(groups, start=1)
        ]
        steps += made
        for place in range(1, len(made)):
            because = groups[place].because_of(groups[place - 1])
            edges.append(Edge(made[place - 1].id, made[place].id, because))
        if made:
            ends[unit.unit.name] = (made[0].id, made[-1].id)
    edges += _between_units(wanted, ends)
    ordered = put_in_order({step.id: step for step in steps}, edges)
    return Fragment(units=tuple(one.unit for one in wanted), steps=ordered, edges=tuple(edges))


def _step(unit: PlannedUnit, group: Group, budget: Budget, *, last: bool) -> Step:
    batches = tuple(tuple(_item(manifest, budget) for manifest in batch) for batch in group.batches)
    spot = group.stage or f"{group.phase}/{group.wave}"
    return Step(
        id="/".join(part for part in (unit.cluster, unit.name, spot) if part),
        unit=unit.name,
        digest=digest_step(batches),
        cluster=unit.cluster,
        phase=group.phase,
        wave=group.wave,
        stage=group.stage,
        batches=batches,
        last=last,
    )


def _item(manifest: Manifest, budget: Budget) -> Item:
    body: dict[str, Json] = msgspec.json.decode(manifest.body)
    kind = manifest.ref.kind
    is_job = (kind.group, kind.name) == JOBS
    expires = is_job and part(body, "spec", "ttlSecondsAfterFinished") is not None
    return Item(
        ref=manifest.ref,
        body=manifest.body,
        digest=digest_bytes(manifest.body),
        origin=manifest.origin,
        budget=budget(body) or Ms(0),
        expires=expires,
        suspends=part(body, "spec", "suspend") is True,
        recreates=is_job,
    )


def _between_units(
    wanted: tuple[WantedUnit, ...], ends: dict[str, tuple[str, str]]
) -> Iterable[Edge]:
    """A unit's first step comes after the last one of every unit it depends on."""
    known = {one.unit.name for one in wanted}
    for unit in wanted:
        name = unit.unit.name
        for other in unit.after:
            if other not in known:
                problem = f"`{name}` depends on `{other}`, which is not there"
                hint = "correct the name in `dependsOn`, or add that unit"
                raise PlanError("plan.unknown", problem, hint=hint)
            for before in _last_steps(other, wanted, ends):
                if name in ends:
                    yield Edge(before, ends[name][0], Because.DEPENDS_ON)


def _last_steps(
    name: str, wanted: tuple[WantedUnit, ...], ends: dict[str, tuple[str, str]]
) -> list[str]:
    """The steps after which a unit is done; one without objects is done when those before are."""
    if name in ends:
        return [ends[name][1]]
    seen, behind, found = {name}, [name], list[str]()
    after = {one.unit.name: one.after for one in wanted}
    while behind:
        for other in after.get(behind.pop(), ()):
            if other in ends:
                found.append(ends[other][1])
            elif other not in seen:
                seen.add(other)
                behind.append(other)
    return list(dict.fromkeys(found))
