"""What Argo CD does with a newer revision, behind a simulated rollout.

    commit ──▶ each Application sees it when it is looked at again ──▶ it is synced

An Application that syncs by itself begins as soon as it sees the revision. Those of a set with
steps wait until all of the earlier steps are well; but one that has not seen the revision yet still
counts as well by the revision before, so that a later step may overtake it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from tidegate.dialect.units import is_own_kind
from tidegate.flows.healing import Sync
from tidegate.flows.planning import Planned
from tidegate.flows.resyncing import Resyncing
from tidegate.model.event import Event, Result, Told
from tidegate.model.moment import MINUTE, Ms
from tidegate.model.objects import Json, Kind
from tidegate.model.plan import Plan
from tidegate.model.reading import text
from tidegate.model.unit import Unit, UnitId
from tidegate.model.uptake import Uptake
from tidegate.plan.chains import part_of_unit
from tidegate.world.exchange import Exchange

GENERATES_EVERY = Ms(3 * MINUTE)
"""So often a set reads its repositories again."""


class _Taking(msgspec.Struct):
    """A unit that the newer revision changes."""

    unit: Unit
    seen: Ms
    began: Ms | None = None
    ended: Ms | None = None
    is_well: bool = False
    ahead: tuple[UnitId, ...] = ()

    @property
    def step(self) -> int:
        return self.unit.rollout.number if self.unit.rollout is not None else 0

    @property
    def is_busy(self) -> bool:
        return self.began is not None and not self.is_well

    @property
    def why_it_stays(self) -> str:
        rollout = self.unit.rollout
        if not self.unit.policy.semantics.refresh_every:
            return "nobody brings it before the next rollout"
        if rollout is None:
            return "" if self.unit.policy.starts else "nobody syncs the unit by itself"
        if not rollout.number:
            return "no step of its set takes it"
        return "somebody has to sync it: `maxUpdate` is 0" if rollout.limit == 0 else ""


class TakingUp(msgspec.Struct):
    """One commit, and what comes of it until a moment."""

    world: Exchange
    sync: Sync
    plan: Plan
    committed: Ms
    until: Ms
    resyncing: Resyncing
    _units: list[_Taking] = msgspec.field(default_factory=list)
    _group: asyncio.TaskGroup = msgspec.field(default_factory=asyncio.TaskGroup)

    async def run(self, changed: Iterable[tuple[Unit, Ms]]) -> tuple[Uptake, ...]:
        """What each of these units did; with each of them, when it sees the revision."""
        takings = (_Taking(unit, seen) for unit, seen in changed)
        self._units = sorted(takings, key=lambda one: one.unit.id)
        async with self._group:
            for moment in sorted({one.seen for one in self._units if one.seen <= self.until}):
                self._group.create_task(self._look_at(moment))
        return tuple(map(self._told, self._units))

    async def _look_at(self, moment: Ms) -> None:
        party = self.world.party()
        while self.world.now() < moment:
            await party.wait(moment)
        self._begin()

    def _begin(self) -> None:
        """Begin with all units that may begin by now, in the order of their names."""
        for one in self._units:
            if one.began is None and one.seen <= self.world.now() and self._may_begin(one):
                one.began = self.world.now()
                mine = [other for other in self._earlier(one) if not other.is_well]
                one.ahead = tuple(other.unit.id for other in mine)
                self._group.create_task(self._take(one))

    async def _take(self, one: _Taking) -> None:
        one.is_well = await self.sync(part_of_unit(self.plan, one.unit.id)) is Result.PASSED
        one.ended = self.world.now() if one.is_well else None
        self._begin()
        if one.is_well and one.began is not None:
            await self.resyncing.play(one.unit.id, one.began, one.began)

    def _may_begin(self, one: _Taking) -> bool:
        if one.why_it_stays:
            return False
        if one.unit.rollout is None:
            return True
        now = self.world.now()
        if any(other.seen <= now and not other.is_well for other in self._earlier(one)):
            return False
        beside = [other for other in self._of_set(one) if other.step == one.step]
        limit = one.unit.rollout.limit
        return limit is None or sum(other.is_busy for other in beside) < limit

    def _of_set(self, one: _Taking) -> list[_Taking]:
        return [other for other in self._units if other.unit.made_by == one.unit.made_by]

    def _earlier(self, one: _Taking) -> list[_Taking]:
        if one.unit.rollout is None:
            return []
        return [other for other in self._of_set(one) if 0 < other.step < one.step]

    def _told(self, one: _Taking) -> Uptake:
        stays = one.why_it_stays
        if not stays and one.began is None:
            stays = "its step is not open" if one.seen <= self.until else "nobody has seen it yet"
        if not stays and not one.is_well:
            stays = "it is not well"
        return Uptake(
            unit=one.unit.id,
            committed=self.committed,
            seen=one.seen,
            step=one.step,
            began=one.began,
            ended=one.ended,
            ahead=one.ahead,
            stays=stays,
        )


class Sight(msgspec.Struct, frozen=True):
    """When units see what is committed: each is looked at again in its own rhythm."""

    ended: Mapping[UnitId, Ms]
    start: Ms
    seed: int = 0

    @classmethod
    def of(cls, events: Iterable[Event], start: Ms, seed: int) -> Sight:
        """By what happened in a rollout: whoever was synced was looked at."""
        told = (one for one in events if one.told is Told.UNIT_ENDED and one.unit is not None)
        return cls({one.unit: one.at for one in told if one.unit is not None}, start, seed)

    def changed(self, old: Planned, new: Planned, committed: Ms) -> list[tuple[Unit, Ms]]:
        """The units that a newer plan changes, and when each sees that.

        Whose own object changes is written by whoever brings it, as soon as that has seen it.
        """
        texts, before = _texts(new), _texts(old)
        known = {one.id: one.digest for one in old.plan.units}
        digests = {one.id: one.digest for one in new.plan.units}
        units = {one.manifests.unit.id: one.manifests.unit for one in new.read}

        def sees(unit: Unit) -> Ms:
            parent = units.get(unit.parent) if unit.parent is not None else None
            if parent is not None:
                own = (parent.id, unit.id.kind, unit.id.name)
                if texts.get(own) != before.get(own):
                    return sees(parent)
            return self._next(unit, committed)

        return [
            (unit, sees(unit))
            for unit in units.values()
            if digests.get(unit.id) != known.get(unit.id) and unit.id in digests
        ]

    def _next(self, unit: Unit, committed: Ms) -> Ms:
        """When it looks for the first time since a commit; at once where its rules do not say."""
        rules, since = unit.policy.semantics, self.ended.get(unit.id, self.start)
        spread = int(self._chance(unit.id) * rules.refresh_jitter)
        is_set = unit.id.kind == "ApplicationSet"
        if not rules.refresh_every:
            return committed
        every = GENERATES_EVERY if is_set else Ms(rules.refresh_every + spread)
        times = max(0, -(-(committed - since) // every))
        return Ms(since + times * every)

    def _chance(self, unit: UnitId) -> float:
        digest = hashlib.blake2b(f"{self.seed}/{unit}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64


def _texts(planned: Planned) -> dict[tuple[UnitId, str, str], dict[str, Json]]:
    """By who brings it, the kind and the name: the own objects of units, as they are written."""
    return {
        (one.manifests.unit.id, text(body, "kind"), text(body, "metadata", "name")): body
        for one in planned.read
        for body in (document.body for document in one.rendered.documents)
        if is_own_kind(Kind.of(text(body, "apiVersion"), text(body, "kind")))
    }
