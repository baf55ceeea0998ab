"""Where a rollout takes place: its units and steps, and what is known of their clusters."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.engine.heartbeat import Heartbeat
from tidegate.engine.hold import FLUSHES, Hold, Tell
from tidegate.engine.keeping import Keeping, read_records
from tidegate.engine.means import Body, Means
from tidegate.engine.neighbours import Neighbours
from tidegate.engine.reach.checking import Examined, Examiner, is_touched, status_name
from tidegate.engine.reach.errands import Ask, Errand, Pause, together
from tidegate.engine.reach.outlook import Outlook
from tidegate.engine.reach.preflight import Inspector, Preflight
from tidegate.engine.reach.surroundings import Surroundings
from tidegate.engine.reach.writing import read_body
from tidegate.engine.record import Record
from tidegate.engine.stored import NAMESPACE
from tidegate.engine.vocabulary import Judged, Spot, Standing
from tidegate.errors import Place
from tidegate.model.moment import Ms
from tidegate.model.objects import Live, Ref, as_served, identity
from tidegate.model.plan import Deed, Item, Plan, PlannedUnit, Step, items_of
from tidegate.model.semantics import TIDEGATE, Semantics
from tidegate.world.backoff import pause
from tidegate.world.calls import Write
from tidegate.world.facts import Outcome, Refusal
from tidegate.world.protocol import World
from tidegate.world.refusals import refusal_error

PER_UNIT = Ms(10)
"""How much longer a journal waits to be written for each other one that does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a rollout is run. `holder` names this very run in leases; no other has this name."""

    holder: str
    semantics: Semantics = TIDEGATE
    carries_on: bool = False
    namespace: str = NAMESPACE
    prunes: bool = False
    consents: bool = False
    """What asks first may be pruned and deleted."""
    runs_hooks: bool = False
    """Hooks are run though nothing has changed."""
    preflight: Preflight = Preflight.LOCAL
    first_ticket: int = 1


class Site:
    """All that an errand may ask for."""

    def __init__(self, world: World, means: Means, settings: Settings, tell: Tell) -> None:
        self.world = world
        self.means = means
        self.settings = settings
        self.outlook = Outlook()
        self.examiner = Examiner(means, self.outlook, {})
        around = Surroundings(means, self.outlook)
        self.inspector = Inspector(means, self.examiner.units, around, settings.preflight)
        self.steps: dict[str, Step] = {}
        self.owner: dict[Spot, PlannedUnit] = {}
        self.holds: dict[str, Hold] = {}
        self.keepings: dict[str, Keeping] = {}
        """What the units of each cluster share."""
        self.dirty: dict[str, None] = {}
        """Units whose journals are not written as they are."""
        self._tell = tell

    def enlist(self, units: Iterable[PlannedUnit], steps: Iterable[Step], *, digest: str) -> None:
        """Take units and steps into view."""
        known = self.examiner.units
        for unit in units:
            known[unit.name] = unit
            if unit.name in self.holds:
                self.holds[unit.name].intend(unit.digest)
            else:
                self.holds[unit.name] = self._hold(unit, digest)
        for step in steps:
            self.steps[step.id] = step
            spots = {Spot(step.cluster, item.ref): item for item in items_of(step)}
            self.inspector.surroundings.enlist(spots)
            self.outlook.want(spots)
            self.owner.update(dict.fromkeys(spots, known[step.unit]))
            hold, items = self.holds[step.unit], items_of(step)
            hold.hooks.update(item.ref for item in items if item.hook is not None)
            ordinary = (item for item in items if item.hook is None)
            kept = (item.ref for item in ordinary if item.deed is not Deed.DELETE)
            hold.refs.update(dict.fromkeys(kept))

    def _hold(self, unit: PlannedUnit, plan: str) -> Hold:
        cluster, place = unit.cluster, self.settings.namespace
        if cluster not in self.keepings:
            heartbeat = Heartbeat(cluster, self.settings.holder, place)
            self.keepings[cluster] = Keeping(heartbeat, Neighbours(cluster, place))
        record = Record(unit.name, cluster, place, self._stirred)
        return Hold(record, self.keepings[cluster], plan, self._tell, text=unit.digest)

    def _stirred(self, unit: str) -> None:
        self.dirty[unit] = None

    def load(self) -> Errand[Outcome | None]:
        """Read the records of all units that are not ours anyhow."""
        wanted: dict[str, list[Record]] = {}
        for hold in self.holds.values():
            if not hold.is_ours:
                hold.record.look_anew()
                wanted.setdefault(hold.record.cluster, []).append(hold.record)
        now = self.world.now
        outcomes = yield from together(read_records(some, now) for some in wanted.values())
        self._look_again(self.holds.values())
        return next((one for one in outcomes if one is not None), None)

    def take_wishes(self, heartbeat: Heartbeat) -> list[Hold]:
        """The units that others have come to ask for; what we do not hold is nobody's wish."""
        if not heartbeat.wishes:
            return []
        names = {hold.record.ref.name: hold for hold in self.holds.values() if hold.is_ours}
        heartbeat.wishes = {
            name: wish
            for name, wish in heartbeat.wishes.items()
            if name in names and names[name].record.turn == wish.turn
        }
        wanted = [(names[name], wish) for name, wish in heartbeat.wishes.items()]
        fresh = [hold for hold, wish in wanted if hold.asked_to_go != wish.plan]
        for hold, wish in wanted:
            hold.asked_to_go = wish.plan
        return fresh

    def drop_errands(self) -> None:
        """All errands were withdrawn."""
        for hold in self.holds.values():
            hold.drop_errands()
        for keeping in self.keepings.values():
            keeping.heartbeat.drop_errands()

    @property
    def flushes(self) -> Ms:
        """How often journals are written: many units write each of theirs less often."""
        return max(FLUSHES, Ms(len(self.dirty) * PER_UNIT))

    def planned(self, cluster: str) -> list[tuple[Item, PlannedUnit]]:
        """All objects of a cluster that the steps speak of, with their units."""
        units = self.examiner.units
        steps = [step for step in self.steps.values() if step.cluster == cluster]
        return [(item, units[step.unit]) for step in steps for item in items_of(step)]

    def judge(self, spot: Spot, live: Live, body: Body | None = None) -> Errand[Judged]:
        """A verdict about what lives, at once unless a stranger's script has to be run for it.

        `body` where it is read already.
        """
        read = read_body(live) if body is None else body
        unit, now = self.owner[spot], self.world.now()
        work = self.means.script(unit, read, now)
        if work is None:
            verdict = self.means.judge(unit, read, now)
        else:
            (outcome,) = yield (Ask(spot.cluster, work),)
            verdict = self.means.scripted(outcome, read)
        status = status_name(live, read)
        return Judged(spot, live.uid, live.generation, live.version, verdict, status)

    def stand(self, step: Step) -> tuple[Standing, ...]:
        entries = self.holds[step.unit].record.entries
        return tuple(self.examiner.stand(step, one, entries.get(one.ref)) for one in items_of(step))

    def examined(self, step: Step) -> list[Examined]:
        pairs = zip(items_of(step), self.stand(step), strict=True)
        return [(step, item, standing) for item, standing in pairs]

    def is_due(self, examined: Examined) -> bool:
        """Whether there is something to do: to write, or a gate to open for the first time."""
        step, item, standing = examined
        if item.deed is not Deed.APPLY:
            return self.is_written(item, standing)
        record = self.holds[step.unit].record
        if item.hook is not None:
            done = record.is_done(self.examiner.units[step.unit].digest)
            return self.settings.runs_hooks or not done
        known = record.entries.get(item.ref)
        written = self.is_written(item, standing)
        return written or known is None or known.opened != item.digest

    def is_written(self, item: Item, standing: Standing) -> bool:
        """Whether something is done to an object in this rollout."""
        return is_touched(item, standing, consents=self.settings.consents)

    def stale(self, plan: Plan) -> dict[str, list[Spot]]:
        """By unit: what it has brought and the plan does not speak of. Hooks are not kept.

        What was written in a version that is no longer served is known by another one from now on.
        """
        items = ((step.cluster, item) for step in plan.steps for item in items_of(step))
        wanted = {(cluster, *identity(item.ref)) for cluster, item in items}
        found: dict[str, dict[Spot, None]] = {}
        for name, hold in self.holds.items():
            record, cluster = hold.record, hold.record.cluster
            known = [ref for ref, entry in record.entries.items() if not entry.hook]
            for ref in known:
                if (cluster, *identity(ref)) not in wanted:
                    served = as_served(ref, self.outlook.served.get(cluster, {}))
                    record.rename(ref, served)
                    found.setdefault(name, {})[Spot(cluster, served)] = None
        return {name: list(spots) for name, spots in found.items()}

    @property
    def place(self) -> Place:
        """Where to look when the cluster says no: the units that are rolled out."""
        return Place(f"unit {', '.join(self.holds)}")

    def _look_again(self, holds: Iterable[Hold]) -> None:
        """Have the objects of units looked at again where others have been at work since."""
        units = {hold.record.unit for hold in holds if hold.looked != hold.record.epoch}
        for unit in units:
            self.holds[unit].looked = self.holds[unit].record.epoch
        if units:
            self.outlook.forget(spot for spot, owner in self.owner.items() if owner.name in units)

    def take(self, unit: str) -> Errand[bool]:
        """Hold a unit, whose objects are counted as its own before they are written.

        True: somebody else was at work there, and its objects must be looked at again.
        """
        hold = self.holds[unit]
        if hold.is_taken(self.world.now()):
            return False
        before = hold.looked
        yield from hold.take(self.world.now)
        self._look_again((hold,))
        return hold.looked != before

    def take_all(self, units: Iterable[str]) -> Errand[bool]:
        """Hold units side by side; the same is true.

        Nobody is waited for while we hold units that we have not begun with: somebody else may
        wait for those, and for nothing else.
        """
        now = self.world.now
        holds = [self.holds[unit] for unit in units]
        before = [hold.looked for hold in holds]
        begun = {hold.record.unit for hold in holds if hold.is_ours}
        tries, seed = 0, zlib.crc32(self.settings.holder.encode())
        firsts = {hold.record.cluster: hold for hold in reversed(holds)}
        while True:
            yield from together(hold.be_alive(now) for hold in firsts.values())
            yield from together(hold.take(now, waits=False) for hold in holds)
            left = [hold for hold in holds if not hold.is_taken(now())]
            if not left:
                break
            fresh = [hold for hold in holds if hold.is_ours and hold.record.unit not in begun]
            yield from together(hold.close(now) for hold in fresh)
            yield from together(hold.await_holder(now) for hold in left)
            tries += 1
            yield Pause(Ms(now() + pause(tries, seed=seed, ticket=0)))
        self._look_again(holds)
        return before != [hold.looked for hold in holds]

    def may_write_until(self, ask: Ask) -> Ms | None:
        """The moment after which a write of ours must not leave; None where there is none."""
        write = ask.request
        if not isinstance(write, Write) or write.dry_run or not self.is_of(ask.cluster, write.ref):
            return None
        return self.keepings[ask.cluster].heartbeat.may_write_until

    def is_of(self, cluster: str, ref: Ref) -> bool:
        """Whether an object is of this rollout."""
        return Spot(cluster, ref) in self.owner


def refuse(refused: Refusal | None, site: Site) -> None:
    """Raise what keeps us from looking at the cluster."""
    if refused is not None:
        raise refusal_error(refused, "looking at the cluster", where=site.place)
