"""Why gates wait, found out while they do: what keeps their pods from running, in a sentence each.

A verdict says that a Deployment has 0 of 3 replicas. Why that is so stands in its pods and in
Events about them. It is asked beside the rollout, as any other question is, and no gate waits for
the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from msgspec.structs import replace

from tidegate.errors import ClusterError
from tidegate.flows.beside import Beside
from tidegate.flows.evidence import Background, collect_evidence
from tidegate.model.event import Event, Told
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Ref, Spot
from tidegate.report.rollout.causes import cause_of
from tidegate.report.rollout.course import Course, StepCourse
from tidegate.world.exchange import Exchange

SOONEST, LATEST = Ms(2 * SECOND), Ms(5 * SECOND)
"""How often it is asked: often at first, and less so of what waits for long."""
MOST_ASKED = 3
"""How many objects at a time: so many are shown."""


class Causes(Beside):
    """Asks about objects that gates wait for, and tells when there is something new."""

    def __init__(
        self,
        world: Exchange,
        course: Course,
        background: Callable[[], Background],
        tell: Callable[[Event], None],
    ) -> None:
        super().__init__(world)
        self._course = course
        self._background = background
        self._tell = tell
        self._known: dict[tuple[str, Ref], str] = {}

    def hear(self, event: Event) -> None:
        """Something may wait from now on."""
        if event.told is Told.GATE_WAITING:
            self.party.wake()

    async def go_on(self) -> None:
        while not self.is_over:
            asked = [*islice(self._waiting(), MOST_ASKED)]
            for step, ref in asked:
                await self._explain(step, ref)
            if not self.is_over:
                await self.party.wait(self._next(asked))

    def _waiting(self) -> list[tuple[StepCourse, Ref]]:
        """Whatever waits for long enough that somebody may wonder, the longest first."""
        since = self.world.now() - SOONEST
        found = [
            (wait.since, step, wait.ref)
            for step in self._course.active.values()
            for wait in step.waits.values()
            if wait.since <= since
        ]
        return [(step, ref) for _, step, ref in sorted(found, key=lambda one: one[0])]

    def _next(self, asked: list[tuple[StepCourse, Ref]]) -> Ms | None:
        """When to ask again; where nothing waits, whoever hears of a wait wakes us."""
        now = self.world.now()
        waits = [
            wait.since for step in self._course.active.values() for wait in step.waits.values()
        ]
        if not waits:
            return None
        if not asked:
            return Ms(min(waits) + SOONEST)
        return Ms(now + min(LATEST, max(SOONEST, (now - min(waits)) // 10)))

    async def _explain(self, step: StepCourse, ref: Ref) -> None:
        spot = Spot(step.cluster, ref)
        if self.is_over or ref not in step.waits:
            return
        try:
            (found,) = await collect_evidence(self.world, [spot], self._background())
        except ClusterError:
            return  # the rollout will say so, if it matters
        cause, key = cause_of(found), (step.id, ref)
        if cause == self._known.get(key, "") or ref not in step.waits:
            return
        self._known[key] = cause
        now = self.world.now()
        event = Event(now, Told.GATE_EXPLAINED, step.id, ref, sentence=cause)
        self._tell(replace(event, unit=step.owner, cluster=step.cluster))
