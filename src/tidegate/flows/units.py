"""Selection of units and sources: their rows in order, and resources by kind, name and labels."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.dialect.tracking import APPLICATION_SET
from tidegate.flows.discover import RenderedUnit, UnitTree
from tidegate.flows.discover.families import require_rendered
from tidegate.flows.discover.order import child_waves, document_waves, sort_key
from tidegate.flows.rendering import RenderFailure, RenderResult
from tidegate.model.unit import Unit, UnitId
from tidegate.report.units import UnitRow


def unit_rows(unit_trees: Iterable[UnitTree], *, counts: bool = False) -> list[UnitRow]:
    """Return the root units, each followed by its descendants, by their waves.

    With `counts`, with the number of their objects. Raises where PATH itself was not rendered.
    """
    unit_trees = tuple(unit_trees)
    require_rendered(member for unit_tree in unit_trees for member in unit_tree.members)
    return [row for unit_tree in unit_trees for row in _rows(unit_tree, counts=counts)]


def _rows(unit_tree: UnitTree, *, counts: bool) -> list[UnitRow]:
    members = {member.unit.id: member for member in unit_tree.members}
    children: dict[UnitId | None, list[RenderedUnit]] = {}
    for member in unit_tree.members:
        parent = member.unit.parent if member.unit.parent in members else None
        children.setdefault(parent, []).append(member)
    rows: list[UnitRow] = []

    def walk(parent: UnitId | None, depth: int) -> None:
        waves = child_waves(members.get(parent) if parent else None)
        if parent is None and unit_tree.root_document is not None:
            waves = {
                name: wave
                for name, wave in document_waves((unit_tree.root_document,)).items()
                if wave
            }
        for member in sorted(
            children.get(parent, []), key=lambda member: sort_key(member.unit, waves)
        ):
            wave = waves.get((member.unit.id.kind, member.unit.id.name))
            objects = (
                len(member.documents)
                if counts and isinstance(member.result, RenderResult)
                else None
            )
            is_faulty = isinstance(member.result, RenderFailure) or not _has_content(member.unit)
            rows.append(UnitRow(member.unit, wave, depth, objects, is_faulty))
            walk(member.unit.id, depth + 1)

    walk(None, 0)
    return rows


def _has_content(unit: Unit) -> bool:
    """Whether a unit has a source. An ApplicationSet needs none: it generates what it deploys."""
    return bool(unit.sources) or unit.id.kind == APPLICATION_SET
