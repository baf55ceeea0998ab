"""The loop: facts in, decisions made, commands out, until all is at rest."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from tidegate.engine import vocabulary as words
from tidegate.engine.chronicle import Chronicle
from tidegate.engine.decide import decide
from tidegate.engine.deeds import Deeds
from tidegate.engine.forgetting import forget_failed, forget_hooks, forget_object
from tidegate.engine.heartbeat import Heartbeat
from tidegate.engine.hold import SETTLES, UnitHold, told_takeover
from tidegate.engine.means import Means
from tidegate.engine.opening import Opening, open_rollout, reopen_rollout
from tidegate.engine.reach.errands import Errand, Errands, Pause
from tidegate.engine.reach.preflight import Fault
from tidegate.engine.site import Settings, Site
from tidegate.engine.turns.rollout import Rollout
from tidegate.model.event import Event, Result, Told
from tidegate.model.ledger import EntryEnd
from tidegate.model.moment import Ms
from tidegate.model.plan import Plan, PlannedUnit
from tidegate.model.unit import UnitId
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Answer, Change, Changed, Ended, Fact, NotServed, Refusal
from tidegate.world.refusals import refusal_error

HELD = "Held"
Decide: TypeAlias = Callable[[Rollout, words.Input, Ms], words.Decision]


class Driver:
    """One rollout on its way, in a world that it shares with others. Turn it until it is closed."""

    def __init__(
        self,
        world: Exchange,
        plan: Plan,
        means: Means,
        settings: Settings,
        emit: Callable[[Event], None],
        decide: Decide = decide,
    ) -> None:
        self.closed = False
        self.result = ""
        self.is_overtaken = False
        """It gave way to another rollout."""
        self.is_late = False
        """Its time was up."""
        self._decide = decide
        self.world = world
        self._plan = self._asked = plan
        self._left_out = settings.left_out
        self._emit = emit
        self._site = Site(world, means, settings, self._tell_of_unit, self._lose)
        self._party = world.party()
        self._errands = Errands(self._party, self._site.may_write_until)
        self._rollout = Rollout()
        self._inbox: deque[words.Input] = deque()
        self._deeds = Deeds(self._site, self._errands, self._inbox.append)
        self._chronicle = Chronicle(self._site, self._errands, self._rollout, settings.reporter)
        self._alarm: Ms | None = None
        self._begun = False
        self._ending = 0
        """How many units are being let go of."""
        self._failures: dict[UnitId, str] = {}
        """By unit, what failed first."""
        self._site.enlist(plan.units, plan.steps, digest=plan.digest)

    def open(self) -> None:
        self._errands.run(open_rollout(self._site, self._plan), self._opened)
        self._work()

    async def turn(self, until: Ms | None = None) -> None:
        """Wait for news, at most until a moment, and do what follows from them."""
        moments = [one for one in (self.alarm, until) if one is not None]
        for fact in await self._party.wait(min(moments, default=None)):
            self.take(fact)
        self.ring()

    def take(self, fact: Fact) -> None:
        match fact:
            case Answer():
                self._errands.answered(fact.ticket, fact.outcome)
            case Ended(outcome=refused) if refused is not None:
                cluster = self._errands.watches.pop(fact.ticket, None)
                if not self._errands.answered(fact.ticket, refused) and cluster is not None:
                    self._unwatched(cluster, refused)
            case Changed():
                cluster = self._errands.watches.get(fact.ticket)
                if cluster is not None:
                    self._changed(cluster, fact)
            case _:
                pass
        self._work()

    def _unwatched(self, cluster: str, refused: Refusal) -> None:
        """A kind that is gone took its objects along, and its steps fail; else we are blind."""
        if not isinstance(refused, NotServed):
            raise refusal_error(refused, "watching the cluster", where=self._site.place)
        self._errands.run(self._site.outlook.look_anew(cluster), lambda _: None)

    def ring(self) -> None:
        """Do what is due."""
        if self.closed:
            return
        now = self.world.now()
        self._errands.ring(now)
        self._keep(now)
        if self._alarm is not None and now >= self._alarm:
            self._inbox.append(words.Rung())
        self._work()

    @property
    def alarm(self) -> Ms | None:
        alarms = [self._alarm, self._errands.alarm, self._site.holds.flush_at]
        alarms += [keeping.heartbeat.alarm for keeping in self._site.holds.keepings.values()]
        return min((alarm for alarm in alarms if alarm is not None), default=None)

    def _keep(self, now: Ms) -> None:
        """Renew heartbeats and write journals where that is due."""
        for keeping in self._site.holds.keepings.values():
            heartbeat = keeping.heartbeat
            if heartbeat.is_due(now):
                renewed = partial(self._renewed, heartbeat, heartbeat.life)
                self._errands.run(heartbeat.renew(self.world.now), renewed)
            if heartbeat.lapses(now):
                self._let_go(heartbeat.cluster)
        for hold in self._site.holds.due(now):
            self._errands.run(hold.flush(self.world.now), lambda _: None)

    def stop(self, reason: str) -> None:
        """Begin nothing more; what is under way ends in good order."""
        if self._begun:
            self._inbox.append(words.Stopped(reason))
            self._work()
        elif not self.result:
            self._errands.withdraw()
            self._site.holds.drop_errands()
            now = self.world.now()
            self._tell(Event(now, Told.ROLLOUT_ENDED, reason="stopped", sentence=reason))
        self._party.wake()

    @property
    def unreported(self) -> dict[UnitId, str]:
        """The units whose own objects could not be told how they are, and why."""
        return self._chronicle.unreported

    def supersede(self, plan: Plan, left_out: Mapping[UnitId, str] | None = None) -> bool:
        """Go on with a newer plan. False: this rollout has ended, the plan needs one of its own.

        `left_out`: by unit of which nothing can be done, why.
        """
        if self.result:
            return False
        self._asked, self._left_out = plan, left_out or {}
        self._site.enlist(plan.units, plan.steps, digest=plan.digest)
        self._site.holds.plan(plan.digest)
        if self._begun:
            self._inbox.append(words.Superseded(None))
            self._errands.run(reopen_rollout(self._site, plan), self._opened)
            self._work()
            self._party.wake()
        return True

    def refreshed(self, unit: UnitId, trouble: str = "") -> None:
        """A unit goes on as it was planned; with a trouble, it cannot go on at all."""
        found = words.Trouble("Late", trouble, final=True) if trouble else None
        self._inbox.append(words.Refreshed(unit, found))
        self._work()
        self._party.wake()

    def _opened(self, opening: Opening) -> None:
        plan = opening.plan
        if opening.asked is not self._asked:
            if not self._begun:
                self._errands.run(open_rollout(self._site, self._asked), self._opened)
            return
        self._tell_of(Told.OBJECT_REFUSED, opening.faults)
        if self._site.settings.only_looks:
            self._end(Event(self.world.now(), Told.ROLLOUT_ENDED, reason="stopped"))
            return
        keeps_going = self._site.settings.keeps_going and not self._begun
        if not opening.faults or keeps_going:
            self._tell_of(Told.OBJECT_TAKEN, opening.taken)
            told = self._left_out.items()
            left_out = {unit: words.Trouble("LeftOut", why, final=True) for unit, why in told}
            left_out |= {step.unit: trouble for step, _, trouble in reversed(opening.faults)}
            due = opening.due
            begun = (
                words.Superseded(plan, due, left_out)
                if self._begun
                else words.Begun(plan, left_out, due, opening.under_way)
            )
            self._inbox.append(begun)
            self._inbox += (words.Approved(unit=one) for one in self._site.settings.approved)
            self._begun, self._plan = True, plan
            self._inbox += (words.Stopped(why, unit) for unit, why in self._site.holds.lost.items())
            return
        self._refuse()

    def _tell_of(self, told: Told, objects: list[Fault]) -> None:
        now = self.world.now()
        for step, ref, trouble in objects:
            origin = self._site.origin_of(step, ref)
            for field, sentence in trouble.parts or (("", trouble.sentence),):
                self._emit(
                    Event(
                        now,
                        told,
                        step.id,
                        ref,
                        trouble.reason,
                        sentence,
                        unit=step.unit,
                        cluster=step.cluster,
                        field=field,
                        where=origin,
                    )
                )

    def _refuse(self) -> None:
        """Nothing of a plan is begun of which something cannot be taken."""
        now = self.world.now()
        if self._begun:
            self._inbox.append(words.Stopped("the newer plan is refused"))
        else:
            self._end(Event(now, Told.ROLLOUT_ENDED, reason="invalid"))

    def _end(self, last: Event) -> None:
        self._emit(last)
        self.result = last.reason
        self.closed = True
        self._errands.withdraw()

    def _close(self) -> Errand[None]:
        while self._ending:
            yield Pause(Ms(self.world.now() + SETTLES))
        for unit in self._rollout.units.values():
            if unit.failed and not unit.ended:
                forget_failed(self._site, unit)
        for name, run in self._rollout.units.items():
            if not run.ended:
                yield from self._close_ledger(name, Result.STOPPED)
        yield from self._chronicle.stop(self._rollout.stopped)
        yield from self._site.holds.close()

    def _closed(self, _: None) -> None:
        self.closed = True
        self._errands.withdraw()

    def _let_go(self, cluster: str) -> None:
        """Somebody else may hold our units now: nothing of ours may be sent before we know."""
        is_of = self._site.is_of
        self._errands.withdraw_writes(lambda place, ref: place == cluster and is_of(place, ref))

    def _renewed(self, heartbeat: Heartbeat, life: int, _: None) -> None:
        if heartbeat.life != life:
            self._let_go(heartbeat.cluster)
        wished = self._site.holds.take_wishes(heartbeat)
        for unit in wished.given_up:
            self._lose(unit, told_takeover(unit))
        if self._site.holds.are_waiting:
            self._inbox += map(words.Lent, wished.lendable)

    def _lose(self, unit: UnitId, reason: str) -> None:
        self.is_overtaken = True
        if self._begun:  # before that, what was lost is told behind the beginning
            self._inbox.append(words.Stopped(reason, unit))

    def _tell_of_unit(self, told: Told, unit: UnitId, sentence: str) -> None:
        reason = HELD if told is Told.UNIT_WAITING else ""
        self._emit(Event(self.world.now(), told, reason=reason, sentence=sentence, unit=unit))

    def _changed(self, cluster: str, fact: Changed) -> None:
        approved = self._site.approvals.changed(cluster, fact)
        if approved is not None:
            self._inbox.append(words.Approved(unit=approved))
        spot = self._site.outlook.changed(cluster, fact)
        if spot is None or not self._begun or spot not in self._site.owner:
            return  # what is about to be pruned is looked at before it has a step
        self._errands.run(self._site.judge(spot, fact.live), self._inbox.append)
        if fact.change is Change.DELETED:
            self._inbox.append(words.Gone(spot, fact.live.uid))

    def _work(self) -> None:
        """Decide on everything that was heard, and do what was decided."""
        while self._inbox and not self._rollout.ended:
            decision = self._decide(self._rollout, self._inbox.popleft(), self.world.now())
            self._alarm = decision.alarm
            for command in decision.commands:
                self._deeds.do(command)
            # The end is told here: the journal must know by then which gates opened last.
            for event in decision.events:
                self._tell(event)

    def _finish_unit(self, name: UnitId, result: str) -> None:
        """Remember what is brought, so that its hooks need not run again; let go of the unit."""
        unit, hold = self._rollout.units[name], self._site.holds[name]
        if result == Result.PASSED and hold.tried:
            hold.record.finish(unit.unit.digest)
        if result == Result.FAILED:
            forget_failed(self._site, unit)
        self._ending += 1
        self._errands.run(self._leave_unit(unit.unit, hold, result), self._let_unit_go)

    def _leave_unit(self, unit: PlannedUnit, hold: UnitHold, result: str) -> Errand[None]:
        """Tell how it ended while it is still ours, and let it go.

        An approval counts until it is remembered what it was for: who is killed in between would
        have to be given another one.
        """
        yield from self._close_ledger(unit.id, result)
        yield from self._chronicle.end(unit.id, result)
        yield from hold.close(self.world.now)
        if result == Result.PASSED:
            yield from self._site.approvals.use_up(unit.id, unit.cluster)

    def _close_ledger(self, name: UnitId, result: str) -> Errand[None]:
        """Enter how the unit ended, where it keeps a ledger and is ours."""
        run, now = self._rollout.units[name], self.world.now()
        if not self._site.holds.has(name):
            return
        sentence = self._failures.get(name) or run.stopped or self._rollout.stopped
        ended = EntryEnd(result == Result.PASSED, sentence, run.hook_runs(now))
        rescued = EntryEnd(run.is_rescued, sentence, run.hook_runs(now, rescues=True))
        trouble = yield from self._site.ledgers.end(name, ended, rescued, now)
        if trouble is not None:
            self._chronicle.unreported[name] = f"its ledger is not closed: {trouble.sentence}"

    def _let_unit_go(self, _: None) -> None:
        self._ending -= 1

    def _tell(self, event: Event) -> None:
        self._emit(event)
        self._chronicle.hear(event)
        steps = self._site.steps
        match event.told:
            case Told.OBJECT_PRUNED if event.ref is not None:
                forget_object(self._site, steps[event.step], event.ref)
            case Told.RETRY_PLANNED if self._rollout.steps[event.step].rules.retry.whole:
                forget_hooks(self._site, self._site.steps_of(steps[event.step].unit))
            case Told.STEP_FAILED if event.unit is not None:
                self._failures.setdefault(event.unit, event.sentence or event.reason)
            case Told.UNIT_ENDED if event.unit is not None:
                self._finish_unit(event.unit, event.reason)
            case Told.ROLLOUT_ENDED:
                self.result = event.reason
                self._errands.run(self._close(), self._closed)
            case _:
                pass


async def drive(driver: Driver, *, until: Ms | None = None) -> str:
    """Run a rollout to its end, or to a moment; how it ended, in a word.

    Others of the same world go on beside it, each in a task of its own.
    """
    driver.open()
    while not driver.closed:
        await driver.turn(until)
        if until is not None and driver.world.now() >= until:
            until = None
            driver.is_late = not driver.result
            driver.stop("its time is up")
    return driver.result
