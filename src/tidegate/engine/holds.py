"""All units in our keeping: read together, taken side by side, each let go by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from tidegate.engine.heartbeat import Heartbeat
from tidegate.engine.hold import FLUSHES, OvertakenError, Tell, UnitHold
from tidegate.engine.neighbours import Keeping, Neighbours, Rivals, read_records
from tidegate.engine.reach.errands import Errand, together
from tidegate.engine.record import Now, Record
from tidegate.model.journal import Kin
from tidegate.model.moment import Ms
from tidegate.model.plan import PlannedUnit
from tidegate.model.unit import UnitId
from tidegate.world.facts import Outcome

PER_UNIT = Ms(10)
"""How much longer a journal waits to be written for each other one that does."""
Lost = Callable[[UnitId, str], None]
"""Hears that a unit is somebody else's now, and why."""


class Wished(NamedTuple):
    """Units that others wait for: `lendable` with our plan, `given_up` for another one."""

    lendable: list[UnitId]
    given_up: list[UnitId]


class Holds:
    """The holds of a rollout, by unit, and what those of one cluster share."""

    def __init__(self, holder: str, namespace: str, now: Now, tell: Tell, lost: Lost) -> None:
        self.keepings: dict[str, Keeping] = {}
        self._dirty: dict[UnitId, None] = {}
        """Units whose journals are not written as they are."""
        self._stirred_at = Ms(0)
        self._holder = holder
        self._rivals = Rivals(holder)
        self._namespace = namespace
        self._now = now
        self._tell = tell
        self._tell_loss = lost
        self.lost: dict[UnitId, str] = {}
        """Units that somebody else has, and that do not come back; and why."""
        self._all: dict[UnitId, UnitHold] = {}

    def __getitem__(self, unit: UnitId) -> UnitHold:
        return self._all[unit]

    def names(self) -> list[UnitId]:
        return list(self._all)

    def add(self, unit: PlannedUnit, plan: str, parent: PlannedUnit | None = None) -> None:
        """Have a hold for a unit, for the text that it has in a plan. `parent`: who brings it."""
        known = self._all.get(unit.id)
        if known is not None:
            known.intend(unit.digest)
            return
        cluster, place = unit.cluster, self._namespace
        if cluster not in self.keepings:
            heartbeat = Heartbeat(cluster, self._holder, place)
            self.keepings[cluster] = Keeping(heartbeat, Neighbours(cluster, place), self._rivals)
        record = Record(unit.id.mark, cluster, place, partial(self._stirred, unit.id))
        keeping = self.keepings[cluster]
        if unit.parent is not None:
            above = parent.parent if parent is not None else None
            falls = parent is not None and parent.policy.cascades
            record.kin = Kin.of(unit.id, unit.parent, unit.policy, above=above, falls=falls)
        self._all[unit.id] = UnitHold(
            unit.id, record, keeping, plan, self._tell, text=unit.digest, source=unit.source
        )

    def _stirred(self, unit: UnitId) -> None:
        if not self._dirty:
            self._stirred_at = self._now()
        self._dirty[unit] = None

    def plan(self, digest: str) -> None:
        """Have all of them bring another plan."""
        for hold in self._all.values():
            hold.plan = digest

    def load(self, units: Iterable[UnitId]) -> Errand[Outcome | None]:
        """Read the records of those units that are not ours anyhow."""
        wanted: dict[str, list[Record]] = {}
        for hold in (self._all[unit] for unit in units):
            if not hold.is_ours:
                hold.record.look_anew()
                wanted.setdefault(hold.record.cluster, []).append(hold.record)
        outcomes = yield from together(read_records(some, self._now) for some in wanted.values())
        return next((one for one in outcomes if one is not None), None)

    def news(self, units: Iterable[UnitId]) -> set[UnitId]:
        """Those of these units where others have been at work since we looked at their objects."""
        found = {unit for unit in units if self._all[unit].looked != self._all[unit].record.epoch}
        for unit in found:
            self._all[unit].looked = self._all[unit].record.epoch
        return found

    def take(self, unit: UnitId, *, wanted: bool = True) -> Errand[None]:
        """Hold a unit, whose objects are counted as its own before they are written.

        One that somebody else has taken over is lost, and not an error.
        """
        hold = self._all[unit]
        if unit in self.lost or hold.is_taken(self._now()):
            return
        hold.wanted |= wanted
        try:
            yield from hold.take(self._now)
        except OvertakenError as error:
            self._lose(unit, error)

    def has(self, unit: UnitId) -> bool:
        """Whether a unit is ours and stays so, though we may not write at the moment."""
        hold = self._all[unit]
        return unit not in self.lost and hold.is_ours and not hold.leaving

    def be_alive(self, units: Iterable[UnitId]) -> Errand[None]:
        """Be known as alive in the clusters of these units, before any of them is taken."""
        firsts = {self._all[unit].record.cluster: self._all[unit] for unit in units}
        yield from together(hold.be_alive(self._now) for hold in firsts.values())

    @property
    def are_waiting(self) -> bool:
        """Whether we wait for a unit that somebody else holds."""
        return any(keeping.waiting for keeping in self.keepings.values())

    def _lose(self, unit: UnitId, error: OvertakenError) -> None:
        self.lost[unit] = error.problem
        self._tell_loss(unit, error.problem)

    def take_wishes(self, heartbeat: Heartbeat) -> Wished:
        """The units that others ask for; what we do not hold is nobody's wish."""
        if not heartbeat.wishes:
            return Wished([], [])
        names = {hold.record.ref.name: hold for hold in self._all.values() if hold.is_ours}
        heartbeat.wishes = {
            name: wish
            for name, wish in heartbeat.wishes.items()
            if name in names and names[name].record.turn == wish.turn
        }
        wanted = [(names[name], wish) for name, wish in heartbeat.wishes.items()]
        wished = Wished([], [])
        for hold, wish in wanted:
            if wish.plan == hold.record.sign(hold.plan):
                wished.lendable.append(hold.unit)
            elif wish != hold.asked_to_go:
                hold.asked_to_go = wish
                if self._rivals.yields_to(wish.holder):
                    wished.given_up.append(hold.unit)
        return wished

    @property
    def flush_at(self) -> Ms | None:
        """When journals are written: many units write each of theirs less often."""
        if not self._dirty:
            return None
        return Ms(self._stirred_at + max(FLUSHES, len(self._dirty) * PER_UNIT))

    def due(self, now: Ms) -> list[UnitHold]:
        """The holds whose journals are to be written now."""
        if self.flush_at is None or now < self.flush_at:
            return []
        units, self._dirty = list(self._dirty), {}
        return [self._all[unit] for unit in units]

    def close(self) -> Errand[None]:
        """Let go of all units, then of our name: whatever still bears it is free."""
        tried = [hold for hold in self._all.values() if hold.tried or hold.busy]
        yield from together(hold.close(self._now) for hold in tried)
        used = [one.heartbeat for one in self.keepings.values() if one.heartbeat.is_used]
        yield from together(heartbeat.end(self._now) for heartbeat in used)

    def drop_errands(self) -> None:
        """All errands were withdrawn."""
        for hold in self._all.values():
            hold.drop_errands()
        for keeping in self.keepings.values():
            keeping.heartbeat.drop_errands()
