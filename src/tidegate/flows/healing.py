"""What others do to objects behind a simulated rollout, and who puts it back.

    somebody edits ──▶ a unit is OutOfSync ──▶ its pause ──▶ what differs is synced, without hooks

The pause before an attempt counts from the end of the unit's last sync, and grows: see
`Semantics.heal_pause`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from tidegate.engine.reach.writing import read_body
from tidegate.flows.comparing import find_difference, who_changed
from tidegate.flows.looking import look_at
from tidegate.flows.session import Session
from tidegate.model.change import Fate
from tidegate.model.drift import Drift
from tidegate.model.event import Event, Result, Told
from tidegate.model.finding import Finding, Severity
from tidegate.model.moment import Ms, format_duration
from tidegate.model.objects import Live, Spot
from tidegate.model.plan import Deed, Fragment, Item, Plan, PlannedUnit, Step, items_of
from tidegate.model.unit import UnitId
from tidegate.plan.chains import keep_items, narrow
from tidegate.world.facts import is_refusal

if TYPE_CHECKING:
    from tidegate.sandbox.world import Edited, Sandbox

WRITTEN = frozenset({Told.OBJECT_WRITTEN, Told.OBJECT_UNCHANGED})
Sync = Callable[[Plan], Awaitable[Result]]
"""Rolls out a part of a plan."""


class _Unit(msgspec.Struct):
    """A unit behind its rollout."""

    unit: PlannedUnit
    ended: Ms
    passed: bool = True
    attempts: int = 0

    @property
    def why_it_stays(self) -> str:
        """Why nobody puts back what others changed; empty where somebody does."""
        policy = self.unit.policy
        if not policy.semantics.heals:
            return "nobody puts it back before the next rollout"
        if not policy.starts:
            return "nobody syncs the unit by itself"
        if not policy.heals:
            return "`selfHeal` is off"
        return "" if self.passed else "the last sync of the unit failed"

    @property
    def due(self) -> Ms:
        return Ms(self.ended + self.unit.policy.semantics.heal_pause(self.attempts))


class Healing(msgspec.Struct):
    """Looks after the objects that a rollout has brought, until a moment."""

    plan: Plan
    session: Session
    sandbox: Sandbox
    sync: Sync
    until: Ms
    _units: dict[UnitId, _Unit] = msgspec.field(default_factory=dict)
    _items: dict[Spot, tuple[PlannedUnit, Item]] = msgspec.field(default_factory=dict)
    _open: dict[Spot, Drift] = msgspec.field(default_factory=dict)
    _closed: list[Drift] = msgspec.field(default_factory=list)

    async def run(self, events: Iterable[Event]) -> tuple[Drift, ...]:
        """All that drifted, in the order of its times."""
        self._begin(events)
        while True:
            await self._compare()
            moments = [one.due for one in self._healing()]
            coming = self.sandbox.next_edit()
            moments += [] if coming is None else [coming]
            if not moments or min(moments) > self.until:
                break
            await self._wait(min(moments))
            if due := [one for one in self._healing() if one.due <= self.sandbox.now()]:
                await self._heal(due)
        left = [self._staying(one) for one in self._open.values()]
        return tuple(sorted((*self._closed, *left), key=lambda one: (one.at, one.ref)))

    def _begin(self, events: Iterable[Event]) -> None:
        units = {unit.id: unit for unit in self.plan.units}
        brought: set[Spot] = set()
        for event in events:
            if event.told is Told.UNIT_ENDED and event.unit in units:
                passed = event.reason == Result.PASSED
                self._units[event.unit] = _Unit(units[event.unit], event.at, passed)
            elif event.told in WRITTEN and event.ref is not None:
                brought.add(Spot(event.cluster, event.ref))
        for step in self.plan.steps if brought else ():
            for item in items_of(step) if step.unit in self._units else ():
                spot = Spot(step.cluster, item.ref)
                kept = item.deed is Deed.APPLY and item.hook is None and not item.expires
                if kept and spot in brought:
                    self._items[spot] = (units[step.unit], item)

    def _healing(self) -> list[_Unit]:
        """The units of which something is to be put back."""
        names = dict.fromkeys(one.unit for one in self._open.values())
        return [self._units[name] for name in names if not self._units[name].why_it_stays]

    async def _wait(self, moment: Ms) -> None:
        party = self.session.world.party()
        while self.sandbox.now() < moment:
            await party.wait(moment)

    async def _compare(self) -> None:
        """See which objects are not as wanted any more, and which are again."""
        lives = await self._lives()
        edited = {Spot(one.cluster, one.write.ref): one.at for one in self.sandbox.edits}
        now = self.sandbox.now()
        last = max(edited.values(), default=now)
        for spot, (unit, item) in self._items.items():
            live = lives.get(spot)
            if live is not None and spot not in edited and spot not in self._open:
                continue
            body = read_body(live) if live is not None else None
            jq = self.session.craft.jq
            differs = find_difference(unit, item, body, jq).deed is not Fate.KEEP
            if differs and spot not in self._open:
                why = "was deleted" if body is None else who_changed(unit, item, body, jq, "")
                at = edited.get(spot, last)
                self._open[spot] = Drift(
                    unit=unit.id, ref=item.ref, at=at, sentence=why, cluster=spot.cluster
                )
            elif not differs and spot in self._open:
                found = self._open.pop(spot)
                attempts = self._units[unit.id].attempts
                self._closed.append(msgspec.structs.replace(found, healed=now, attempts=attempts))

    async def _lives(self) -> dict[Spot, Live]:
        found: dict[Spot, Live] = {}
        for cluster in dict.fromkeys(spot.cluster for spot in self._items):
            refs = [spot.ref for spot in self._items if spot.cluster == cluster]
            for live in await look_at(self.session.world, refs, cluster=cluster):
                found[Spot(cluster, live.ref)] = live
        return found

    async def _heal(self, due: list[_Unit]) -> None:
        """Sync what differs of these units, and nothing else of them."""
        names = {one.unit.id for one in due}
        spots = {spot for spot, one in self._open.items() if one.unit in names}

        def cut(step: Step) -> Step | None:
            if step.unit not in names or not step.batches:
                return None
            return keep_items(step, lambda item: Spot(step.cluster, item.ref) in spots)

        result = await self.sync(_alone(narrow(self.plan, cut), names))
        for one in due:
            one.attempts += 1
            one.ended, one.passed = self.sandbox.now(), result is Result.PASSED

    def _staying(self, drift: Drift) -> Drift:
        unit = self._units[drift.unit]
        why = unit.why_it_stays or "its next attempt is not played any more"
        return msgspec.structs.replace(drift, stays=why, attempts=unit.attempts)


def _alone(part: Plan, names: set[UnitId]) -> Plan:
    """A part of a plan: what is not in it has not left Git, and nobody waits for a slot."""
    units = tuple(
        msgspec.structs.replace(
            unit, group="", policy=msgspec.structs.replace(unit.policy, prunes=False)
        )
        for unit in part.units
        if unit.id in names
    )
    return Plan.of(Fragment(units=units, steps=part.steps, edges=part.edges))


def unmet_edits(sandbox: Sandbox) -> list[Finding]:
    """Edits of a scenario that came to nothing."""
    return [_unmet(one, sandbox.began) for one in sandbox.edits if is_refusal(one.outcome)]


def _unmet(edited: Edited, start: Ms) -> Finding:
    what, at = edited.write.ref, format_duration(Ms(edited.at - start))
    said = edited.outcome.message if is_refusal(edited.outcome) else ""
    return Finding(
        code="simulate.edit",
        severity=Severity.WARNING,
        sentence=f"the edit of {what} at {at} came to nothing: {said}",
        fix="name an object that is there by then, and fields that it takes",
    )
