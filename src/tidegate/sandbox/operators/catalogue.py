"""The rows by kind, and what can be asked of a cluster with them: who serves, what is met."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from tidegate.model.checks import all_hold, find
from tidegate.model.objects import Kind, Ref
from tidegate.model.operators import EVERY, Row, ServedBy, Until
from tidegate.model.reading import mapping, mappings, text
from tidegate.sandbox.controllers.reaction import View
from tidegate.sandbox.operators.references import Needed
from tidegate.sandbox.operators.workloads import WORKLOADS, is_available, serves, speaks_for
from tidegate.sandbox.server.register import DEFINITIONS
from tidegate.sandbox.server.store import Body, Stored
from tidegate.schema.builtin import served_kinds

SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice")
SERVICE_NAME = "kubernetes.io/service-name"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Rows, found by group and kind."""

    rows: dict[tuple[str, str], Row]
    groups: dict[str, tuple[ServedBy, ...]]
    """Who serves the kinds of a group that have rows."""

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Catalogue:
        known = {(row.group, kind): row for row in rows for kind in row.kinds}
        groups: dict[str, tuple[ServedBy, ...]] = {}
        for (group, _), row in known.items():
            groups[group] = (*groups.get(group, ()), row.served_by)
        return cls(known, groups)

    def row_of(self, kind: Kind) -> Row | None:
        """The row of a kind, or the one for all others; None for Kubernetes' own kinds."""
        found = self.rows.get((kind.group, kind.name))
        if found is not None or kind.group in builtin_groups():
            return found
        return self.rows.get((EVERY, EVERY))

    def is_server(self, workload: Stored, kind: Kind) -> bool:
        """Whether a workload is the operator of a kind, available or not.

        A kind without a row has the operator of its group's other kinds, if they have rows.
        """
        row = self.row_of(kind)
        if row is None:
            return False
        if row.group != EVERY:
            return serves(row.served_by, workload)
        siblings = self.groups.get(kind.group, ())
        if siblings:
            return any(serves(served_by, workload) for served_by in siblings)
        return speaks_for(workload, kind)

    def server_of(self, view: View, kind: Kind) -> Stored | None:
        """The operator of a kind, if it is there and available; found by looking at them all."""
        for workload in _workloads(view):
            if is_available(workload) and self.is_server(workload, kind):
                return workload
        return None

    def is_served(self, view: View, kind: Kind) -> bool:
        row = self.row_of(kind)
        is_outside = row is not None and row.served_by.outside
        return is_outside or self.server_of(view, kind) is not None

    def why_unserved(self, view: View, kind: Kind) -> str:
        idle = [one.ref for one in _workloads(view) if self.is_server(one, kind)]
        if idle:
            return f"nobody serves {kind.name}: {idle[0]} is not available"
        return f"nobody serves {kind.name}: no workload is known as the operator of {kind.group}"

    def find(self, view: View, needed: Needed) -> Stored | None:
        """The object that is needed, in its namespace or in none."""
        for version in self.versions_of(view, needed.group, needed.kind):
            kind = Kind(needed.group, version, needed.kind)
            for namespace in dict.fromkeys((needed.namespace, "")):
                stored = view.get(Ref(kind, namespace, needed.name))
                if stored is not None:
                    return stored
        return None

    def is_met(self, view: View, needed: Needed) -> bool:
        stored = self.find(view, needed)
        if stored is None or stored.is_deleting:
            return False
        match needed.need.until:
            case Until.EXISTS:
                return True
            case Until.READY:
                return self.is_ready(stored)
            case Until.SERVING:
                return _answers(view, stored.ref)

    def is_ready(self, stored: Stored) -> bool:
        """Whether an object is ready, and so as it is now."""
        row = self.row_of(stored.ref.kind)
        if row is None:
            return True
        seen = find(stored.body, row.observed) if row.observed else None
        is_current = not isinstance(seen, int) or seen >= stored.generation
        return is_current and all_hold(row.ready_when, stored.body)

    def versions_of(self, view: View, group: str, kind: str) -> Iterable[str]:
        row = self.rows.get((group, kind))
        if row is not None:
            return row.versions
        known = _builtin_versions().get((group, kind))
        if known is not None:
            return known
        custom = self.custom_kinds(view)
        return (one.version for one in custom if (one.group, one.name) == (group, kind))

    def custom_kinds(self, view: View) -> Iterator[Kind]:
        """The kinds of a cluster's CRDs, each once."""
        for definition in view.all_of(DEFINITIONS):
            spec = mapping(definition.body, "spec")
            for version in mappings(spec, "versions"):
                if version.get("served"):
                    name = text(spec, "names", "kind")
                    yield Kind(text(spec, "group"), text(version, "name"), name)
                    break


def _workloads(view: View) -> Iterator[Stored]:
    return (workload for kind in WORKLOADS for workload in view.all_of(kind))


def _answers(view: View, service: Ref) -> bool:
    """Whether a Service has an endpoint that serves, be it announced before it is ready or not."""
    return any(
        _serves(mapping(endpoint, "conditions"))
        for one in view.all_of(SLICE, service.namespace)
        if one.labels.get(SERVICE_NAME) == service.name
        for endpoint in mappings(one.body, "endpoints")
    )


def _serves(conditions: Body) -> bool:
    serving = conditions.get("serving")
    return conditions.get("ready") is not False if serving is None else serving is True


@cache
def builtin_groups() -> frozenset[str]:
    return frozenset(served.kind.group for served in served_kinds())


@cache
def _builtin_versions() -> dict[tuple[str, str], tuple[str, ...]]:
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for served in served_kinds():
        key = (served.kind.group, served.kind.name)
        found[key] = (*found.get(key, ()), served.kind.version)
    return found
