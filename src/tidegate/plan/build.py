"""Units and their manifests become a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import msgspec

from tidegate.errors import PlanError
from tidegate.model.manifest import Manifest, WantedUnit
from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.model.plan import (
    FINALIZER,
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
from tidegate.model.reading import listed, mapping, part
from tidegate.plan.cycles import put_in_order
from tidegate.plan.diff.seal import is_secret
from tidegate.plan.diff.values import fold_text
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
        last = max((place for place, one in enumerate(groups) if not one.is_rescue), default=0)
        made = [
            _step(unit.unit, group, budget, last=place == last)
            for place, group in enumerate(groups)
        ]
        steps += made
        chain = [
            (step, group) for step, group in zip(made, groups, strict=True) if not step.rescues
        ]
        for (before, earlier), (after, later) in pairwise(chain):
            edges.append(Edge(before.id, after.id, later.because_of(earlier)))
        if chain:
            ends[unit.unit.name] = (chain[0][0].id, chain[-1][0].id)
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
        rescues=group.is_rescue,
    )


def _item(manifest: Manifest, budget: Budget) -> Item:
    body: dict[str, Json] = msgspec.json.decode(manifest.body)
    kind = manifest.ref.kind
    is_job = (kind.group, kind.name) == JOBS
    is_hook = manifest.hook is not None
    expires = is_job and part(body, "spec", "ttlSecondsAfterFinished") is not None
    text = _text(manifest, body)
    return Item(
        ref=manifest.ref,
        body=text,
        digest=digest_bytes(text),
        origin=manifest.origin,
        budget=budget(body) or Ms(0),
        expires=expires and not is_hook,
        suspends=part(body, "spec", "suspend") is True,
        recreates=is_job or manifest.handling.forces,
        hook=manifest.hook,
        generates=is_hook and part(body, "metadata", "name") is None,
        handling=manifest.handling,
    )


def _text(manifest: Manifest, body: dict[str, Json]) -> bytes:
    """What is applied: Secrets with one map of values, so that a key that goes is gone."""
    if is_secret(body):
        body = fold_text(body)
    elif manifest.hook is None:
        return manifest.body
    return msgspec.json.encode(body if manifest.hook is None else hold(body))


def hold(body: dict[str, Json]) -> dict[str, Json]:
    """A hook with the finalizer that keeps it until it is judged."""
    metadata = mapping(body, "metadata")
    held = listed(metadata, "finalizers")
    if FINALIZER in held:
        return body
    return {**body, "metadata": {**metadata, "finalizers": [*held, FINALIZER]}}


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
