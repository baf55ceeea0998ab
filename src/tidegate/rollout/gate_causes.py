"""Causes of waiting gates: why the pods of an object do not run, in one sentence.

A verdict shows that a Deployment has 0 of 3 replicas. The reason is in its pods and their
Events. An observer queries them during the rollout, and no gate waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from msgspec.structs import replace

from tidegate.errors import ClusterError
from tidegate.model.k8s.objects import ClusterRef, Ref
from tidegate.model.rollouts.causes import find_cause
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.rollouts.rollout_progress import RolloutProgress, StepProgress
from tidegate.model.times import SECOND, Ms
from tidegate.rollout.diagnosis import DiagnosisContext, collect_evidence
from tidegate.rollout.observers import BackgroundObserver
from tidegate.world.dispatcher import Dispatcher

MIN_INTERVAL, MAX_INTERVAL = Ms(2 * SECOND), Ms(5 * SECOND)
"""Delays between queries: short at first, and longer for a long wait."""
MAX_OBJECTS = 3
"""Objects per query round: as many as are displayed."""


class GateExplainer(BackgroundObserver):
    """Queries objects that gates wait for, and emits an event when the cause changes."""

    def __init__(
        self,
        world: Dispatcher,
        progress: RolloutProgress,
        context: Callable[[], DiagnosisContext],
        emit: Callable[[Event], None],
    ) -> None:
        super().__init__(world)
        self._progress = progress
        self._context = context
        self._emit = emit
        self._causes: dict[tuple[str, Ref], str] = {}

    def on_event(self, event: Event) -> None:
        """Wake up when a gate starts to wait."""
        if event.type is EventType.GATE_WAITING:
            self.client.wake()

    async def run(self) -> None:
        while not self.is_stopped:
            queried = [*islice(self._waiting(), MAX_OBJECTS)]
            for step, ref in queried:
                await self._explain(step, ref)
            if not self.is_stopped:
                await self.client.wait(self._next_query(queried))

    def _waiting(self) -> list[tuple[StepProgress, Ref]]:
        """Return the objects that wait for at least MIN_INTERVAL, the longest first."""
        since = self.world.now() - MIN_INTERVAL
        waits = [
            (wait.since, step, wait.ref)
            for step in self._progress.active.values()
            for wait in step.waits.values()
            if wait.since <= since
        ]
        return [(step, ref) for _, step, ref in sorted(waits, key=lambda entry: entry[0])]

    def _next_query(self, queried: list[tuple[StepProgress, Ref]]) -> Ms | None:
        """Return when to query again; None if nothing waits: the next waiting gate wakes us."""
        now = self.world.now()
        waits = [
            wait.since for step in self._progress.active.values() for wait in step.waits.values()
        ]
        if not waits:
            return None
        if not queried:
            return Ms(min(waits) + MIN_INTERVAL)
        return Ms(now + min(MAX_INTERVAL, max(MIN_INTERVAL, (now - min(waits)) // 10)))

    async def _explain(self, step: StepProgress, ref: Ref) -> None:
        cluster_ref = ClusterRef(step.cluster, ref)
        if self.is_stopped or ref not in step.waits:
            return
        try:
            (evidence,) = await collect_evidence(self.world, [cluster_ref], self._context())
        except ClusterError:
            return  # the rollout reports it if it matters
        cause, key = find_cause(evidence), (step.id, ref)
        if cause == self._causes.get(key, "") or ref not in step.waits:
            return
        self._causes[key] = cause
        now = self.world.now()
        event = Event(now, EventType.GATE_EXPLAINED, step.id, ref, message=cause)
        self._emit(replace(event, unit=step.unit_id, cluster=step.cluster))
