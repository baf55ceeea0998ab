"""Where a rollout takes place: its units and steps, and what is known of their clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from tidegate.engine.approvals import Approvals
from tidegate.engine.hold import Tell
from tidegate.engine.holds import Holds, Lost
from tidegate.engine.ledgers import Ledgers
from tidegate.engine.means import Body, Bookkeeper, FailingUnit, Means, Reporter
from tidegate.engine.reach.checking import Examined, Examiner, is_touched, status_name
from tidegate.engine.reach.errands import Ask, Errand
from tidegate.engine.reach.outlook import Outlook
from tidegate.engine.reach.preflight import Inspector, Preflight
from tidegate.engine.reach.surroundings import NEVER_WRITTEN, Surroundings
from tidegate.engine.reach.writing import read_body
from tidegate.engine.stored import NAMESPACE
from tidegate.engine.vocabulary import Judged, Stand, Standing
from tidegate.errors import Place
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Live, Ref, Spot, as_served, identity
from tidegate.model.plan import AWAITED, Deed, Fragment, Item, Plan, PlannedUnit, Step, items_of
from tidegate.model.unit import UnitId
from tidegate.world.calls import Write
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Outcome, Refusal
from tidegate.world.refusals import refusal_error

MOST_NAMED = 5


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a rollout is run. `holder` names this very run in leases; no other has this name."""

    holder: str
    namespace: str = NAMESPACE
    keeps_going: bool = False
    """A unit with a fault is left out, and what waits for it; the others begin."""
    only_looks: bool = False
    """It ends before anything is done, and has told what would be refused."""
    preflight: Preflight = Preflight.LOCAL
    left_out: Mapping[UnitId, str] = msgspec.field(default_factory=dict)
    """Units of which it is known beforehand that nothing can be done, and why."""
    approved: frozenset[UnitId] = frozenset()
    """Units that need nobody else's approval."""
    reporter: Reporter | None = None
    """Who knows what is said of units on their own objects; None: nothing is."""
    keeper: Bookkeeper | None = None
    """Who keeps the ledgers of units; None: nobody has any."""
    refresher: Callable[[UnitId], None] | None = None
    """Who looks what the source of a unit has by now; None: it has what it had."""


class Site:
    """All that an errand may ask for."""

    def __init__(
        self, world: Exchange, means: Means, settings: Settings, tell: Tell, lost: Lost
    ) -> None:
        self.world = world
        self.means = means
        self.settings = settings
        self.outlook = Outlook()
        self.examiner = Examiner(means, self.outlook, {})
        around = Surroundings(means, self.outlook)
        self.inspector = Inspector(means, self.examiner.units, around, settings.preflight)
        self.steps: dict[str, Step] = {}
        self.expanded: set[str] = set()
        """The steps of which it is known what they yield."""
        self._by_unit: dict[UnitId, dict[str, None]] = {}
        self.owner: dict[Spot, PlannedUnit] = {}
        self.writers: dict[Spot, set[UnitId]] = {}
        """All units that write an object; there should be one."""
        self.parts: dict[UnitId, Plan] = {}
        """What was asked for of each unit."""
        self.holds = Holds(settings.holder, settings.namespace, world.now, tell, lost)
        self.ledgers = Ledgers(settings.keeper)
        self.approvals = Approvals(self._text_of, settings.approved, settings.namespace)

    def _text_of(self, unit: UnitId) -> str:
        return self.holds[unit].text

    def enlist(self, units: Iterable[PlannedUnit], steps: Iterable[Step], *, digest: str) -> None:
        """Take units and steps into view."""
        known, units = self.examiner.units, tuple(units)
        known |= {unit.id: unit for unit in units}
        for unit in units:
            self.holds.add(unit, digest, known.get(unit.parent) if unit.parent else None)
        for step in steps:
            self.steps[step.id] = step
            self._by_unit.setdefault(step.unit, {})[step.id] = None
            spots = {Spot(step.cluster, item.ref): item for item in items_of(step)}
            self.inspector.surroundings.enlist(spots)
            self.outlook.want(spots)
            for spot, item in spots.items():
                if item.deed not in AWAITED or spot not in self.owner:
                    self.owner[spot] = known[step.unit]
                if item.deed is Deed.APPLY:
                    self.writers.setdefault(spot, set()).add(step.unit)
            hold, items = self.holds[step.unit], items_of(step)
            hold.hooks.update(item.ref for item in items if item.hook is not None)
            ordinary = (item for item in items if item.hook is None)
            kept = (item.ref for item in ordinary if item.deed not in NEVER_WRITTEN)
            hold.refs.update(dict.fromkeys(kept))

    def may_bring(self) -> list[Step]:
        """The steps of which it counts what they bring, or may bring."""
        return [step for step in self.steps.values() if step.id not in self.expanded]

    def origin_of(self, step: Step, ref: Ref) -> str:
        """Where an object of a step stands in the user's files; empty where nobody knows."""
        items = items_of(self.steps.get(step.id, step))
        return next((item.origin for item in items if item.ref == ref), "")

    def steps_of(self, unit: UnitId) -> list[Step]:
        return [self.steps[name] for name in self._by_unit.get(unit, ())]

    def planned(self, cluster: str) -> list[tuple[Item, PlannedUnit]]:
        """All objects of a cluster that the steps speak of, with their units."""
        units = self.examiner.units
        steps = [step for step in self.steps.values() if step.cluster == cluster]
        return [(item, units[step.unit]) for step in steps for item in items_of(step)]

    def is_remedy(self, step: Step) -> bool:
        """Whether a step is there for the failure of what is entered into a ledger."""
        return step.rescues and self.ledgers.entering(step.unit) is not None

    def remedy(self, unit: PlannedUnit, steps: Iterable[Step]) -> Fragment | None:
        """What is done if a unit fails that keeps a ledger."""
        served = self.outlook.served.get(unit.cluster, {})

        def is_namespaced(kind: Kind) -> bool | None:
            return served[kind].namespaced if kind in served else None

        def find(ref: Ref) -> Live | None:
            return self.outlook.lives.get(Spot(unit.cluster, ref))

        return self.ledgers.remedy(FailingUnit(unit, tuple(steps), find, is_namespaced))

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
            verdict = self.means.scripted(work, outcome, read)
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
        step, item, _ = examined
        if item.deed is not Deed.APPLY:
            return self.is_written(examined)
        record, unit = self.holds[step.unit].record, self.examiner.units[step.unit]
        if item.hook is not None:
            return unit.policy.runs_hooks or not record.is_done(unit.digest)
        known = record.entries.get(item.ref)
        written = self.is_written(examined)
        if examined[2].stand is Stand.LEFT:
            return False
        return written or known is None or known.opened != item.digest

    def is_written(self, examined: Examined) -> bool:
        """Whether something is done to an object in this rollout."""
        step, item, standing = examined
        consents = self.examiner.units[step.unit].policy.consents
        return is_touched(item, standing, consents=consents)

    def stale(self, plan: Plan) -> dict[UnitId, list[Spot]]:
        """By unit that prunes: what it has brought and the rollout does not speak of.

        Hooks are not kept. What was written in a version that is no longer served is known by
        another one from now on.
        """
        own, left = {unit.id for unit in plan.units}, _spoken_of(plan.steps)
        unspoken = [
            (name, ref)
            for name in (unit.id for unit in plan.units if unit.policy.prunes)
            for ref in self._brought(name)
            if (self.holds[name].record.cluster, *identity(ref)) not in left
        ]
        others = (step for step in self.steps.values() if step.unit not in own)
        left = _spoken_of(others if unspoken else ())
        found: dict[UnitId, dict[Spot, None]] = {}
        for name, ref in unspoken:
            record = self.holds[name].record
            cluster = record.cluster
            if (cluster, *identity(ref)) not in left:
                served = as_served(ref, self.outlook.served.get(cluster, {}))
                if ref in record.entries:
                    record.rename(ref, served)
                found.setdefault(name, {})[Spot(cluster, served)] = None
        return {name: list(spots) for name, spots in found.items()}

    def _brought(self, unit: UnitId) -> list[Ref]:
        """What a unit has brought, by its journal or its ledger."""
        record, entering = self.holds[unit].record, self.ledgers.entering(unit)
        known = {ref: None for ref, entry in record.entries.items() if not entry.hook}
        served = self.outlook.served.get(record.cluster, {})
        for ref in entering.brought if entering is not None else ():
            one = as_served(ref, served)
            is_wide = one.kind in served and not served[one.kind].namespaced
            known[Ref(one.kind, "", one.name) if is_wide else one] = None
        return list(known)

    @property
    def place(self) -> Place:
        """Where to look when the cluster says no: the units that are rolled out."""
        names = [str(name) for name in self.holds.names()]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        return Place(f"unit {', '.join(names[:MOST_NAMED])}{more}")

    def load(self, units: Iterable[UnitId]) -> Errand[Outcome | None]:
        """Read what is stored of units; where others have been at work, what we know is old."""
        units = tuple(units)
        refused = yield from self.holds.load(units)
        self._look_again(units)
        return refused

    def take(self, unit: UnitId, *, wanted: bool = True) -> Errand[bool]:
        """Hold a unit. True: somebody else was at work there, and what we know of it is old."""
        before = self.holds[unit].looked
        yield from self.holds.take(unit, wanted=wanted)
        self._look_again((unit,))
        return self.holds[unit].looked != before or unit in self.holds.lost

    def _look_again(self, units: Iterable[UnitId]) -> None:
        """Have the objects of units looked at again where others have been at work since."""
        for unit in self.holds.news(units):
            steps = self.steps_of(unit)
            self.outlook.forget(
                Spot(one.cluster, item.ref) for one in steps for item in items_of(one)
            )

    def may_write_until(self, ask: Ask) -> Ms | None:
        """The moment after which a write of ours must not leave; None where there is none."""
        write = ask.request
        if not isinstance(write, Write) or write.dry_run or not self.is_of(ask.cluster, write.ref):
            return None
        return self.holds.keepings[ask.cluster].heartbeat.may_write_until

    def is_of(self, cluster: str, ref: Ref) -> bool:
        """Whether an object is of this rollout."""
        spot = Spot(cluster, ref)
        return spot in self.owner or self.ledgers.has(spot)


def _spoken_of(steps: Iterable[Step]) -> set[tuple[object, ...]]:
    """The objects that steps write or delete, in whichever version."""
    items = ((step.cluster, item) for step in steps for item in items_of(step))
    return {(cluster, *identity(one.ref)) for cluster, one in items if one.deed not in AWAITED}


def refuse(refused: Refusal | None, site: Site) -> None:
    """Raise what keeps us from looking at the cluster."""
    if refused is not None:
        raise refusal_error(refused, "looking at the cluster", where=site.place)
