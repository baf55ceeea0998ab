"""What was written to a cluster since a mark, by the cluster's own record."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Protocol

from plane import AuditEntry, read_audit
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.objects import a_config_map
from tidegate.model.k8s.objects import JsonObject
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.sandbox.world import Sandbox
from tidegate.world.messages import Outcome, WatchEventType

WRITES = frozenset({"create", "delete", "deletecollection", "patch", "update"})
USER = "tidegate"
MARK = "mark-"
OWN_PLACE = "tidegate-system"
"""Where rollouts keep what they remember."""
GENERATED = frozenset({"default", "kube-root-ca.crt"})
"""What a sandbox puts into every namespace."""
CREATED = 201
REFUSED = 400


class Record(Protocol):
    async def mark(self) -> None: ...

    async def written(self) -> list[str]:
        """What was written since the mark."""
        ...

    async def changes(self) -> list[str]:
        """What was done to objects since the mark, in order: `create pods/web`.

        Statuses do not count, nor do the objects that rollouts keep for themselves.
        """
        ...


class StoreRecord:
    """Each stored object gets its own version, whichever client writes it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._store = sandbox.clusters[""].server.store
        self._version = 0

    async def mark(self) -> None:
        self._version = self._store.version

    async def written(self) -> list[str]:
        changed = [
            str(stored.ref)
            for _, table in self._store.list_tables()
            for stored in table.list_objects("")
            if stored.version > self._version
        ]
        count = self._store.version - self._version
        return changed or ["something that is gone"] * count

    async def changes(self) -> list[str]:
        events = [
            (event.stored.version, resource.plural, event)
            for resource, table in self._store.list_tables()
            for event in table.events_since(self._version)
        ]
        messages = (
            (_verb_of(event), plural, event.stored.ref)
            for _, plural, event in sorted(events, key=lambda item: item[0])
        )
        return [
            f"{change} {plural}/{ref.name}"
            for change, plural, ref in messages
            if change and OWN_PLACE not in (ref.namespace, ref.name) and ref.name not in GENERATED
        ]


def _verb_of(event: StoreEvent) -> str:
    """The operation of a client that caused this change; empty for a status write alone."""
    before, stored = event.before, event.stored
    if before is None:
        return "create"
    if event.change is WatchEventType.DELETED or stored.is_deleting:
        return "change" if before.is_deleting else "delete"
    return "change" if _without_status(before) != _without_status(stored) else ""


def _without_status(stored: StoredObject) -> JsonObject:
    return {key: part for key, part in stored.body.items() if key != "status"}


class AuditRecord:
    """What a real server wrote down, between two writes of our own."""

    def __init__(self, log: Path, client: ClusterClient) -> None:
        self._log = log
        self._client = client
        self._numbers = itertools.count(1)
        self._last = ""

    async def mark(self) -> None:
        self._last = await self._leave_mark()

    async def written(self) -> list[str]:
        first, last = self._last, await self._leave_mark()
        names = [_name(entry) for entry in read_audit(self._log) if _is_ours(entry)]
        return names[names.index(first) + 1 : names.index(last)]

    async def changes(self) -> list[str]:
        first, last = self._last, await self._leave_mark()
        ours = [entry for entry in read_audit(self._log) if _is_ours(entry)]
        ours.sort(key=lambda entry: entry.request_received_timestamp)
        names = [_name(entry) for entry in ours]
        since = ours[names.index(first) + 1 : names.index(last)]
        return [_verb(entry) for entry in since if _is_write(entry)]

    async def _leave_mark(self) -> str:
        """Write something, and wait until the log has it."""
        name = f"{MARK}{next(self._numbers)}"
        ref = require_live(await self._client.apply(a_config_map(name))).ref
        mark = f"configmaps {ref.namespace}/{name}"

        def is_logged(_: Outcome) -> bool:
            return mark in {_name(entry) for entry in read_audit(self._log) if _is_ours(entry)}

        await self._client.eventually(lambda: self._client.get(ref), is_logged)
        return mark


def _is_ours(entry: AuditEntry) -> bool:
    changes = entry.verb in WRITES and "dryRun" not in entry.request_uri
    return changes and entry.user.username == USER


def _is_write(entry: AuditEntry) -> bool:
    """Whether it did something to an object of a test."""
    target = entry.object_ref
    unit_resource = OWN_PLACE in (target.namespace, target.name) or target.name.startswith(MARK)
    return entry.response_status.code < REFUSED and not target.subresource and not unit_resource


def _verb(entry: AuditEntry) -> str:
    made = entry.verb == "create" or entry.response_status.code == CREATED
    other = "delete" if entry.verb == "delete" else "change"
    return f"{'create' if made else other} {entry.object_ref.resource}/{entry.object_ref.name}"


def _name(entry: AuditEntry) -> str:
    target = entry.object_ref
    return f"{target.resource} {target.namespace}/{target.name}"
