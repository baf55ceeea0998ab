"""Order of steps as the run record shows it: when they started and passed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from tidegate.model.plans.plan import ItemAction
from tidegate.model.plans.verification import PairState
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.rollouts.run import RunHead, RunStep
from tidegate.model.times import Ms

SKIPPABLE_ACTIONS = frozenset({ItemAction.CREATE, ItemAction.SKIP, ItemAction.IGNORE})


class StepTimes(msgspec.Struct, frozen=True):
    """When steps started first and passed last."""

    started_at: Mapping[str, Ms]
    passed_at: Mapping[str, Ms]
    early_starts: Mapping[tuple[str, str], Ms]
    """Pairs of steps whose second step started before the first one had passed, and when."""

    def pair_state(self, before: str, after: str) -> PairState:
        if (before, after) in self.early_starts:
            return PairState.VIOLATED
        return PairState.RESPECTED if after in self.started_at else PairState.IDLE


def read_step_times(head: RunHead, events: Iterable[Event]) -> StepTimes:
    """Return the step times of a rollout by its events. A step that restarts has not passed."""
    events = tuple(events)
    tracker = _StepTracker(head, {event.step for event in events})
    for event in events:
        if event.type is EventType.STEP_APPLYING:
            tracker.start_step(event.step, event.at)
        elif event.type in {EventType.STEP_PASSED, EventType.STEP_SETTLED}:
            tracker.passed_at[event.step] = event.at
    passed_at = {
        step.id: at for step in head.steps if (at := tracker.passing_time(step.id)) is not None
    }
    return StepTimes(tracker.started_at, passed_at, tracker.early_starts)


class _StepTracker:
    """Progress of a rollout by its events.

    A placeholder has no events and passes when all its predecessors have passed. A step counts as
    one if its objects existed already and need nothing else.
    """

    def __init__(self, head: RunHead, steps_with_events: set[str]) -> None:
        self.started_at: dict[str, Ms] = {}
        self.passed_at: dict[str, Ms] = {}
        self.early_starts: dict[tuple[str, str], Ms] = {}
        out_of_sync_only = {unit.id for unit in head.units if unit.out_of_sync_only}
        self._placeholders = {
            step.id
            for step in head.steps
            if step.id not in steps_with_events
            and can_be_skipped(step, out_of_sync_only=step.unit in out_of_sync_only)
        }
        self._placeholder_times: dict[str, Ms] = {}
        self._predecessors: dict[str, list[str]] = {}
        for edge in head.edges:
            self._predecessors.setdefault(edge.after, []).append(edge.before)

    def start_step(self, step: str, at: Ms) -> None:
        self.started_at.setdefault(step, at)
        if self.passed_at.pop(step, None) is not None:
            self._placeholder_times.clear()
        for predecessor in self._predecessors.get(step, ()):
            if self.passing_time(predecessor) is None:
                self.early_starts.setdefault((predecessor, step), at)

    def passing_time(self, step: str) -> Ms | None:
        """Return when a step passed, or None. Resolves predecessors of placeholders first."""
        pending = [step]
        while pending:
            current = pending[-1]
            unresolved = self._unresolved(current)
            if unresolved:
                pending += unresolved
                continue
            pending.pop()
            if current in self._placeholders and current not in self._placeholder_times:
                times = [
                    self._known_time(predecessor)
                    for predecessor in self._predecessors.get(current, ())
                ]
                if None in times:
                    return None
                self._placeholder_times[current] = max(
                    (at for at in times if at is not None), default=Ms(0)
                )
        return self._known_time(step)

    def _unresolved(self, step: str) -> list[str]:
        """Return the unresolved placeholders before a placeholder."""
        if step not in self._placeholders or step in self._placeholder_times:
            return []
        predecessors = self._predecessors.get(step, ())
        return [
            predecessor
            for predecessor in predecessors
            if predecessor in self._placeholders and predecessor not in self._placeholder_times
        ]

    def _known_time(self, step: str) -> Ms | None:
        return (
            self._placeholder_times.get(step)
            if step in self._placeholders
            else self.passed_at.get(step)
        )


def can_be_skipped(step: RunStep, *, out_of_sync_only: bool) -> bool:
    """Return whether a step may have nothing to do, because its objects need not be written."""
    skippable = {*SKIPPABLE_ACTIONS, ItemAction.APPLY} if out_of_sync_only else SKIPPABLE_ACTIONS
    return all(
        run_object.action in skippable and not run_object.is_hook for run_object in step.objects
    )
