"""The loop: facts in, decisions made, commands out, until all is at rest."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from tidegate.engine.decide import decide
from tidegate.engine.deeds import Deeds
from tidegate.engine.forgetting import forget_failed, forget_hooks, forget_object
from tidegate.engine.heartbeat import Heartbeat
from tidegate.engine.hold import Hold
from tidegate.engine.means import Means
from tidegate.engine.opening import Opening, open_rollout, reopen_rollout
from tidegate.engine.reach.errands import Errand, Errands, together
from tidegate.engine.site import Settings, Site
from tidegate.engine.turns.rollout import Rollout
from tidegate.engine.vocabulary import (
    Begun,
    Decision,
    Due,
    Gone,
    Input,
    Stopped,
    Superseded,
)
from tidegate.model.event import Event, StepState, Told
from tidegate.model.moment import Ms
from tidegate.model.plan import Plan
from tidegate.world.facts import Answer, Change, Changed, Ended, Fact
from tidegate.world.protocol import World
from tidegate.world.refusals import refusal_error

HELD = "Held"
Decide: TypeAlias = Callable[[Rollout, Input, Ms], Decision]


class Driver:
    """One rollout on its way. Hand it facts, ring it when its alarm comes."""

    def __init__(
        self,
        world: World,
        plan: Plan,
        means: Means,
        settings: Settings,
        emit: Callable[[Event], None],
        decide: Decide = decide,
    ) -> None:
        self.closed = False
        self.result = ""
        self._decide = decide
        self.world = world
        self._plan = self._asked = plan
        self._emit = emit
        self._site = Site(world, means, settings, self._tell_of_unit)
        until = self._site.may_write_until
        self._errands = Errands(world, first=settings.first_ticket, until=until)
        self._rollout = Rollout(settings.semantics, settings.carries_on, settings.consents)
        self._inbox: deque[Input] = deque()
        self._deeds = Deeds(self._site, self._errands, self._inbox.append)
        self._alarm: Ms | None = None
        self._flush_at: Ms | None = None
        self._begun = False
        self._site.enlist(plan.units, plan.steps, digest=plan.digest)

    def open(self) -> None:
        self._errands.run(open_rollout(self._site, self._plan), self._opened)
        self._work()

    def take(self, fact: Fact) -> None:
        match fact:
            case Answer():
                self._errands.answered(fact.ticket, fact.outcome)
            case Ended(outcome=refused) if refused is not None:
                watched = self._errands.watches.pop(fact.ticket, None) is not None
                if not self._errands.answered(fact.ticket, refused) and watched:
                    raise refusal_error(refused, "watching the cluster", where=self._site.place)
            case Changed():
                cluster = self._errands.watches.get(fact.ticket)
                if cluster is not None:
                    self._changed(cluster, fact)
            case _:
                pass
        self._work()

    def ring(self) -> None:
        """Do what is due."""
        if self.closed:
            return
        now = self.world.now()
        self._errands.ring(now)
        self._keep(now)
        if self._alarm is not None and now >= self._alarm:
            self._inbox.append(Due())
        self._work()

    @property
    def alarm(self) -> Ms | None:
        alarms = [self._alarm, self._errands.alarm, self._flush_at]
        alarms += [keeping.heartbeat.alarm for keeping in self._site.keepings.values()]
        return min((alarm for alarm in alarms if alarm is not None), default=None)

    def _keep(self, now: Ms) -> None:
        """Renew heartbeats and write journals where that is due."""
        for keeping in self._site.keepings.values():
            heartbeat = keeping.heartbeat
            if heartbeat.is_due(now):
                renewed = partial(self._renewed, heartbeat, heartbeat.life)
                self._errands.run(heartbeat.renew(self.world.now), renewed)
            if heartbeat.lapses(now):
                self._let_go(heartbeat.cluster)
        if self._flush_at is not None and now >= self._flush_at:
            units, self._flush_at = list(self._site.dirty), None
            self._site.dirty.clear()
            for unit in units:
                self._errands.run(self._site.holds[unit].flush(self.world.now), lambda _: None)

    def stop(self, reason: str) -> None:
        """Begin nothing more; what is under way ends in good order."""
        if self._begun:
            self._inbox.append(Stopped(reason))
            self._work()
        elif not self.result:
            self._errands.withdraw()
            self._site.drop_errands()
            now = self.world.now()
            self._tell(Event(now, Told.ROLLOUT_ENDED, reason="stopped", sentence=reason))

    def supersede(self, plan: Plan) -> bool:
        """Go on with a newer plan. False: this rollout has ended, the plan needs one of its own."""
        if self.result:
            return False
        self._asked = plan
        self._site.enlist(plan.units, plan.steps, digest=plan.digest)
        for hold in self._site.holds.values():
            hold.plan = plan.digest
        if self._begun:
            self._inbox.append(Superseded(None))
            self._errands.run(reopen_rollout(self._site, plan), self._opened)
            self._work()
        return True

    def _opened(self, opening: Opening) -> None:
        plan = opening.plan
        if opening.asked is not self._asked:
            if not self._begun:
                self._errands.run(open_rollout(self._site, self._asked), self._opened)
            return
        if not opening.faults:
            self._inbox.append(Superseded(plan) if self._begun else Begun(plan))
            self._begun, self._plan = True, plan
            return
        self._refuse(opening)

    def _refuse(self, opening: Opening) -> None:
        """Nothing of a plan is begun of which something cannot be taken."""
        now = self.world.now()
        for step, ref, trouble in opening.faults:
            told = Told.OBJECT_REFUSED
            self._emit(Event(now, told, step.id, ref, trouble.reason, trouble.sentence))
        if self._begun:
            self._inbox.append(Stopped("the newer plan is refused"))
        else:
            self._end(Event(now, Told.ROLLOUT_ENDED, reason="invalid"))

    def _end(self, last: Event) -> None:
        self._emit(last)
        self.result = last.reason
        self.closed = True
        self._errands.withdraw()

    def _close(self) -> Errand[None]:
        """Let go of all units, then of our name: whatever still bears it is free."""
        now, tried = self.world.now, [hold for hold in self._site.holds.values() if hold.tried]
        yield from together(hold.close(now) for hold in tried)
        used = [one.heartbeat for one in self._site.keepings.values() if one.heartbeat.is_used]
        yield from together(heartbeat.end(now) for heartbeat in used)

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
        for hold in self._site.take_wishes(heartbeat):
            self._asked_to_go(hold)

    def _asked_to_go(self, hold: Hold) -> None:
        self.stop(f"another rollout of `{hold.record.unit}` takes over")

    def _tell_of_unit(self, told: Told, unit: str, sentence: str) -> None:
        reason = HELD if told is Told.UNIT_WAITING else ""
        self._emit(Event(self.world.now(), told, reason=reason, sentence=sentence, unit=unit))

    def _changed(self, cluster: str, fact: Changed) -> None:
        spot = self._site.outlook.changed(cluster, fact)
        if spot is None or not self._begun:
            return
        self._errands.run(self._site.judge(spot, fact.live), self._inbox.append)
        if fact.change is Change.DELETED:
            self._inbox.append(Gone(spot, fact.live.uid))

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
        if self._site.dirty and self._flush_at is None:
            self._flush_at = Ms(self.world.now() + self._site.flushes)

    def _finish_units(self) -> None:
        """Remember which units are brought, so that their hooks need not run again."""
        runs = [one for one in self._rollout.steps.values() if not one.step.rescues]
        left = {one.step.unit for one in runs if one.state is not StepState.PASSED}
        for unit in self._plan.units:
            hold = self._site.holds[unit.name]
            if hold.tried and unit.name not in left:
                hold.record.finish(unit.digest)

    def _tell(self, event: Event) -> None:
        self._emit(event)
        steps = self._site.steps
        if event.told is Told.OBJECT_PRUNED and event.ref is not None:
            forget_object(self._site, steps[event.step], event.ref)
        elif event.told is Told.RETRY_PLANNED and self._rollout.semantics.retry.whole:
            unit = steps[event.step].unit
            forget_hooks(self._site, (one for one in steps.values() if one.unit == unit))
        elif event.told is Told.ROLLOUT_ENDED:
            self.result = event.reason
            if self._begun:
                self._finish_units()
                forget_failed(self._site, self._rollout)
            self._errands.run(self._close(), self._closed)


async def drive(driver: Driver, *, until: Ms | None = None) -> str:
    """Run a rollout to its end, or to a moment; how it ended, in a word."""
    world = driver.world
    driver.open()
    while not driver.closed:
        alarms = [alarm for alarm in (driver.alarm, until) if alarm is not None]
        for fact in await world.wait(min(alarms, default=None)):
            driver.take(fact)
        driver.ring()
        if until is not None and world.now() >= until:
            until = None
            driver.stop("its time is up")
    return driver.result
