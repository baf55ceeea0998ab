"""What the pods of a unit print, line by line, for as long as somebody listens.

Pods that come meanwhile are met when they are there. It is over when all have ended, or all that
makes them is gone.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from tidegate.errors import foreign
from tidegate.flows.lacks import POD
from tidegate.flows.looking import body_of, look_at, look_in
from tidegate.flows.printed import OFTEN, LogReader, container_statuses
from tidegate.flows.session import Session
from tidegate.flows.telling import RunningObjects
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Live, Ref
from tidegate.model.reading import mappings, text
from tidegate.report.told import LogLine

Body = dict[str, Json]
MAKERS = (Kind("apps", "v1", "ReplicaSet"), Kind("batch", "v1", "Job"))
"""What stands between an object of a unit and its pods."""
ENDED = frozenset({"Succeeded", "Failed"})
Owner = tuple[str, str, str]
"""A kind, a namespace and a name."""


class FollowedLogs:
    """The pods of these objects, and what was told of each."""

    def __init__(self, running: RunningObjects, session: Session, tail: int) -> None:
        self._kept = running.kept
        self._spots = (*running.hooks, *running.kept)
        self._session = session
        self._discretion = running.discretion
        self._reader = LogReader(session.world, tail)

    @property
    def unread(self) -> dict[str, str]:
        """What cannot be read, by pod and container, and why."""
        return self._reader.unread

    async def follow(self, within: Ms | None) -> AsyncGenerator[list[LogLine]]:
        """The lines that are new, again and again, until time is over or all pods have ended."""
        world = self._session.world
        party, end = world.party(), None if within is None else Ms(world.now() + within)
        has_met = False
        while True:
            pods = await self._pods()
            yield [line for cluster, pod in pods for line in await self._read(pod, cluster)]
            # Who is here from now on is heard from the beginning.
            self._reader.tail = 0
            has_met = has_met or bool(pods)
            if has_met and await self._have_ended(pods):
                return
            if end is not None and world.now() >= end:
                return
            again = Ms(world.now() + OFTEN)
            await party.wait(again if end is None else min(again, end))

    async def _have_ended(self, pods: Sequence[tuple[str, Live]]) -> bool:
        """Whether no pod runs any more, and none is to come: all are there, or nobody is left."""
        if not {text(body_of(pod), "status", "phase") for _, pod in pods} <= ENDED:
            return False
        living = 0
        for cluster in dict.fromkeys(one.cluster for one in self._kept):
            refs = [one.ref for one in self._kept if one.cluster == cluster]
            living += len(await look_at(self._session.world, refs, cluster=cluster))
        return living == (len(self._kept) if pods else 0)

    async def _read(self, pod: Live, cluster: str) -> list[LogLine]:
        found = []
        for status in container_statuses(body_of(pod)):
            name = text(status, "name")
            found += [
                LogLine(pod=pod.ref, container=name, line=foreign(self._discretion.hide(line)))
                for line in await self._reader.read(pod, status, cluster)
            ]
        return found

    async def _pods(self) -> list[tuple[str, Live]]:
        """Pods whose owners, or those of these, are the unit's."""
        found: list[tuple[str, Live]] = []
        for cluster in dict.fromkeys(one.cluster for one in self._spots):
            mine = {_owner(one.ref) for one in self._spots if one.cluster == cluster}
            homes = dict.fromkeys(home for _, home, _ in mine if home)
            places = [(kind, home) for home in homes for kind in (*MAKERS, POD)]
            lives = await look_in(self._session.world, places, cluster=cluster)
            for live in lives:  # makers come before pods, so that whose these are is known
                known = _owner(live.ref)
                if known in mine or mine & _owners(live):
                    mine.add(known)
                    found += [(cluster, live)] if live.ref.kind == POD else []
        return found


def _owner(ref: Ref) -> Owner:
    return ref.kind.name, ref.namespace, ref.name


def _owners(live: Live) -> set[Owner]:
    return {
        (text(one, "kind"), live.ref.namespace, text(one, "name"))
        for one in mappings(body_of(live), "metadata", "ownerReferences")
    }
