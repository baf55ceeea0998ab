"""A rollout without a cluster: a test provides inputs and times, and reads the decisions."""

from __future__ import annotations

from tests.support.rollout_runs import PolicyChanges, with_policy
from tidegate.engine.decide import decide
from tidegate.engine.messages import (
    AcquireLease,
    Apply,
    Command,
    ComparedObject,
    CompareResult,
    CompareStep,
    Failure,
    HealthChanged,
    Input,
    JournalSaved,
    LeaseAcquired,
    ObjectDeleted,
    PlanSuperseded,
    ReadStatus,
    RolloutStarted,
    SaveJournal,
    StatusRead,
    StepCompared,
    StepExpanded,
    StopRequested,
    TimerElapsed,
    WriteFinished,
    WrittenObject,
)
from tidegate.engine.state.rollout import Rollout
from tidegate.model.k8s.objects import ClusterRef
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.plans.plan import Plan, PlanFragment
from tidegate.model.rollouts.event import Event, EventType, StepState
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.semantics import TIDEGATE, Semantics
from tidegate.model.units.unit import UnitId

START = Ms(1_000_000)


class DecisionRun:
    """Checks and writes are answered at once, as in an empty cluster; verdicts are the test's.

    `refusals`: how often writes of an object are refused, by its name. `slow`: objects whose
    writes the test answers itself.
    """

    def __init__(
        self,
        plan: Plan,
        semantics: Semantics = TIDEGATE,
        *,
        carries_on: bool = False,
        refusals: dict[str, int] | None = None,
        slow: tuple[str, ...] = (),
        left_out: dict[UnitId, Failure] | None = None,
        due: tuple[UnitId, ...] = (),
        under_way: tuple[UnitId, ...] = (),
    ) -> None:
        self.now = START
        self.events: list[Event] = []
        self.commands: list[Command] = []
        self.alarm: Ms | None = None
        self.rollout = Rollout()
        self._changes: PolicyChanges = {"semantics": semantics, "continue_on_failure": carries_on}
        self._refusals = refusals or {}
        self._slow = slow
        self._versions = 0
        self._written: dict[str, WrittenObject] = {}
        self._spots = spots_of(plan)
        self.receive(
            RolloutStarted(with_policy(plan, **self._changes), left_out or {}, due, under_way)
        )

    def receive(self, message: Input) -> None:
        inbox = [message]
        while inbox:
            decision = decide(self.rollout, inbox.pop(0), self.now)
            self.alarm = decision.wake_at
            self.events += decision.events
            self.commands += decision.commands
            inbox += [answer for command in decision.commands for answer in self._answers(command)]

    def wait(self, seconds: float) -> None:
        """Let time pass; every alarm on the way rings."""
        until = Ms(self.now + round(seconds * SECOND))
        while self.alarm is not None and self.alarm <= until:
            self.now = max(self.now, self.alarm)
            self.receive(TimerElapsed())
        self.now = until

    def judge(
        self, name: str, health: Health, *, final: bool = False, checked: bool = True
    ) -> None:
        """A verdict that speaks of what was written."""
        written = self._written[name]
        self._versions += 1
        verdict = Verdict(
            health,
            health.value,
            f"it is {health}",
            final,
            is_checked=checked,
            observed_generation=1,
        )
        self.receive(
            HealthChanged(
                self._spots[name], written.uid, 1, str(self._versions), verdict, health.value
            )
        )

    def lose(self, name: str) -> None:
        """Another client deletes an object."""
        self.receive(ObjectDeleted(self._spots[name], self._written.pop(name).uid))

    def wrote(self, name: str, trouble: str = "") -> None:
        """Answer a slow write."""
        step = self._step_of(name)
        outcome = Failure(trouble, f"it is {trouble}") if trouble else self._write(name)
        self.receive(WriteFinished(step, self._spots[name], outcome))

    def supersede(self, plan: Plan) -> None:
        self._spots |= spots_of(plan)
        self.receive(PlanSuperseded(with_policy(plan, **self._changes)))

    def expand(self, step: str, plan: Plan) -> None:
        """A step yields everything that is in a plan."""
        self._spots |= spots_of(plan)
        plan = with_policy(plan, **self._changes)
        fragment = PlanFragment(units=plan.units, steps=plan.steps, edges=plan.edges)
        self.receive(StepExpanded(step, fragment))

    def stop(self) -> None:
        self.receive(StopRequested("enough"))

    @property
    def states(self) -> dict[str, StepState]:
        return {name: run.state for name, run in self.rollout.steps.items()}

    def moments(self, *kinds: EventType) -> list[tuple[float, str, str]]:
        """The times of these events, in seconds since the start, with their steps."""
        messages = [event for event in self.events if event.type in kinds]
        return [((item.at - START) / SECOND, item.type.value, item.step) for item in messages]

    def starts(self, step: str) -> list[float]:
        """When a step began, each time."""
        return [at for at, _, name in self.moments(EventType.STEP_CHECKING) if name == step]

    def _answers(self, command: Command) -> list[Input]:
        match command:
            case CompareStep():
                return [StepCompared(command.step, self._standings(command.step))]
            case Apply(object_ref=object_ref) if object_ref.ref.name not in self._slow:
                return [WriteFinished(command.step, object_ref, self._outcome(object_ref.ref.name))]
            case SaveJournal(hooks=hooks) if hooks:
                return [JournalSaved(command.step)]
            case ReadStatus():
                return [StatusRead(command.step)]
            case AcquireLease():
                return [LeaseAcquired(command.unit)]
            case _:
                return []

    def _standings(self, name: str) -> tuple[ComparedObject, ...]:
        step = self.rollout.steps[name].step
        items = (item for batch in step.batches for item in batch)
        return tuple(self._standing(item.ref.name) for item in items)

    def _standing(self, name: str) -> ComparedObject:
        known = self._written.get(name)
        return ComparedObject(
            self._spots[name], CompareResult.IN_SYNC if known else CompareResult.ABSENT, known
        )

    def _outcome(self, name: str) -> WrittenObject | Failure:
        if self._refusals.get(name, 0):
            self._refusals[name] -= 1
            return Failure("Busy", "the server is busy")
        return self._write(name)

    def _write(self, name: str) -> WrittenObject:
        self._versions += 1
        uid = f"{name}-{self._versions}"
        self._written[name] = WrittenObject(uid, 1, str(self._versions), changed=True)
        return self._written[name]

    def _step_of(self, name: str) -> str:
        steps = self.rollout.steps.values()
        return next(
            step.step.id for step in steps for run in step.items if run.item.ref.name == name
        )


def spots_of(plan: Plan) -> dict[str, ClusterRef]:
    items = ((step, item) for step in plan.steps for batch in step.batches for item in batch)
    return {item.ref.name: ClusterRef(step.cluster, item.ref) for step, item in items}
