"""Followed logs of the pods of a unit, line by line.

Pods that appear later are included. Following ends when all pods have finished, or when all
their owners are deleted.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from tidegate.clusters.reader import get_objects
from tidegate.clusters.session import Session
from tidegate.errors import sanitize
from tidegate.inspection.events import PodOwners
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.kinds import JOB, POD, REPLICA_SET
from tidegate.model.k8s.objects import LiveObject, object_body
from tidegate.model.k8s.pods import container_statuses, owner_key, owner_keys
from tidegate.model.times import Ms
from tidegate.model.views.events import LogLine
from tidegate.rollout.logs import POLL_INTERVAL, LogReader
from tidegate.world.requests import Selection

INTERMEDIATE_OWNERS = (REPLICA_SET, JOB)
"""Kinds between an object of a unit and its pods."""
FINISHED_PHASES = frozenset({"Succeeded", "Failed"})


class LogFollower:
    """Follower of the logs of the pods that these objects own."""

    def __init__(self, pod_owners: PodOwners, session: Session, tail: int) -> None:
        self._workloads = pod_owners.workloads
        self._cluster_refs = (*pod_owners.hooks, *pod_owners.workloads)
        self._session = session
        self._redactor = pod_owners.redactor
        self._reader = LogReader(session.world, tail)

    @property
    def unread(self) -> dict[str, str]:
        """Reasons why logs cannot be read, by pod and container."""
        return self._reader.errors

    async def follow(self, within: Ms | None) -> AsyncGenerator[list[LogLine]]:
        """Yield new lines repeatedly, until `within` has passed or all pods have finished."""
        world = self._session.world
        client, end = world.client(), None if within is None else Ms(world.now() + within)
        has_pods = False
        while True:
            pods = await self._find_pods()
            yield [line for cluster, pod in pods for line in await self._read(pod, cluster)]
            # Pods that start from now on are read from their first line.
            self._reader.tail = 0
            has_pods = has_pods or bool(pods)
            if has_pods and await self._have_finished(pods):
                return
            if end is not None and world.now() >= end:
                return
            next_poll = Ms(world.now() + POLL_INTERVAL)
            await client.wait(next_poll if end is None else min(next_poll, end))

    async def _have_finished(self, pods: Sequence[tuple[str, LiveObject]]) -> bool:
        """Return whether no pod runs and none is expected: workloads all exist or are all gone."""
        if (
            not {get_text(object_body(pod), "status", "phase") for _, pod in pods}
            <= FINISHED_PHASES
        ):
            return False
        live_objects = await get_objects(self._session.world, self._workloads)
        return len(live_objects) == (len(self._workloads) if pods else 0)

    async def _read(self, pod: LiveObject, cluster: str) -> list[LogLine]:
        lines = []
        for status in container_statuses(object_body(pod)):
            name = get_text(status, "name")
            lines += [
                LogLine(pod=pod.ref, container=name, line=sanitize(self._redactor.redact(line)))
                for line in await self._reader.read(pod, status, cluster)
            ]
        return lines

    async def _find_pods(self) -> list[tuple[str, LiveObject]]:
        """Return the pods that objects of the unit own, directly or through another owner."""
        pods: list[tuple[str, LiveObject]] = []
        for cluster in dict.fromkeys(cluster_ref.cluster for cluster_ref in self._cluster_refs):
            owners = {
                owner_key(cluster_ref.ref)
                for cluster_ref in self._cluster_refs
                if cluster_ref.cluster == cluster
            }
            namespaces = dict.fromkeys(namespace for _, namespace, _ in owners if namespace)
            live_objects = await self._session.reader(cluster).list_all(
                Selection(kind, namespace)
                for namespace in namespaces
                for kind in (*INTERMEDIATE_OWNERS, POD)
            )
            for live in live_objects:  # owners come before pods, so the owner of a pod is known
                key = owner_key(live.ref)
                if key in owners or not owners.isdisjoint(owner_keys(object_body(live))):
                    owners.add(key)
                    pods += [(cluster, live)] if live.ref.kind == POD else []
        return pods
