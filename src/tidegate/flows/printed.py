"""What the pods of hooks and Jobs print, told while they run.

It is read again and again beside the rollout, whole: what was told already is left out. Where the
rollout deletes a hook as soon as it is done, its last lines may go with it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tidegate.flows.beside import Beside
from tidegate.flows.lacks import PATIENCE, POD
from tidegate.model.event import Event, Told
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Kind, Live, Ref
from tidegate.model.reading import mappings, number, text
from tidegate.model.unit import UnitId
from tidegate.report.rollout.course import Course
from tidegate.world.ask import ask
from tidegate.world.calls import List, Logs, Selection
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Invalid, Listed, Missing, Outcome, Said, is_refusal

OFTEN = Ms(SECOND)
JOB = Kind("batch", "v1", "Job")
OWNER = "batch.kubernetes.io/job-name"
MOST_PODS = 50
LONGEST = 4_000
"""Characters of a line; who prints longer ones prints no lines."""
ENDS = frozenset({Told.HOOK_FINISHED, Told.OBJECT_READY, Told.STEP_FAILED})

Body = dict[str, Json]


class _PodRun(msgspec.Struct, frozen=True):
    """Something that runs: the step that waits for it, and where it lives."""

    step: str
    ref: Ref
    cluster: str
    unit: UnitId | None


class _LogPage(msgspec.Struct):
    """How much of a container's log is told: so many lines of its run of this number."""

    run: int = 0
    told: int = 0

    def turn(self, outcome: Outcome) -> list[str]:
        """The lines that are new."""
        if not isinstance(outcome, Said):
            return []
        lines = outcome.body.decode(errors="replace").splitlines()
        new, self.told = lines[self.told :], max(self.told, len(lines))
        return [line[:LONGEST] for line in new]


class LogReader:
    """Reads containers again and again, and hands out each line once.

    `tail`: of a container that is met, only so many lines of what it has printed; 0 are all.
    `unread`: what could not be read, by pod and container, and why.
    """

    def __init__(self, world: Exchange, tail: int = 0) -> None:
        self._world = world
        self._pages: dict[tuple[str, str], _LogPage] = {}
        self.tail = tail
        self.unread: dict[str, str] = {}

    async def read(self, pod: Live, status: Body, cluster: str) -> list[str]:
        """What a container has printed since; of a run before this one, the rest."""
        name, restarts = text(status, "name"), number(status, "restartCount")
        is_new = (pod.uid, name) not in self._pages
        page = self._pages.setdefault((pod.uid, name), _LogPage())
        asked = Logs(ref=pod.ref, container=name)
        lines: list[str] = []
        if restarts > page.run:
            before = msgspec.structs.replace(asked, previous=True)
            lines += page.turn(await self._ask(before, cluster))
            page.run, page.told = restarts, 0
        outcome = await self._ask(asked, cluster)
        if is_refusal(outcome) and not isinstance(outcome, Invalid | Missing):
            self.unread[f"{pod.ref.name}/{name}"] = outcome.message
        lines += page.turn(outcome)
        return lines[-self.tail :] if is_new and self.tail else lines

    async def _ask(self, request: Logs, cluster: str) -> Outcome:
        (outcome,) = await ask(self._world, request, cluster=cluster, within=PATIENCE)
        return outcome


def container_statuses(pod: Body) -> list[Body]:
    """Of all its containers, those that come before the others first."""
    return [
        *mappings(pod, "status", "initContainerStatuses"),
        *mappings(pod, "status", "containerStatuses"),
    ]


class PrintedLogs(Beside):
    """Reads what runs, and tells each line once."""

    def __init__(self, world: Exchange, course: Course, tell: Callable[[Event], None]) -> None:
        super().__init__(world)
        self._course = course
        self._tell = tell
        self._running: dict[_PodRun, None] = {}
        self._ended: dict[_PodRun, None] = {}
        """What must be read once more."""
        self._reader = LogReader(world)

    def hear(self, event: Event) -> None:
        """Something runs from now on, or has come to its end."""
        if event.told is Told.STEP_FAILED:
            self._end(*(one for one in self._running if one.step == event.step))
        if event.ref is None or event.ref.kind not in {JOB, POD}:
            return
        step = self._course.steps.get(event.step)
        cluster = event.cluster if step is None else step.cluster
        run = _PodRun(event.step, event.ref, cluster, event.unit)
        if event.told is Told.GATE_WAITING and run not in self._running:
            self._running[run] = None
            self.party.wake()
        elif event.told in ENDS:
            self._end(run)

    def _end(self, *runs: _PodRun) -> None:
        for one in runs:
            self._running.pop(one, None)
            self._ended[one] = None
        self.party.wake()

    async def go_on(self) -> None:
        """Until everything is read that has run."""
        while not self.is_over or self._ended:
            ended, self._ended = self._ended, {}
            for one in {**self._running, **ended}:
                await self._read(one)
            if not self.is_over and not self._ended:
                await self.party.wait(Ms(self.world.now() + OFTEN) if self._running else None)

    async def _read(self, run: _PodRun) -> None:
        ref = run.ref
        wanted = (
            Selection(POD, ref.namespace, labels=f"{OWNER}={ref.name}")
            if ref.kind == JOB
            else Selection(POD, ref.namespace, fields=f"metadata.name={ref.name}")
        )
        asked = List(wanted, MOST_PODS)
        (found,) = await ask(self.world, asked, cluster=run.cluster, within=PATIENCE)
        for live in found.items if isinstance(found, Listed) else ():
            pod: Body = msgspec.json.decode(live.body)
            for status in container_statuses(pod):
                who = f"{live.ref.name}/{text(status, 'name')}"
                for line in await self._reader.read(live, status, run.cluster):
                    self._tell(self._event(run, who, line))

    def _event(self, run: _PodRun, who: str, line: str) -> Event:
        now, told = self.world.now(), Told.LOG_PRINTED
        event = Event(now, told, run.step, run.ref, reason=who, sentence=line)
        return msgspec.structs.replace(event, unit=run.unit, cluster=run.cluster)
