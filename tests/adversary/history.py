"""What happened during a try, from the audit log of the API server, and what must not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import msgspec

from plane.audit import AuditEntry, read_audit
from tests.support.rollout_audit import WRITES
from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject

CREATED, REFUSED = 201, 400
LATEST = "9"
"""A time after all others."""
RECORDS = frozenset({"leases", "events", "secrets"})
"""Resources that Tidegate writes about a rollout, and not for a unit."""
Order = Sequence[tuple[str, str]]
"""Pairs of objects: the first is ready before the second is written."""


@dataclass(frozen=True, slots=True)
class AuditedWrite:
    """A write that the server accepted and that was no dry run."""

    at: str
    user: str
    verb: str
    name: str
    code: int


@dataclass(frozen=True, slots=True)
class ReportedStatus:
    """A whole workload as it was after its controller wrote the status."""

    at: str
    name: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class History:
    """All writes and statuses in the namespaces of a try, in the order of the server."""

    writes: tuple[AuditedWrite, ...]
    statuses: tuple[ReportedStatus, ...]

    def written_by(self, users: Iterable[str]) -> list[AuditedWrite]:
        """Return what these processes wrote for their unit."""
        known = frozenset(users)
        return [
            write
            for write in self.writes
            if write.user in known and write.name.partition("/")[0] not in RECORDS
        ]


def read_history(log: Path, namespaces: frozenset[str], *, start: int = 0) -> History:
    """Read what the log has about some namespaces, from a position on."""
    entries = [
        entry
        for entry in read_audit(log, start=start)
        if entry.object_ref.namespace in namespaces and entry.response_status.code < REFUSED
    ]
    entries.sort(key=lambda entry: entry.request_received_timestamp)
    return History(
        tuple(_written(entry) for entry in entries if _is_write(entry)),
        tuple(_reported(entry) for entry in entries if entry.object_ref.subresource == "status"),
    )


def _is_write(entry: AuditEntry) -> bool:
    is_status = entry.object_ref.subresource == "status"
    return entry.verb in WRITES and "dryRun=All" not in entry.request_uri and not is_status


def _name(entry: AuditEntry) -> str:
    return f"{entry.object_ref.resource}/{entry.object_ref.name}"


def _written(entry: AuditEntry) -> AuditedWrite:
    at, code = entry.request_received_timestamp, entry.response_status.code
    return AuditedWrite(at, entry.user.username, entry.verb, _name(entry), code)


def _reported(entry: AuditEntry) -> ReportedStatus:
    body: JsonObject | None = msgspec.json.decode(entry.response_object)
    return ReportedStatus(entry.request_received_timestamp, _name(entry), body or {})


def runs_image(resource: str, body: JsonObject, image: str) -> bool:
    """Return whether all pods of a workload, and at least a single one, run an image."""
    template = get_mapping(body, "spec", "template", "spec")
    images = [get_text(container, "image") for container in get_mappings(template, "containers")]
    is_observed = get_int(body, "status", "observedGeneration") == get_int(
        body, "metadata", "generation"
    )
    return image in images and _ARE_READY[resource](body, is_observed)


def _is_deployed(body: JsonObject, is_observed: bool) -> bool:  # noqa: FBT001
    names = ("replicas", "updatedReplicas", "availableReplicas")
    counts = {get_int(body, "status", name) for name in names}
    return is_observed and counts == {get_int(body, "spec", "replicas")} and counts != {0}


def _is_stateful_set_ready(body: JsonObject, is_observed: bool) -> bool:  # noqa: FBT001
    status = get_mapping(body, "status")
    counts = {get_int(status, name) for name in ("replicas", "readyReplicas")}
    is_updated = get_text(status, "currentRevision") == get_text(status, "updateRevision")
    return is_observed and is_updated and len(counts) == 1 and counts != {0}


def _is_daemon_set_ready(body: JsonObject, is_observed: bool) -> bool:  # noqa: FBT001
    names = ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
    counts = {get_int(body, "status", name) for name in names}
    return is_observed and len(counts) == 1 and counts != {0}


def _is_complete(body: JsonObject, _: bool) -> bool:  # noqa: FBT001
    conditions = get_mappings(body, "status", "conditions")
    return ("Complete", "True") in {
        (get_text(item, "type"), get_text(item, "status")) for item in conditions
    }


_ARE_READY: Mapping[str, Callable[[JsonObject, bool], bool]] = {
    "deployments": _is_deployed,
    "statefulsets": _is_stateful_set_ready,
    "daemonsets": _is_daemon_set_ready,
    "jobs": _is_complete,
}


class EarlyWrite(NamedTuple):
    """A write that came before what it depends on was ready in the same revision."""

    before: str
    after: str
    revision: int

    def __str__(self) -> str:
        return f"{self.after} of revision {self.revision} was written before {self.before}"


def find_early_writes(
    history: History, revisions: Mapping[str, int], order: Order
) -> list[EarlyWrite]:
    """Return the writes that came before what they depend on was ready in the same revision."""
    writes = [
        EarlyWrite(before, after, revisions[write.user])
        for before, after in order
        for write in history.written_by(revisions)
        if write.name == after and write.verb != "delete"
        if not _is_ready(history, revisions, before, write.at, revisions[write.user])
    ]
    return list(dict.fromkeys(writes))


def _is_ready(
    history: History, revisions: Mapping[str, int], name: str, at: str, revision: int
) -> bool:
    resource = name.partition("/")[0]
    if resource in _ARE_READY:
        bodies = [item.body for item in history.statuses if item.name == name and item.at <= at]
        return bool(bodies) and runs_image(resource, bodies[-1], f"main:{revision}")
    users = [
        write.user
        for write in history.written_by(revisions)
        if write.name == name and write.at <= at
    ]
    return bool(users) and revisions[users[-1]] == revision


def deletion_faults(history: History, users: Iterable[str], order: Order) -> list[str]:
    """Return the objects that were deleted before an object of a later wave."""
    first: dict[str, str] = {}
    for write in history.written_by(users):
        if write.verb == "delete":
            first.setdefault(write.name, write.at)
    return [
        f"{before} was deleted before {after}"
        for before, after in order
        if before in first and first[before] < first.get(after, LATEST)
    ]


def repeated_hooks(
    history: History, revisions: Mapping[str, int], hooks: Iterable[str]
) -> list[str]:
    """Return the hooks that were created twice for a revision."""
    known = frozenset(hooks)
    created = Counter(
        (write.name, revisions[write.user])
        for write in history.written_by(revisions)
        if write.name in known and write.code == CREATED
    )
    return [
        f"{name} ran {count} times in revision {revision}"
        for (name, revision), count in created.items()
        if count > 1
    ]


def concurrent_writers(history: History, users: Iterable[str]) -> list[str]:
    """Return the processes that wrote again after another process had taken the unit."""
    turns = [user for user, _ in groupby(write.user for write in history.written_by(users))]
    return [
        f"{user} wrote again after another process" for user, n in Counter(turns).items() if n > 1
    ]
