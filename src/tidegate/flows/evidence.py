"""Ask a cluster about an object that failed: which pods, what they printed, which Events.

It is asked once, after the end, and never keeps anyone long: what does not answer is left out.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.errors import foreign
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Kind, Live, Ref
from tidegate.model.reading import mapping, mappings, number, text
from tidegate.report.rollout.discretion import Discretion
from tidegate.report.rollout.evidence import Ended, Evidence, Note, PodEnd
from tidegate.world.ask import ask
from tidegate.world.calls import Get, List, Logs, Request, Selection
from tidegate.world.facts import Done, Listed, Outcome, Said
from tidegate.world.protocol import World

POD = Kind("", "v1", "Pod")
EVENT = Kind("", "v1", "Event")
REPLICA_SET = Kind("apps", "v1", "ReplicaSet")
PATIENCE = Ms(5 * SECOND)
LAST_LINES = 10
MOST_PODS = 2
MOST_READ = 500
"""How many objects of a namespace are looked through."""
OPENING = frozenset({"ContainerCreating", "PodInitializing"})
"""What waiting containers say that are only not begun yet."""

Body = dict[str, Json]


async def collect_evidence(
    world: World, refs: Iterable[Ref], discretion: Discretion, *, cluster: str = ""
) -> tuple[Evidence, ...]:
    """What is known of these objects."""
    return tuple([await _Asking(world, cluster, discretion).about(ref) for ref in refs])


class _Asking:
    """Questions to one cluster."""

    def __init__(self, world: World, cluster: str, discretion: Discretion) -> None:
        self._world = world
        self._cluster = cluster
        self._discretion = discretion

    async def about(self, ref: Ref) -> Evidence:
        (found,) = await self._ask(Get(ref))
        if not isinstance(found, Done) or found.live is None:
            return Evidence(ref=ref)
        pods = await self._pods(found.live)
        bad = sorted(pods, key=_badness)[-MOST_PODS:][::-1]
        ends = tuple([await self._end(pod) for pod in bad])
        notes = await self._notes([found.live.uid, *(text(pod, "metadata", "uid") for pod in bad)])
        return Evidence(ref=ref, pods=ends, notes=notes)

    async def _ask(self, *requests: Request) -> tuple[Outcome, ...]:
        return await ask(self._world, *requests, cluster=self._cluster, within=PATIENCE)

    async def _pods(self, live: Live) -> list[Body]:
        """The pods of an object that are not as they should be."""
        if live.ref.kind == POD:
            return [_read(live)]
        labels = _selector(_read(live))
        space = live.ref.namespace
        wanted = [List(Selection(kind, space, labels), MOST_READ) for kind in (POD, REPLICA_SET)]
        pods, sets = [_items(outcome) for outcome in await self._ask(*wanted)]
        owners = {live.uid, *(text(one, "metadata", "uid") for one in _owned(sets, {live.uid}))}
        return [pod for pod in _owned(pods, owners) if not _is_well(pod)]

    async def _end(self, pod: Body) -> PodEnd:
        ref = Ref(POD, text(pod, "metadata", "namespace"), text(pod, "metadata", "name"))
        containers = [one for one in map(self._ended, _statuses(pod)) if one is not None]
        asked = [Logs(ref=ref, container=one.name, tail=LAST_LINES) for one in containers]
        printed = await self._ask(*asked) if asked else ()
        return PodEnd(
            ref=ref,
            phase=text(pod, "status", "phase"),
            reason=self._say(text(pod, "status", "reason")) or _unready(pod),
            message=self._say(text(pod, "status", "message")),
            containers=tuple(
                msgspec.structs.replace(one, log=self._log(outcome))
                for one, outcome in zip(containers, printed, strict=True)
            ),
        )

    def _ended(self, status: Body) -> Ended | None:
        """A container that ended badly, or that something keeps from running."""
        ended = mapping(status, "state", "terminated")
        waiting = mapping(status, "state", "waiting")
        last = mapping(status, "lastState", "terminated")
        if ended and not number(ended, "exitCode"):
            return None
        if not ended and not last and text(waiting, "reason") in {"", *OPENING}:
            return None
        code = ended or last
        return Ended(
            name=text(status, "name"),
            reason=self._say(text(waiting, "reason") or text(code, "reason")),
            message=self._say(text(waiting, "message") or text(code, "message")),
            exit_code=number(code, "exitCode") if code else None,
            restarts=number(status, "restartCount"),
        )

    async def _notes(self, uids: Iterable[str]) -> tuple[Note, ...]:
        asked = [
            List(Selection(EVENT, fields=f"involvedObject.uid={uid}"), MOST_READ) for uid in uids
        ]
        found = [body for outcome in await self._ask(*asked) for body in _items(outcome)]
        found.sort(key=lambda body: (_told_at(body), text(body, "metadata", "name")))
        notes = {self._note(body): None for body in found}
        return tuple(notes)

    def _note(self, body: Body) -> Note:
        involved = mapping(body, "involvedObject")
        return Note(
            subject=f"{text(involved, 'kind')} {text(involved, 'name')}",
            reason=self._say(text(body, "reason")),
            message=self._say(text(body, "message")),
            warning=text(body, "type") == "Warning",
            times=max(1, number(body, "count")),
        )

    def _log(self, outcome: Outcome) -> tuple[str, ...]:
        if not isinstance(outcome, Said):
            return ()
        lines = outcome.body.decode(errors="replace").splitlines()[-LAST_LINES:]
        return tuple(map(self._say, lines))

    def _say(self, words: str) -> str:
        return foreign(self._discretion.hide(words))


def _read(live: Live) -> Body:
    body: Body = msgspec.json.decode(live.body)
    return body


def _items(outcome: Outcome) -> list[Body]:
    return [_read(live) for live in outcome.items] if isinstance(outcome, Listed) else []


def _selector(body: Body) -> str:
    """The labels of an object's pods; empty where it does not say."""
    labels = mapping(body, "spec", "selector", "matchLabels")
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _owned(bodies: Iterable[Body], owners: set[str]) -> list[Body]:
    return [
        body
        for body in bodies
        if any(text(one, "uid") in owners for one in mappings(body, "metadata", "ownerReferences"))
    ]


def _is_well(pod: Body) -> bool:
    return text(pod, "status", "phase") == "Succeeded" or not _unready(pod)


def _unready(pod: Body) -> str:
    """Why a pod is not ready, in a word."""
    for condition in mappings(pod, "status", "conditions"):
        kind, status = text(condition, "type"), text(condition, "status")
        if kind in {"Ready", "PodScheduled"} and status != "True":
            return text(condition, "reason", default="NotReady")
    return "" if mappings(pod, "status", "conditions") else "NotReady"


def _statuses(pod: Body) -> list[Body]:
    inits = mappings(pod, "status", "initContainerStatuses")
    return [*inits, *mappings(pod, "status", "containerStatuses")]


def _badness(pod: Body) -> tuple[bool, str, str]:
    """Pods that have failed tell most, and the newest of them."""
    metadata = mapping(pod, "metadata")
    failed = text(pod, "status", "phase") == "Failed"
    return failed, text(metadata, "creationTimestamp"), text(metadata, "name")


def _told_at(body: Body) -> str:
    return text(body, "lastTimestamp") or text(body, "eventTime") or text(body, "firstTimestamp")
