"""The part of a repository that the user selects, and the findings about it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

import msgspec

from tidegate.errors import Location
from tidegate.model.finding import Finding
from tidegate.model.units.unit import Unit, UnitId
from tidegate.workspace.discovery.unit_tree import RenderedUnit

ROOT_PATHS = frozenset({"", "."})


class Scope(msgspec.Struct, frozen=True):
    """The selected units and their files. Without a selection, it is the whole repository."""

    is_whole: bool = True
    unit_ids: frozenset[UnitId] = frozenset()
    unit_names: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    """Files from which selected units are rendered."""
    directories: tuple[str, ...] = ()
    """Directories from which selected units are rendered."""
    unit_lines: dict[str, list[tuple[int, bool]]] = msgspec.field(default_factory=dict)
    """The first lines of all unit resources by file, and whether the unit is selected."""

    @classmethod
    def from_members(
        cls, all_members: Iterable[RenderedUnit], selected: Iterable[RenderedUnit]
    ) -> Scope:
        """Return the scope of selected units."""
        selected = tuple(selected)
        units = [member.unit for member in selected]
        return cls(
            is_whole=False,
            unit_ids=frozenset(unit.id for unit in units),
            unit_names=frozenset(unit.id.qualified_name for unit in units),
            files=frozenset(
                document.location.name for member in selected for document in member.documents
            ),
            directories=tuple(
                sorted({source.path for unit in units for source in unit.sources} - ROOT_PATHS)
            ),
            unit_lines=_unit_lines((member.unit for member in all_members), units),
        )

    def includes(self, finding: Finding) -> bool:
        """Return whether a finding is about a selected unit, its files, or the whole repository."""
        if self.is_whole:
            return True
        if finding.unit is not None:
            return finding.unit in self.unit_ids
        if finding.unit_names:
            return not self.unit_names.isdisjoint(finding.unit_names)
        return finding.location is None or self._includes_location(finding.location)

    def _includes_location(self, location: Location) -> bool:
        if location.name in ROOT_PATHS or location.name in self.files:
            return True
        lines = self.unit_lines.get(location.name)
        if lines is not None:
            position = bisect_right(lines, (location.line, True)) - 1
            return lines[max(position, 0)][1]
        return any(
            location.name == directory or location.name.startswith(f"{directory}/")
            for directory in self.directories
        )


def _unit_lines(
    units: Iterable[Unit], selected: Iterable[Unit]
) -> dict[str, list[tuple[int, bool]]]:
    selected_ids = {unit.id for unit in selected}
    lines: dict[str, dict[int, bool]] = {}
    for unit in units:
        if unit.location is not None:
            in_file = lines.setdefault(unit.location.name, {})
            is_selected = unit.id in selected_ids
            in_file[unit.location.line] = in_file.get(unit.location.line, False) or is_selected
    return {name: sorted(in_file.items()) for name, in_file in lines.items()}
