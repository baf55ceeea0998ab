"""What is told of units on their own objects, as a rollout goes.

When a unit waits for others, begins, waits at a gate, and ends. What is said there is not known
here: a reporter makes it of an account. Nothing waits for it but the end of the unit itself, which
is behind all of its gates; what cannot be written is told, and ends nothing.
"""

from __future__ import annotations

from tidegate.engine.accounts import (
    Story,
    judge_anew,
    kept_from_ending,
    left_behind,
    make_account,
    waits_for,
)
from tidegate.engine.hold import SETTLES
from tidegate.engine.means import Report, Reporter
from tidegate.engine.reach.errands import Ask, Errand, Errands, Pause
from tidegate.engine.reach.writing import read_body
from tidegate.engine.site import Site
from tidegate.engine.turns.rollout import Rollout, UnitRun
from tidegate.errors import foreign
from tidegate.model.event import Event, Result, Told
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Live, Spot, as_served
from tidegate.model.unit import UnitId
from tidegate.world import facts
from tidegate.world.calls import Get, PatchForm, Verb, Write

EVERY = Ms(1 * SECOND)
"""How often at most a unit under way is told of."""
PER_OBJECT = Ms(2)
"""How much less often for each of its objects: all of them are told each time."""
TRIES = 3
"""How often that is tried against others who write at the same time."""
STATUS = "status"


class Chronicle:
    """Follows the units of a rollout, and tells of each where that is to be told."""

    def __init__(
        self, site: Site, errands: Errands, rollout: Rollout, reporter: Reporter | None
    ) -> None:
        self._site = site
        self._errands = errands
        self._rollout = rollout
        self._reporter = reporter
        self.unreported: dict[UnitId, str] = {}
        """What could not be told, and why."""
        self._stories: dict[UnitId, Story] = {}
        self._spots: dict[Spot, UnitId] = {}
        self._waiters: dict[UnitId, set[UnitId]] = {}
        self._late = 0
        """How many ends are told now that had nothing to be told on before."""
        self._stopping = False

    def hear(self, event: Event) -> None:
        """Take note of an event, and tell what follows from it."""
        if self._reporter is None:
            return
        match event.told:
            case Told.ROLLOUT_BEGUN:
                self._begin()
            case Told.OBJECT_WRITTEN | Told.OBJECT_UNCHANGED if event.ref is not None:
                self._came(Spot(event.cluster, event.ref))
            case Told.STEP_APPLYING | Told.STEP_GATING | Told.STEP_FAILED | Told.GATE_WAITING:
                if event.unit is not None and (story := self._story(event.unit)) is not None:
                    self._follow(event.unit, story, event)
            case Told.UNIT_ENDED if event.unit is not None:
                for name in self._waiters.pop(event.unit, ()):
                    self._still_waits(name)
            case _:
                return

    def _begin(self) -> None:
        """Units that have something to do, and wait for others, say for whom."""
        for name, unit in self._rollout.units.items():
            if not unit.unheld or self._story(name) is None:
                continue
            for one in waits_for(unit):
                self._waiters.setdefault(one, set()).add(name)
            self._still_waits(name)

    def _still_waits(self, name: UnitId) -> None:
        story, unit = self._stories.get(name), self._rollout.units.get(name)
        if story is None or unit is None or story.operated or unit.ended:
            return
        if waits_for(unit):
            self._tell(name, story)

    def _follow(self, name: UnitId, story: Story, event: Event) -> None:
        if event.told is Told.STEP_GATING:
            story.gating.add(event.step)
        elif event.told is Told.STEP_FAILED and not story.reason:
            story.reason, story.sentence = event.reason, event.sentence
            story.by_gate = event.step in story.gating
            story.by_test = self._site.steps[event.step].tests
        if not self._site.holds.has(name):
            return
        if not story.operated:
            story.operated, story.begun = True, event.at
            self._tell(name, story)
        elif event.told in {Told.GATE_WAITING, Told.STEP_FAILED}:
            self._tell(name, story)

    def _came(self, spot: Spot) -> None:
        """What there was to tell of a unit can be told: its own object is there."""
        name = self._spots.get(spot)
        story = None if name is None else self._stories[name]
        if name is not None and story is not None and story.absent:
            story.absent = False
            if story.result:
                self._late += 1
                self._errands.run(self._write(name, story), self._caught_up)
            else:
                self._tell(name, story)

    def _caught_up(self, _: None) -> None:
        self._late -= 1

    def end(self, name: UnitId, result: str) -> Errand[None]:
        """Tell how a unit has ended; one that was only looked at where something else is told.

        Who brings others is as well as they are, so that they come first.
        """
        story = self._story(name)
        if story is None:
            return
        unit = self._rollout.units[name]
        while not self._stopping and any(map(self._is_ending, self._brought_by(unit))):
            yield Pause(Ms(self._site.world.now() + SETTLES))
        if story.operated or not self._belongs_to_another(name):
            story.verdicts = yield from judge_anew(self._site, unit)
            story.extra = yield from left_behind(self._site, unit)
            why = self._site.settings.left_out.get(name) or kept_from_ending(unit)
            story.sentence = story.sentence or why
            story.result = result
            yield from self._write(name, story)
        story.done = True

    def _is_ending(self, name: UnitId) -> bool:
        """Whether a unit has ended, and that is still to be told."""
        return self._rollout.units[name].ended and not self._stories[name].done

    def _brought_by(self, unit: UnitRun) -> list[UnitId]:
        """The units that say how they are on objects of this one."""
        spots = (run.spot for step in unit.steps for run in step.items)
        names = (self._spots[spot] for spot in spots if spot in self._spots)
        units = self._rollout.units
        return [name for name in names if units[name].unit.parent == unit.unit.id]

    def stop(self, why: str) -> Errand[None]:
        """Tell of the units that were under way that nobody goes on with them."""
        self._stopping = True
        for name, story in self._stories.items():
            if story.operated and not story.result:
                story.sentence = story.sentence or why
                yield from self.end(name, Result.STOPPED)
        while self._late:
            yield Pause(Ms(self._site.world.now() + SETTLES))
        for name, story in [*self._stories.items()]:
            if story.unsaid:
                story.unsaid = False
                yield from self._write(name, story)

    def _belongs_to_another(self, name: UnitId) -> bool:
        record = self._site.holds[name].record
        return bool(record.holder) and not record.is_ours

    def _story(self, name: UnitId) -> Story | None:
        """What is known of a unit whose own object there is something to say on."""
        story = self._stories.get(name)
        if story is not None or self._reporter is None:
            return story
        spot = self._reporter.place(name)
        if spot is None:
            return None
        served = self._site.outlook.served.get(spot.cluster, {})
        if not self._site.outlook.is_wanted(spot):
            spot = Spot(spot.cluster, as_served(spot.ref, served))
        if spot.ref.kind not in served:
            return None
        self._spots[spot] = name
        story = self._stories[name] = Story(spot, self._site.world.now())
        return story

    def _tell(self, name: UnitId, story: Story) -> None:
        """Tell of a unit under way, not too often and one after another."""
        if story.busy or story.result:
            story.again = True
            return
        story.busy, story.again = True, False
        self._errands.run(self._report(name, story), lambda _: self._told(name, story))

    def _report(self, name: UnitId, story: Story) -> Errand[None]:
        again = self._not_before(name, story)
        if self._site.world.now() < again:
            yield Pause(again)
        if not story.result:
            yield from self._write(name, story)

    def _not_before(self, name: UnitId, story: Story) -> Ms:
        objects = sum(len(step.items) for step in self._rollout.units[name].steps)
        return Ms(story.told + EVERY + objects * PER_OBJECT) if story.told else Ms(0)

    def _told(self, name: UnitId, story: Story) -> None:
        story.busy = False
        if story.again and not story.result:
            self._tell(name, story)

    def _write(self, name: UnitId, story: Story) -> Errand[None]:
        """Bring what is there to what there is to say; others who write meanwhile are read."""
        result, live = story.result, self._site.outlook.lives.get(story.spot)
        if live is None and not self._site.outlook.is_wanted(story.spot):
            live = yield from self._look(name, story)
        for _ in range(TRIES):
            if live is None:
                story.absent = True
                return
            if story.result != result or self._reporter is None:
                return  # the end is told by now
            own = read_body(live)
            account = make_account(self._site, self._rollout.units[name], story)
            report = self._reporter.report(account, own)
            if report is None:
                return
            story.told = self._site.world.now()
            (outcome,) = yield (Ask(story.spot.cluster, self._wish(story.spot, live, report)),)
            if isinstance(outcome, facts.Done) and outcome.live is not None:
                self.unreported.pop(name, None)
                self._site.outlook.wrote(story.spot, outcome.live)
                self._tell_above(name)
                yield from self._note(name, story, report)
                return
            if not _is_passing(outcome):
                self._fail(name, outcome)
                return
            live = yield from self._look(name, story)
        self.unreported[name] = "others write it at the same time"

    def _tell_above(self, name: UnitId) -> None:
        """A unit has said something: who brought it may have to say that, too."""
        parent = self._rollout.units[name].unit.parent
        if parent is None or self._reporter is None or not self._reporter.follows(parent):
            return
        story = self._story(parent)
        if story is None or parent not in self._rollout.units:
            return
        story.unsaid = True
        if not story.following:
            story.following = True
            self._errands.run(self._tell_of_brought(parent, story), lambda _: None)

    def _tell_of_brought(self, name: UnitId, story: Story) -> Errand[None]:
        """Tell what others say, not too often; what is left at the end is told there."""
        while story.unsaid:
            again = self._not_before(name, story)
            if self._site.world.now() < again:
                yield Pause(again)
            if story.unsaid:
                story.unsaid = False
                yield from self._write(name, story)
        story.following = False

    def _look(self, name: UnitId, story: Story) -> Errand[Live | None]:
        (found,) = yield (Ask(story.spot.cluster, Get(story.spot.ref)),)
        if isinstance(found, facts.Done):
            return found.live
        if not isinstance(found, facts.Missing):
            self._fail(name, found)
        return None

    def _wish(self, spot: Spot, live: Live, report: Report) -> Write:
        served = self._site.outlook.served[spot.cluster][spot.ref.kind]
        return Write(
            verb=Verb.PATCH,
            form=PatchForm.MERGE,
            ref=spot.ref,
            body=report.patch,
            subresource=STATUS if STATUS in served.subresources else "",
            manager=report.manager,
            uid=live.uid,
            version=live.version,
        )

    def _note(self, name: UnitId, story: Story, report: Report) -> Errand[None]:
        asks = tuple(
            Ask(
                story.spot.cluster,
                Write(verb=Verb.CREATE, ref=ref, body=body, manager=report.manager),
            )
            for ref, body in report.notes
        )
        for outcome in (yield asks) if asks else ():
            if facts.is_refusal(outcome) and not isinstance(outcome, facts.Exists):
                self._fail(name, outcome)
                return

    def _fail(self, name: UnitId, outcome: facts.Outcome) -> None:
        why = outcome.message if facts.is_refusal(outcome) else "the answer was not an object"
        self.unreported[name] = foreign(why)


def _is_passing(outcome: facts.Outcome) -> bool:
    """Whether it is worth another look: somebody else was there, or the answer was lost."""
    if isinstance(outcome, facts.Lost):
        return outcome.reason is not facts.Loss.WITHDRAWN
    return isinstance(outcome, facts.Conflict | facts.Missing)
