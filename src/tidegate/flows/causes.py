"""Why gates wait, found out while they do: what keeps their pods from running, in a sentence each.

A verdict says that a Deployment has 0 of 3 replicas. Why that is so stands in its pods and in
Events about them. It is asked beside the rollout, as any other question is, and no gate waits for
the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import islice

from tidegate.errors import ClusterError
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


class Causes:
    """Asks about objects that gates wait for, and tells when there is something new."""

    def __init__(
        self,
        world: Exchange,
        course: Course,
        background: Callable[[], Background],
        tell: Callable[[Event], None],
    ) -> None:
        self._world = world
        self._course = course
        self._background = background
        self._tell = tell
        self._party = world.party()
        self._known: dict[tuple[str, Ref], str] = {}
        self._is_over = False

    async def beside(self, story: Awaitable[str]) -> str:
        """What comes of a rollout, and as long as it goes on, what its gates wait for."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._ask_on())
                came = await story
                self._is_over = True
                self._party.wake()
        except BaseExceptionGroup as errors:
            if len(errors.exceptions) == 1:
                raise errors.exceptions[0] from None
            raise
        return came

    def hear(self, event: Event) -> None:
        """Something may wait from now on."""
        if event.told is Told.GATE_WAITING:
            self._party.wake()

    async def _ask_on(self) -> None:
        while not self._is_over:
            asked = [*islice(self._waiting(), MOST_ASKED)]
            for step, ref in asked:
                await self._explain(step, ref)
            if not self._is_over:
                await self._party.wait(self._next(asked))

    def _waiting(self) -> list[tuple[StepCourse, Ref]]:
        """Whatever waits for long enough that somebody may wonder, the longest first."""
        since = self._world.now() - SOONEST
        found = [
            (wait.since, step, wait.ref)
            for step in self._course.active.values()
            for wait in step.waits.values()
            if wait.since <= since
        ]
        return [(step, ref) for _, step, ref in sorted(found, key=lambda one: one[0])]

    def _next(self, asked: list[tuple[StepCourse, Ref]]) -> Ms | None:
        """When to ask again; where nothing waits, whoever hears of a wait wakes us."""
        now = self._world.now()
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
        if self._is_over or ref not in step.waits:
            return
        try:
            (found,) = await collect_evidence(self._world, [spot], self._background())
        except ClusterError:
            return  # the rollout will say so, if it matters
        cause, key = cause_of(found), (step.id, ref)
        if cause == self._known.get(key, "") or ref not in step.waits:
            return
        self._known[key] = cause
        now = self._world.now()
        told = Told.GATE_EXPLAINED
        self._tell(Event(now, told, step.id, ref, sentence=cause, cluster=step.cluster))
