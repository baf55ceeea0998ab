"""Streams the logs of hooks and Jobs while they run.

Logs are read again and again during the rollout, and lines that were emitted are skipped. Where
the rollout deletes a hook as soon as it has finished, its last lines may be lost.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tidegate.model.k8s.json_fields import get_int, get_text
from tidegate.model.k8s.kinds import JOB, POD
from tidegate.model.k8s.objects import JsonObject, LiveObject, Ref
from tidegate.model.k8s.pods import container_statuses
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.unit import UnitId
from tidegate.planning.requirements import QUERY_TIMEOUT
from tidegate.rollout.observers import BackgroundObserver
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import Invalid, ListPage, NotFound, Outcome, RawResponse, is_error
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import List, Logs, Selection

POLL_INTERVAL = Ms(SECOND)
JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
MAX_PODS = 50
MAX_LINE_LENGTH = 4_000
"""Characters of a line; the rest is cut."""
END_EVENTS = frozenset({EventType.HOOK_FINISHED, EventType.OBJECT_READY, EventType.STEP_FAILED})


class _LogSource(msgspec.Struct, frozen=True):
    """A running Job or Pod, with the step that waits for it."""

    step: str
    ref: Ref
    cluster: str
    unit: UnitId | None


class _LogPosition(msgspec.Struct):
    """How far the log of a container was read."""

    restarts: int = 0
    """The restart count of the run that is read."""
    lines_read: int = 0

    def take_new_lines(self, outcome: Outcome) -> list[str]:
        """Return the new lines."""
        if not isinstance(outcome, RawResponse):
            return []
        lines = outcome.body.decode(errors="replace").splitlines()
        new, self.lines_read = lines[self.lines_read :], max(self.lines_read, len(lines))
        return [line[:MAX_LINE_LENGTH] for line in new]


class LogReader:
    """Reader of containers that returns each line once."""

    def __init__(self, world: Dispatcher, tail: int = 0) -> None:
        self._world = world
        self._positions: dict[tuple[str, str], _LogPosition] = {}
        self.tail = tail
        """Number of lines to return that a container printed before the first read; 0: all."""
        self.errors: dict[str, str] = {}
        """By pod and container, why its log could not be read."""

    async def read(self, pod: LiveObject, status: JsonObject, cluster: str) -> list[str]:
        """Return the new lines of a container, including the rest of its previous run."""
        name, restarts = get_text(status, "name"), get_int(status, "restartCount")
        is_new = (pod.uid, name) not in self._positions
        position = self._positions.setdefault((pod.uid, name), _LogPosition())
        request = Logs(ref=pod.ref, container=name)
        lines: list[str] = []
        if restarts > position.restarts:
            previous = msgspec.structs.replace(request, previous=True)
            lines += position.take_new_lines(await self._get_logs(previous, cluster))
            position.restarts, position.lines_read = restarts, 0
        outcome = await self._get_logs(request, cluster)
        if is_error(outcome) and not isinstance(outcome, Invalid | NotFound):
            self.errors[f"{pod.ref.name}/{name}"] = outcome.message
        lines += position.take_new_lines(outcome)
        return lines[-self.tail :] if is_new and self.tail else lines

    async def _get_logs(self, request: Logs, cluster: str) -> Outcome:
        (outcome,) = await send_requests(
            self._world, request, cluster=cluster, timeout=QUERY_TIMEOUT
        )
        return outcome


class LogStreamer(BackgroundObserver):
    """Observer of the logs of running pods that emits each line once."""

    def __init__(
        self, world: Dispatcher, progress: RolloutProgress, emit: Callable[[Event], None]
    ) -> None:
        super().__init__(world)
        self._progress = progress
        self._emit = emit
        self._running: dict[_LogSource, None] = {}
        self._ended: dict[_LogSource, None] = {}
        """Sources that must be read once more."""
        self._reader = LogReader(world)

    def on_event(self, event: Event) -> None:
        """Start or finish reading the logs of a Job or Pod."""
        if event.type is EventType.STEP_FAILED:
            self._mark_ended(*(running for running in self._running if running.step == event.step))
        if event.ref is None or event.ref.kind not in {JOB, POD}:
            return
        step = self._progress.steps.get(event.step)
        cluster = event.cluster if step is None else step.cluster
        source = _LogSource(event.step, event.ref, cluster, event.unit)
        if event.type is EventType.GATE_WAITING and source not in self._running:
            self._running[source] = None
            self.client.wake()
        elif event.type in END_EVENTS:
            self._mark_ended(source)

    def _mark_ended(self, *sources: _LogSource) -> None:
        for source in sources:
            self._running.pop(source, None)
            self._ended[source] = None
        self.client.wake()

    async def run(self) -> None:
        """Run until the logs of all sources are read."""
        while not self.is_stopped or self._ended:
            ended, self._ended = self._ended, {}
            for source in {**self._running, **ended}:
                await self._stream(source)
            if not self.is_stopped and not self._ended:
                await self.client.wait(
                    Ms(self.world.now() + POLL_INTERVAL) if self._running else None
                )

    async def _stream(self, source: _LogSource) -> None:
        ref = source.ref
        selection = (
            Selection(POD, ref.namespace, label_selector=f"{JOB_NAME_LABEL}={ref.name}")
            if ref.kind == JOB
            else Selection(POD, ref.namespace, field_selector=f"metadata.name={ref.name}")
        )
        request = List(selection, MAX_PODS)
        (outcome,) = await send_requests(
            self.world, request, cluster=source.cluster, timeout=QUERY_TIMEOUT
        )
        for live in outcome.items if isinstance(outcome, ListPage) else ():
            pod: JsonObject = msgspec.json.decode(live.body)
            for status in container_statuses(pod):
                container = f"{live.ref.name}/{get_text(status, 'name')}"
                for line in await self._reader.read(live, status, source.cluster):
                    self._emit(self._event(source, container, line))

    def _event(self, source: _LogSource, container: str, line: str) -> Event:
        now, event_type = self.world.now(), EventType.LOG_LINE
        event = Event(now, event_type, source.step, source.ref, reason=container, message=line)
        return msgspec.structs.replace(event, unit=source.unit, cluster=source.cluster)
