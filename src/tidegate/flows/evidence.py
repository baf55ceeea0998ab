"""Ask a cluster about an object that failed: its pods, what they printed, its Events, its lacks.

It is asked once, after the end, and never keeps anyone long: what does not answer is left out.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.errors import foreign
from tidegate.flows.lacks import PATIENCE, POD, find_lacks
from tidegate.flows.makers import find_item, find_makers, step_of
from tidegate.flows.wiring import why_unserved
from tidegate.knowledge.catalogue import KnownRows
from tidegate.model.labels import write_labels
from tidegate.model.objects import Json, Kind, Live, Ref, Spot
from tidegate.model.patterns import late
from tidegate.model.plan import Fragment, Plan
from tidegate.model.reading import mapping, mappings, number, part, text
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.discretion import Discretion
from tidegate.report.rollout.evidence import (
    Comes,
    ContainerEnd,
    Evidence,
    KubeEvent,
    Lack,
    Maker,
    PodEnd,
)
from tidegate.report.rollout.failure import failing_spots, refused_spots
from tidegate.report.told import ContainerLog
from tidegate.world.ask import ask
from tidegate.world.calls import Get, List, Logs, Request, Selection
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Done, Listed, Outcome, Said
from tidegate.world.protocol import World

EVENT = Kind("", "v1", "Event")
REPLICA_SET = Kind("apps", "v1", "ReplicaSet")
JOB = Kind("batch", "v1", "Job")
LAST_LINES = 10
MOST_PODS = 2
MOST_READ = 500
"""How many objects of a namespace are looked through."""
OPENING = frozenset({"ContainerCreating", "PodInitializing"})
"""What waiting containers say that are only not begun yet."""
CREATED = late(r"Created pod: (\S+)")
"""How controllers tell of a pod; one that is deleted is remembered by its Events alone."""

Body = dict[str, Json]


class Background(msgspec.Struct, frozen=True, kw_only=True):
    """What is known besides the cluster: what was to be done, and what operators do.

    `discretion` knows what must not be said. `behind`: the world behind the door; a simulated one
    can be looked into.
    """

    plan: Plan = msgspec.field(default_factory=lambda: Plan.of(Fragment()))
    catalogue: KnownRows = msgspec.field(default_factory=lambda: KnownRows({}, {}))
    discretion: Discretion = msgspec.field(default_factory=Discretion)
    behind: World | None = None


async def inquire(world: Exchange, course: Course, background: Background) -> tuple[Evidence, ...]:
    """What is known of the objects that a rollout failed for."""
    refused = () if course.failures() else refused_spots(course)
    behind, catalogue = background.behind, background.catalogue
    return (
        *await collect_evidence(world, failing_spots(course), background),
        *(
            Evidence(
                ref=spot.ref,
                cluster=spot.cluster,
                unserved=why_unserved(behind, spot.ref.kind, catalogue),
            )
            for spot in refused
        ),
    )


async def collect_evidence(
    world: Exchange, spots: Iterable[Spot], background: Background
) -> tuple[Evidence, ...]:
    """What is known of these objects."""
    return tuple([await _Asking(world, one.cluster, background).about(one.ref) for one in spots])


async def read_logs(
    world: Exchange, spots: Iterable[Spot], background: Background, tail: int
) -> list[ContainerLog]:
    """What the containers have printed last of the pods of these objects that are not well."""
    found: list[ContainerLog] = []
    for one in spots:
        found += await _Asking(world, one.cluster, background).logs_of(one.ref, tail)
    return found


class _Asking:
    """Questions to one cluster."""

    def __init__(self, world: Exchange, cluster: str, background: Background) -> None:
        self._world = world
        self._cluster = cluster
        self._background = background

    async def about(self, ref: Ref) -> Evidence:
        (found,) = await self._ask(Get(ref))
        live = found.live if isinstance(found, Done) else None
        lacks = await self._lacks(ref, live)
        background = self._background
        unserved = why_unserved(background.behind, ref.kind, background.catalogue)
        if live is None:
            return Evidence(ref=ref, cluster=self._cluster, lacks=lacks, unserved=unserved)
        pods, sets = await self._brood(live)
        bad = sorted(pods, key=_badness)[-MOST_PODS:][::-1]
        ends = tuple([await self._end(pod) for pod in bad])
        notes = await self._notes(live, sets, bad)
        return Evidence(
            ref=ref,
            cluster=self._cluster,
            pods=ends,
            notes=notes,
            lacks=lacks,
            unserved=unserved,
        )

    async def logs_of(self, ref: Ref, tail: int) -> list[ContainerLog]:
        (found,) = await self._ask(Get(ref))
        live = found.live if isinstance(found, Done) else None
        pods, _ = await self._brood(live) if live else ([], [])
        wanted = [(_pod_ref(pod), one) for pod in pods for one in _statuses(pod) if _has_begun(one)]
        asked = [Logs(ref=pod, container=text(one, "name"), tail=tail) for pod, one in wanted]
        printed = await self._ask(*asked) if asked else ()
        return [
            ContainerLog(
                owner=ref,
                pod=pod,
                container=text(one, "name"),
                state=self._say(_state(one)),
                lines=self._printed(outcome),
            )
            for (pod, one), outcome in zip(wanted, printed, strict=True)
        ]

    async def _lacks(self, ref: Ref, live: Live | None) -> tuple[Lack, ...]:
        """What it needs and is not there, and what those lack that should have made it by now."""
        found: dict[Ref, Lack] = {}
        bodies = {ref: self._body(ref, live)}
        pending = [ref]
        while pending:
            one = pending.pop(0)
            for missing in await self._missing(one, bodies[one]):
                makers = self._makers(missing, wanted_by=ref)
                found.setdefault(missing, Lack(ref=missing, makers=makers))
                late = [maker.ref for maker in makers if maker.comes is not Comes.BEHIND]
                new = [maker for maker in late if maker not in bodies]
                bodies |= {maker: self._body(maker) for maker in new}
                pending += new
        return tuple(found.values())

    async def _missing(self, ref: Ref, body: Body) -> list[Ref]:
        catalogue = self._background.catalogue
        return await find_lacks(self._world, ref, body, catalogue, cluster=self._cluster)

    def _makers(self, missing: Ref, *, wanted_by: Ref) -> tuple[Maker, ...]:
        plan, catalogue = self._background.plan, self._background.catalogue
        step = step_of(plan, wanted_by, self._cluster)
        here = step.id if step else ""
        found = find_makers(plan, missing, catalogue, here=here, cluster=self._cluster)
        return tuple(found)

    def _body(self, ref: Ref, live: Live | None = None) -> Body:
        """As it lives; a hook may be gone, and the plan still has its text."""
        step = step_of(self._background.plan, ref, self._cluster)
        item = find_item(step, ref) if step else None
        told = live.body if live else item.body if item else b""
        body: Body = msgspec.json.decode(told or b"{}")  # what is awaited has no text
        return body

    async def _ask(self, *requests: Request) -> tuple[Outcome, ...]:
        return await ask(self._world, *requests, cluster=self._cluster, within=PATIENCE)

    async def _brood(self, live: Live) -> tuple[list[Body], list[Body]]:
        """The pods of an object that are not as they should be, and the sets they are made by."""
        if live.ref.kind == POD:
            return [_read(live)], []
        labels = write_labels(part(_read(live), "spec", "selector"))
        space = live.ref.namespace
        wanted = [List(Selection(kind, space, labels), MOST_READ) for kind in (POD, REPLICA_SET)]
        pods, sets = [_items(outcome) for outcome in await self._ask(*wanted)]
        own = _owned(sets, {live.uid})
        owners = {live.uid, *(text(one, "metadata", "uid") for one in own)}
        ends = live.ref.kind == JOB
        return [pod for pod in _owned(pods, owners) if not _is_well(pod, ends=ends)], own

    async def _end(self, pod: Body) -> PodEnd:
        ref = _pod_ref(pod)
        ended = [one for one in map(self._ended, _statuses(pod)) if one is not None]
        containers = [*ended, *(_unended(pod) or _running(pod))]
        asked = [Logs(ref=ref, container=one.name, tail=LAST_LINES) for one in containers]
        printed = await self._ask(*asked) if asked else ()
        return PodEnd(
            ref=ref,
            phase=text(pod, "status", "phase"),
            reason=self._say(text(pod, "status", "reason")) or _unready(pod),
            message=self._say(text(pod, "status", "message") or _homeless(pod)),
            containers=tuple(
                msgspec.structs.replace(one, log=self._log(outcome))
                for one, outcome in zip(containers, printed, strict=True)
            ),
        )

    def _ended(self, status: Body) -> ContainerEnd | None:
        """A container that ended badly, or that something keeps from running."""
        ended = mapping(status, "state", "terminated")
        waiting = mapping(status, "state", "waiting")
        last = mapping(status, "lastState", "terminated")
        if ended and not number(ended, "exitCode"):
            return None
        if not ended and not last and text(waiting, "reason") in {"", *OPENING}:
            return None
        code = ended or last
        return ContainerEnd(
            name=text(status, "name"),
            reason=self._say(text(waiting, "reason") or text(code, "reason")),
            message=self._say(text(waiting, "message") or text(code, "message")),
            exit_code=number(code, "exitCode") if code else None,
            restarts=number(status, "restartCount"),
        )

    async def _notes(self, live: Live, sets: list[Body], pods: list[Body]) -> tuple[KubeEvent, ...]:
        """Events about it, about what makes its pods, and about those."""
        found = await self._events(live.ref, f"involvedObject.uid={live.uid}")
        for one in sets[-MOST_PODS:]:
            about = f"involvedObject.uid={text(one, 'metadata', 'uid')}"
            found += await self._events(live.ref, about)
        names = [text(pod, "metadata", "name") for pod in pods] or _gone(found)[-MOST_PODS:]
        for name in names:
            about = f"involvedObject.kind=Pod,involvedObject.name={name}"
            found += await self._events(live.ref, about)
        found.sort(key=lambda body: (told_at(body), text(body, "metadata", "name")))
        return tuple(dict.fromkeys(map(self._note, found)))

    async def _events(self, ref: Ref, fields: str) -> list[Body]:
        wanted = Selection(EVENT, ref.namespace, fields=fields)
        (found,) = await self._ask(List(wanted, MOST_READ))
        return _items(found)

    def _note(self, body: Body) -> KubeEvent:
        involved = mapping(body, "involvedObject")
        return KubeEvent(
            subject=f"{text(involved, 'kind')} {text(involved, 'name')}",
            reason=self._say(text(body, "reason")),
            message=self._say(text(body, "message")),
            warning=text(body, "type") == "Warning",
            times=max(1, number(body, "count")),
        )

    def _log(self, outcome: Outcome) -> tuple[str, ...]:
        return self._printed(outcome)[-LAST_LINES:]

    def _printed(self, outcome: Outcome) -> tuple[str, ...]:
        if not isinstance(outcome, Said):
            return ()
        return tuple(map(self._say, outcome.body.decode(errors="replace").splitlines()))

    def _say(self, words: str) -> str:
        return foreign(self._background.discretion.hide(words))


def _read(live: Live) -> Body:
    body: Body = msgspec.json.decode(live.body)
    return body


def _items(outcome: Outcome) -> list[Body]:
    return [_read(live) for live in outcome.items] if isinstance(outcome, Listed) else []


def _owned(bodies: Iterable[Body], owners: set[str]) -> list[Body]:
    return [
        body
        for body in bodies
        if any(text(one, "uid") in owners for one in mappings(body, "metadata", "ownerReferences"))
    ]


def _is_well(pod: Body, *, ends: bool) -> bool:
    """Whether a pod is as it should be; one that `ends` does its work by that."""
    return text(pod, "status", "phase") == "Succeeded" or not (ends or _unready(pod))


def _unready(pod: Body) -> str:
    """Why a pod is not ready, in a word."""
    for condition in mappings(pod, "status", "conditions"):
        kind, status = text(condition, "type"), text(condition, "status")
        if kind in {"Ready", "PodScheduled"} and status != "True":
            return text(condition, "reason", default="NotReady")
    return "" if mappings(pod, "status", "conditions") else "NotReady"


def _homeless(pod: Body) -> str:
    """Why no node takes a pod; empty where one does."""
    for condition in mappings(pod, "status", "conditions"):
        if text(condition, "type") == "PodScheduled" and text(condition, "status") == "False":
            return text(condition, "message")
    return ""


def _statuses(pod: Body) -> list[Body]:
    inits = mappings(pod, "status", "initContainerStatuses")
    return [*inits, *mappings(pod, "status", "containerStatuses")]


def _unended(pod: Body) -> list[ContainerEnd]:
    """The init container that all others wait for, as kubectl counts it."""
    inits = mappings(pod, "status", "initContainerStatuses")
    sidecars = {
        text(one, "name")
        for one in mappings(pod, "spec", "initContainers")
        if text(one, "restartPolicy") == "Always"
    }
    return [
        ContainerEnd(
            name=text(one, "name"),
            reason=f"Init:{place}/{len(inits)}",
            message="it runs, and the containers behind it wait for it to end",
            restarts=number(one, "restartCount"),
        )
        for place, one in enumerate(inits)
        if mapping(one, "state", "running") and text(one, "name") not in sidecars
    ]


def _running(pod: Body) -> list[ContainerEnd]:
    """Containers that run, and are not what is waited for: ready, or done."""
    return [
        ContainerEnd(
            name=text(one, "name"),
            reason="Running" if one.get("ready") is True else "Running, and not ready",
            runs=True,
        )
        for one in mappings(pod, "status", "containerStatuses")
        if mapping(one, "state", "running") and not _again(one)
    ]


def _pod_ref(pod: Body) -> Ref:
    return Ref(POD, text(pod, "metadata", "namespace"), text(pod, "metadata", "name"))


def _has_begun(status: Body) -> bool:
    """Whether a container may have printed something, and has not just ended well."""
    ended = mapping(status, "state", "terminated")
    is_done = bool(ended) and not number(ended, "exitCode")
    return not is_done and (bool(ended) or "running" in mapping(status, "state") or _again(status))


def _again(status: Body) -> bool:
    return bool(mapping(status, "lastState", "terminated"))


def _state(status: Body) -> str:
    """How a container is, in a word and a number."""
    ((word, told), *_) = [*mapping(status, "state").items()] or [("waiting", {})]
    code = mapping(status, "state", "terminated") or mapping(status, "lastState", "terminated")
    ended = f", exit code {number(code, 'exitCode')}" if code else ""
    return f"{text(told, 'reason') or word}{ended}"


def _badness(pod: Body) -> tuple[bool, str, str]:
    """Pods that have failed tell most, and the newest of them."""
    metadata = mapping(pod, "metadata")
    failed = text(pod, "status", "phase") == "Failed"
    return failed, text(metadata, "creationTimestamp"), text(metadata, "name")


def _gone(events: Iterable[Body]) -> list[str]:
    """The pods that a controller says it has created."""
    found = (CREATED.fullmatch(text(event, "message")) for event in events)
    return [one[1] for one in found if one is not None]


def told_at(body: Body) -> str:
    return text(body, "lastTimestamp") or text(body, "eventTime") or text(body, "firstTimestamp")
