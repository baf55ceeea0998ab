"""What was written to a cluster since a mark, by the cluster's own record."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Protocol

from plane import AuditEntry, read_audit
from tests.promises.objects import a_config_map
from tidegate.sandbox.world import Sandbox
from tidegate.testing import Desk, live_of
from tidegate.world.facts import Outcome

WRITES = frozenset({"create", "delete", "deletecollection", "patch", "update"})
USER = "tidegate"


class Record(Protocol):
    async def mark(self) -> None: ...

    async def written(self) -> list[str]:
        """What was written since the mark."""
        ...


class StoreRecord:
    """Whatever a sandbox stores gets a version of its own, whoever wrote it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._store = sandbox.clusters[""].server.store
        self._version = 0

    async def mark(self) -> None:
        self._version = self._store.version

    async def written(self) -> list[str]:
        changed = [
            str(stored.ref)
            for _, table in self._store.tables()
            for stored in table.rows("")
            if stored.version > self._version
        ]
        count = self._store.version - self._version
        return changed or ["something that is gone"] * count


class AuditRecord:
    """What a real server wrote down, between two writes of our own."""

    def __init__(self, log: Path, desk: Desk) -> None:
        self._log = log
        self._desk = desk
        self._numbers = itertools.count(1)
        self._last = ""

    async def mark(self) -> None:
        self._last = await self._leave_mark()

    async def written(self) -> list[str]:
        first, last = self._last, await self._leave_mark()
        names = [_name(entry) for entry in read_audit(self._log) if _is_ours(entry)]
        return names[names.index(first) + 1 : names.index(last)]

    async def _leave_mark(self) -> str:
        """Write something, and wait until the log has it."""
        name = f"mark-{next(self._numbers)}"
        ref = live_of(await self._desk.apply(a_config_map(name))).ref
        mark = f"configmaps {ref.namespace}/{name}"

        def is_logged(_: Outcome) -> bool:
            return mark in {_name(entry) for entry in read_audit(self._log) if _is_ours(entry)}

        await self._desk.eventually(lambda: self._desk.get(ref), is_logged)
        return mark


def _is_ours(entry: AuditEntry) -> bool:
    changes = entry.verb in WRITES and "dryRun" not in entry.request_uri
    return changes and entry.user.username == USER


def _name(entry: AuditEntry) -> str:
    target = entry.object_ref
    return f"{target.resource} {target.namespace}/{target.name}"
