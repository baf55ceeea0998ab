"""Differences between two orders as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.errors import Location
from tidegate.model.display_paths import location_text
from tidegate.model.k8s.objects import Json, Ref
from tidegate.model.views.order_diff import (
    CriticalPathEnd,
    DependencyChange,
    DiffReport,
    GateChange,
    Move,
    OrderDiff,
    Removal,
    RevisionName,
    UnitChange,
)
from tidegate.report.findings import finding_document
from tidegate.report.lint.output import lint_finding_document
from tidegate.report.order_diff.sections import diff_heading
from tidegate.report.order_diff.text import is_unchanged

SCHEMA = "tidegate.dev/diff/v1"


def diff_document(report: DiffReport) -> dict[str, Json]:
    """Return the report in the JSON format of Tidegate."""
    return {
        "schema": SCHEMA,
        "base": _revision(report.base),
        "head": _revision(report.head),
        "sameOrder": is_unchanged(report),
        "summary": diff_heading(report),
        "newFindings": [lint_finding_document(entry) for entry in report.new.sorted_findings],
        "fixedFindings": [lint_finding_document(entry) for entry in report.fixed],
        "orders": [_order(order) for order in report.orders],
        "notRead": [finding_document(entry) for entry in report.not_read],
    }


def _revision(revision: RevisionName) -> Json:
    return {"name": revision.name or None, "commit": revision.commit or None}


def _order(order: OrderDiff) -> Json:
    path = order.critical_path
    return {
        "root": order.root or None,
        "sameOrder": order.is_same_order,
        "units": order.unit_count,
        "gates": [_gate(gate) for gate in order.gates],
        "moved": [_move(move) for move in order.moves],
        "levels": [
            {"unit": str(entry.unit), "before": entry.before, "after": entry.after}
            for entry in order.levels
        ],
        "renumbered": [
            {
                "unit": str(entry.unit),
                "steps": [{"before": old, "after": new} for old, new in entry.steps],
            }
            for entry in order.renumbered
        ],
        "dependencies": [_dependency(entry) for entry in order.dependencies],
        "changedUnits": _names(order.changed_units),
        "unitChanges": [_unit_change(entry) for entry in order.units],
        "criticalPath": {"before": _path_end(path.before), "after": _path_end(path.after)}
        if path
        else None,
        "affected": [
            {"cluster": entry.cluster, "units": _names(entry.units)}
            for entry in order.affected_units
        ],
        "notCompared": _names(order.not_compared),
    }


def _gate(gate: GateChange) -> Json:
    return {
        "change": gate.change.value,
        "type": gate.type.value,
        "unit": str(gate.unit),
        "subject": gate.subject,
        "waiting": _names(gate.waiting_units),
        **_locations(gate.location, gate.base_location),
    }


def _move(move: Move) -> Json:
    return {
        "type": move.type.value,
        "unit": str(move.unit),
        "name": move.name,
        "before": move.before,
        "after": move.after,
        **_locations(move.location, move.base_location),
    }


def _dependency(entry: DependencyChange) -> Json:
    return {
        "change": entry.change.value,
        "dependent": entry.dependent,
        "dependentUnit": str(entry.dependent_unit) if entry.dependent_unit else None,
        "provider": entry.provider,
        "providerUnit": str(entry.provider_unit) if entry.provider_unit else None,
        "external": entry.is_external,
        "object": entry.required_object or None,
        "reason": entry.kind.value,
        "field": entry.field,
        "declared": entry.strength.value == "hard",
        "more": entry.more,
        "location": _location(entry.location),
    }


def _unit_change(entry: UnitChange) -> Json:
    return {
        "change": entry.type.value,
        "unit": str(entry.unit),
        "oldUnit": str(entry.old_unit) if entry.old_unit else None,
        "objects": entry.object_count,
        "location": _location(entry.location),
        "removal": _removal(entry.removal) if entry.removal else None,
    }


def _removal(removal: Removal) -> Json:
    return {
        "deletes": removal.is_deleted,
        "keptBecause": removal.kept_reason,
        "steps": [[_ref(ref) for ref in step] for step in removal.steps],
        "stillNeeded": [
            {"object": _ref(need.ref), "neededBy": [*need.needed_by]}
            for need in removal.still_needed
        ],
    }


def _path_end(end: CriticalPathEnd) -> Json:
    return {"milliseconds": end.duration, "steps": [*end.steps]}


def _ref(ref: Ref) -> Json:
    return {
        "apiVersion": ref.kind.api_version,
        "kind": ref.kind.name,
        "namespace": ref.namespace,
        "name": ref.name,
    }


def _names(units: Sequence[object]) -> list[Json]:
    return [str(unit) for unit in units]


def _locations(location: Location | None, base_location: Location | None) -> dict[str, Json]:
    return {"location": _location(location), "baseLocation": _location(base_location)}


def _location(location: Location | None) -> Json:
    return location_text(location) or None
