"""The rows by kind, and what can be told from them about one object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.knowledge.serving import serves, speaks_for
from tidegate.model.checks import all_hold
from tidegate.model.objects import Json, Kind
from tidegate.model.operators import Row, ServedBy
from tidegate.model.paths import find
from tidegate.model.reading import number


@dataclass(frozen=True, slots=True)
class KnownRows:
    """Rows, found by group and kind."""

    rows: dict[tuple[str, str], Row]
    groups: dict[str, tuple[ServedBy, ...]]
    """Who serves the kinds of a group whose rows say so."""

    @classmethod
    def of(cls, rows: Iterable[Row]) -> KnownRows:
        """Of two rows for a kind the last counts: users' come behind those that tidegate brings."""
        known = {(row.group, kind): row for row in rows for kind in row.kinds}
        groups: dict[str, tuple[ServedBy, ...]] = {}
        for (group, _), row in known.items():
            if row.served_by != ServedBy():
                groups[group] = (*groups.get(group, ()), row.served_by)
        return cls(known, groups)

    def row_of(self, kind: Kind) -> Row | None:
        """The row of a kind, if it has one of its own."""
        return self.rows.get((kind.group, kind.name))

    def is_server(self, workload: dict[str, Json], kind: Kind) -> bool:
        """Whether a workload is the operator of a custom kind, available or not.

        A kind whose row does not say has the operator of its group's other kinds, if theirs do.
        """
        row = self.row_of(kind)
        if row is not None and row.served_by != ServedBy():
            return serves(row.served_by, workload)
        siblings = self.groups.get(kind.group, ())
        if siblings:
            return any(serves(served_by, workload) for served_by in siblings)
        return speaks_for(workload, kind)


def is_ready(row: Row, body: dict[str, Json]) -> bool:
    """Whether an object is ready, and so as it is now."""
    seen = find(body, row.observed) if row.observed else None
    is_current = not isinstance(seen, int) or seen >= number(body, "metadata", "generation")
    return is_current and all_hold(row.ready_when, body)
