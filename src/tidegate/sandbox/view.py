"""What the controllers of a simulated cluster see of it."""

from __future__ import annotations

from tidegate.model.objects import Kind, Ref
from tidegate.sandbox.server.server import Server
from tidegate.sandbox.server.store import Stored


class ClusterView:
    """Reads a server's store; sees each change as soon as it is made."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def get(self, ref: Ref) -> Stored | None:
        entry = self._server.register.find(ref.kind)
        return self._server.store.get(entry.resource, ref) if entry else None

    def all_of(self, kind: Kind, namespace: str = "") -> list[Stored]:
        entry = self._server.register.find(kind)
        return self._server.store.table(entry.resource).rows(namespace) if entry else []

    def inside(self, namespace: str) -> list[Stored]:
        return [
            stored
            for _, table in self._server.store.tables()
            if namespace in table.objects
            for stored in table.rows(namespace)
        ]

    def owned_by(self, uid: str) -> list[Stored]:
        found = (self._server.store.get(*own) for own in self._server.store.owned(uid))
        return [stored for stored in found if stored is not None]
