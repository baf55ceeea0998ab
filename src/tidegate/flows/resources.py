"""What an Application is made of, as a tree: by phases and waves, hooks among it, what each owns.

Whether a hook has run is read, the first that knows it:

the hook itself          where it is still there
the unit's own object    what the last operation did, whoever ran that
the journal              while a rollout lasts, and when all of this text was brought
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from tidegate.flows.journal import read_journal
from tidegate.flows.looking import body_of, look_at
from tidegate.flows.session import Session
from tidegate.flows.standing import UnitStanding
from tidegate.flows.status import judge_bodies
from tidegate.model.journal import Journal
from tidegate.model.objects import Json, Kind, Ref, Spot, identity
from tidegate.model.plan import Item, PlannedUnit, Step, own_items_of
from tidegate.model.reading import mappings, text
from tidegate.model.verdict import Health, Verdict
from tidegate.plan.naming import name_generated
from tidegate.report.applications import ResourceRow
from tidegate.report.rollout.names import PHASES
from tidegate.world.ask import ask
from tidegate.world.calls import List, Selection
from tidegate.world.facts import Listed, NotServed

Body = dict[str, Json]
OWNED = (
    Kind("apps", "v1", "ReplicaSet"),
    Kind("batch", "v1", "Job"),
    Kind("", "v1", "Pod"),
)
"""What controllers make of what Git has, and people look for."""
RUNS = {Health.HEALTHY: "Succeeded", Health.DEGRADED: "Failed"}
SYNC, FAILING = "Sync", "SyncFail"
Owner = tuple[str, str, str]
"""Kind, namespace and name of who owns something."""


class Resources(msgspec.Struct, frozen=True):
    """The tree, and places of the cluster that may not be seen: what is there is left out."""

    rows: tuple[ResourceRow, ...]
    unseen: tuple[str, ...] = ()


class _HookRuns(msgspec.Struct, frozen=True):
    """What is known of the hooks of one unit."""

    unit: PlannedUnit
    journal: Journal
    operated: Mapping[tuple[str, Owner], Body]
    verdicts: Mapping[Spot, Verdict]

    def row(self, step: Step, item: Item) -> ResourceRow:
        hook = _phase(step)
        verdict = self.verdicts.get(Spot(step.cluster, item.ref))
        told = self.operated.get((hook, _owner(item.ref)), {})
        row = ResourceRow(item.ref, step.wave, verdict, phase=hook, hook=hook)
        if verdict is not None:
            return replace(row, ran=RUNS.get(verdict.health, "Running"))
        if told:
            return replace(row, ran=text(told, "hookPhase"), said=text(told, "message"))
        entry = self.journal.entries.get(item.ref)
        has_run = entry is not None and item.digest in entry.ran
        is_whole = self.journal.done == self.unit.digest and hook != FAILING
        if has_run or (is_whole and bool(self.journal.done)):
            return replace(row, ran="Succeeded")
        return replace(row, said="it has not run")


def object_rows(one: UnitStanding) -> tuple[ResourceRow, ...]:
    """The objects that an Application keeps, in their order; the cluster is not asked."""
    return tuple(_kept_rows(one).values())


async def read_resources(one: UnitStanding, session: Session) -> Resources:
    """All of an Application, in its order."""
    unit = next((each for each in one.plan.units if each.id == one.unit.id), None)
    if unit is None:
        return Resources(())
    journal = (await read_journal(unit, session.world)).journal
    begun = dict.fromkeys((each.id for each in one.plan.units), journal.begun)
    plan = name_generated(one.plan, begun=begun)
    steps = [step for step in plan.steps if step.unit == unit.id]
    hooks = _HookRuns(unit, journal, _operated(one.live), await _judge(unit, steps, session))
    kept = _kept_rows(one)
    rows = [
        hooks.row(step, item) if item.hook is not None else kept[Spot(step.cluster, item.ref)]
        for step in steps
        for item in own_items_of(step)
    ]
    brood, unseen = await _find_owned(unit, rows, session)
    return Resources(tuple(_with_owned(row, brood) for row in rows), unseen)


def _kept_rows(one: UnitStanding) -> dict[Spot, ResourceRow]:
    phases = {
        Spot(step.cluster, item.ref): _phase(step)
        for step in one.plan.steps
        if step.unit == one.unit.id
        for item in own_items_of(step)
        if item.hook is None
    }
    return {
        Spot(each.cluster, each.ref): ResourceRow(
            each.ref,
            each.wave,
            each.verdict,
            is_synced=each.is_synced,
            leaves=each.leaves,
            phase=phases.get(Spot(each.cluster, each.ref), SYNC),
        )
        for each in one.objects
    }


def _phase(step: Step) -> str:
    return PHASES.get(step.event, "") or PHASES.get(step.phase, "") or SYNC


def _owner(ref: Ref) -> Owner:
    return ref.kind.name, ref.namespace, ref.name


def _operated(own: Body) -> dict[tuple[str, Owner], Body]:
    """What the last operation has to tell of hooks, by their phases."""
    results = mappings(own, "status", "operationState", "syncResult", "resources")
    return {
        (
            text(one, "hookType"),
            (text(one, "kind"), text(one, "namespace"), text(one, "name")),
        ): one
        for one in results
        if text(one, "hookType")
    }


async def _judge(unit: PlannedUnit, steps: Iterable[Step], session: Session) -> dict[Spot, Verdict]:
    """Those hooks that are there."""
    found: list[tuple[Spot, PlannedUnit, Body]] = []
    for step in steps:
        refs = {identity(one.ref): one.ref for one in own_items_of(step) if one.hook is not None}
        lives = await look_at(session.world, refs.values(), cluster=step.cluster) if refs else []
        found += [
            (Spot(step.cluster, refs[identity(live.ref)]), unit, body_of(live)) for live in lives
        ]
    return await judge_bodies(found, session)


async def _find_owned(
    unit: PlannedUnit, rows: Sequence[ResourceRow], session: Session
) -> tuple[dict[Owner, list[ResourceRow]], tuple[str, ...]]:
    """By who owns them, what controllers have made in the namespaces of these."""
    homes = dict.fromkeys(row.ref.namespace for row in rows if row.ref.namespace)
    places = [Selection(kind, home) for home in homes for kind in OWNED]
    pages = await ask(session.world, *map(List, places), cluster=unit.cluster)
    answers = list(zip(places, pages, strict=True))
    lives = [one for _, page in answers if isinstance(page, Listed) for one in page.items]
    unseen = [
        f"{place.kind.name}s in `{place.namespace}`"
        for place, page in answers
        if not isinstance(page, Listed | NotServed)
    ]
    bodies = {Spot(unit.cluster, live.ref): body_of(live) for live in lives}
    living = ((spot, unit, body) for spot, body in bodies.items())
    verdicts = await judge_bodies(living, session)
    brood: dict[Owner, list[ResourceRow]] = {}
    for live in sorted(lives, key=lambda one: one.ref):
        spot = Spot(unit.cluster, live.ref)
        for owner in mappings(bodies[spot], "metadata", "ownerReferences"):
            key = (text(owner, "kind"), live.ref.namespace, text(owner, "name"))
            brood.setdefault(key, []).append(ResourceRow(live.ref, None, verdicts[spot]))
    return brood, tuple(unseen)


def _with_owned(row: ResourceRow, brood: Mapping[Owner, list[ResourceRow]]) -> ResourceRow:
    owned = brood.get(_owner(row.ref), ())
    return replace(row, owned=tuple(_with_owned(one, brood) for one in owned)) if owned else row
