"""A rollout without a cluster: a test says what is heard and when, and sees what was decided."""

from __future__ import annotations

from tidegate.engine.decide import decide
from tidegate.engine.turns.rollout import Rollout
from tidegate.engine.vocabulary import (
    Apply,
    Begun,
    Checked,
    CheckStep,
    Command,
    Expanded,
    Gone,
    Input,
    Journaled,
    Judged,
    LookAgain,
    Looked,
    Remember,
    Rung,
    Stand,
    Standing,
    Stopped,
    Superseded,
    Take,
    Taken,
    Trouble,
    Written,
    Wrote,
)
from tidegate.model.event import Event, StepState, Told
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Spot
from tidegate.model.plan import Fragment, Plan
from tidegate.model.semantics import TIDEGATE, Semantics
from tidegate.model.unit import UnitId
from tidegate.model.verdict import Health, Verdict
from tidegate.testing.rollouts import PolicyChanges, governed

START = Ms(1_000_000)


class Play:
    """Checks and writes are answered at once, as in an empty cluster; verdicts are the test's.

    `refusals`: how often writes of an object are refused, by its name. `slow`: objects whose
    writes the test answers itself.
    """

    def __init__(  # noqa: PLR0913 - what a test may want to say
        self,
        plan: Plan,
        semantics: Semantics = TIDEGATE,
        *,
        carries_on: bool = False,
        refusals: dict[str, int] | None = None,
        slow: tuple[str, ...] = (),
        left_out: dict[UnitId, Trouble] | None = None,
        due: tuple[UnitId, ...] = (),
        under_way: tuple[UnitId, ...] = (),
    ) -> None:
        self.now = START
        self.events: list[Event] = []
        self.commands: list[Command] = []
        self.alarm: Ms | None = None
        self.rollout = Rollout()
        self._changes: PolicyChanges = {"semantics": semantics, "carries_on": carries_on}
        self._refusals = refusals or {}
        self._slow = slow
        self._versions = 0
        self._written: dict[str, Written] = {}
        self._spots = spots_of(plan)
        self.hear(Begun(governed(plan, **self._changes), left_out or {}, due, under_way))

    def hear(self, heard: Input) -> None:
        inbox = [heard]
        while inbox:
            decision = decide(self.rollout, inbox.pop(0), self.now)
            self.alarm = decision.alarm
            self.events += decision.events
            self.commands += decision.commands
            inbox += [one for command in decision.commands for one in self._answers(command)]

    def wait(self, seconds: float) -> None:
        """Let time pass; every alarm on the way rings."""
        until = Ms(self.now + round(seconds * SECOND))
        while self.alarm is not None and self.alarm <= until:
            self.now = max(self.now, self.alarm)
            self.hear(Rung())
        self.now = until

    def judge(
        self, name: str, health: Health, *, final: bool = False, checked: bool = True
    ) -> None:
        """A verdict that speaks of what was written."""
        written = self._written[name]
        self._versions += 1
        verdict = Verdict(
            health, health.value, f"it is {health}", final, checked=checked, speaks_of=1
        )
        self.hear(
            Judged(self._spots[name], written.uid, 1, str(self._versions), verdict, health.value)
        )

    def lose(self, name: str) -> None:
        """Somebody deletes an object."""
        self.hear(Gone(self._spots[name], self._written.pop(name).uid))

    def wrote(self, name: str, trouble: str = "") -> None:
        """Answer a slow write."""
        step = self._step_of(name)
        outcome = Trouble(trouble, f"it is {trouble}") if trouble else self._write(name)
        self.hear(Wrote(step, self._spots[name], outcome))

    def supersede(self, plan: Plan) -> None:
        self._spots |= spots_of(plan)
        self.hear(Superseded(governed(plan, **self._changes)))

    def expand(self, step: str, plan: Plan) -> None:
        """A step yields everything that is in a plan."""
        self._spots |= spots_of(plan)
        plan = governed(plan, **self._changes)
        fragment = Fragment(units=plan.units, steps=plan.steps, edges=plan.edges)
        self.hear(Expanded(step, fragment))

    def stop(self) -> None:
        self.hear(Stopped("enough"))

    @property
    def states(self) -> dict[str, StepState]:
        return {name: run.state for name, run in self.rollout.steps.items()}

    def moments(self, *kinds: Told) -> list[tuple[float, str, str]]:
        """When these were told, in seconds since the beginning, of which step."""
        told = [event for event in self.events if event.told in kinds]
        return [((one.at - START) / SECOND, one.told.value, one.step) for one in told]

    def starts(self, step: str) -> list[float]:
        """When a step began, each time."""
        return [at for at, _, name in self.moments(Told.STEP_CHECKING) if name == step]

    def _answers(self, command: Command) -> list[Input]:
        match command:
            case CheckStep():
                return [Checked(command.step, self._standings(command.step))]
            case Apply(spot=spot) if spot.ref.name not in self._slow:
                return [Wrote(command.step, spot, self._outcome(spot.ref.name))]
            case Remember(hooks=hooks) if hooks:
                return [Journaled(command.step)]
            case LookAgain():
                return [Looked(command.step)]
            case Take():
                return [Taken(command.unit)]
            case _:
                return []

    def _standings(self, name: str) -> tuple[Standing, ...]:
        step = self.rollout.steps[name].step
        items = (item for batch in step.batches for item in batch)
        return tuple(self._standing(item.ref.name) for item in items)

    def _standing(self, name: str) -> Standing:
        known = self._written.get(name)
        return Standing(self._spots[name], Stand.SAME if known else Stand.ABSENT, known)

    def _outcome(self, name: str) -> Written | Trouble:
        if self._refusals.get(name, 0):
            self._refusals[name] -= 1
            return Trouble("Busy", "the server is busy")
        return self._write(name)

    def _write(self, name: str) -> Written:
        self._versions += 1
        uid = f"{name}-{self._versions}"
        self._written[name] = Written(uid, 1, str(self._versions), changed=True)
        return self._written[name]

    def _step_of(self, name: str) -> str:
        steps = self.rollout.steps.values()
        return next(one.step.id for one in steps for run in one.items if run.item.ref.name == name)


def spots_of(plan: Plan) -> dict[str, Spot]:
    items = ((step, item) for step in plan.steps for batch in step.batches for item in batch)
    return {item.ref.name: Spot(step.cluster, item.ref) for step, item in items}
