"""One side of a comparison of orders, from a linted repository."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import msgspec

from tidegate.dialect.gate_fields import gate_field
from tidegate.documents import Document
from tidegate.errors import Location
from tidegate.graph.comparison.impact import Times
from tidegate.graph.comparison.sides import OrderSide
from tidegate.health.lua import NO_LUA_RULES, LuaRules
from tidegate.lint.rule import FieldRef
from tidegate.linting.lookup import DiagnosticLocator
from tidegate.linting.run import LintedRepository, LintResult
from tidegate.model.k8s.objects import FieldPath, JsonObject, Ref, versionless_key
from tidegate.model.plans.graph import Graph
from tidegate.model.plans.plan import Plan
from tidegate.model.times import Ms
from tidegate.model.units.unit import Unit, UnitId
from tidegate.model.views.order_diff import GateType
from tidegate.planning.graph import GraphResult, estimate_times
from tidegate.workspace.workspace import Workspace

NO_TIMES = Times(lambda _: Ms(0), lambda _: Ms(0))
EMPTY_BODY: JsonObject = {}


class SideFiles(msgspec.Struct, frozen=True, dict=True):
    """The objects of one alternative as its files have them."""

    result: LintResult
    locator: DiagnosticLocator
    health_rules: LuaRules = NO_LUA_RULES

    @cached_property
    def _documents(self) -> Mapping[tuple[UnitId, tuple[str, ...]], Document]:
        return {
            (lint_object.unit.id, versionless_key(lint_object.ref)): lint_object.document
            for lint_object in self.result.loaded.context.objects
        }

    def find_body(self, unit: UnitId, ref: Ref) -> JsonObject:
        """Return an object of a unit; empty if it is in no file."""
        document = self._documents.get((unit, versionless_key(ref)))
        return document.body if document is not None else EMPTY_BODY

    def locate_field(self, unit: UnitId, ref: Ref | None, path: FieldPath) -> Location | None:
        """Return the location of a field of an object of a unit."""
        if ref is None:
            document = self.result.loaded.context.unit_resources.get(unit)
        else:
            document = self._documents.get((unit, versionless_key(ref)))
        if document is None or not document.location.name:
            return None
        return self.locator(FieldRef(document, path)).with_field("")

    def locate_gate(self, unit: UnitId, gate: GateType, item: FieldPath) -> Location | None:
        """Return the location of the field of a unit resource that sets a gate."""
        field = gate_field(unit.kind, gate)
        return self.locate_field(unit, None, (*field, *item)) if field else None

    def locate_line(self, location: Location) -> Location:
        """Return a location at the line of its field."""
        if not location.field:
            return location
        return self.locator.files.locate_field(location, location.field).with_field("")

    def locate_health_rule(self, group: str, kind: str) -> Location | None:
        """Return the location of the health rule for a kind in the settings of Argo CD."""
        script = self.health_rules.find(group, kind)
        if script is None or script.location is None:
            return None
        return self.locate_line(script.location)


def order_side(linted: LintedRepository, result: LintResult, workspace: Workspace) -> OrderSide:
    """Return the order of one alternative."""
    files = SideFiles(result, linted.locator, linted.health_rules)
    graph_result = result.graph_result
    return OrderSide(
        graph=graph_result.graph if graph_result else Graph(),
        plan=graph_result.plan_result.plan if graph_result else Plan(digest=""),
        units=_units(workspace, graph_result),
        unknown_units=_unknown_units(workspace, graph_result),
        has_cycle=graph_result is not None and graph_result.cycle is not None,
        find_body=files.find_body,
        locate_field=files.locate_field,
        locate_gate=files.locate_gate,
        locate_health_rule=files.locate_health_rule,
        locate_line=files.locate_line,
    )


def side_times(result: LintResult | None) -> Times:
    """Return the assumed times of an alternative."""
    if result is None or result.graph_result is None:
        return NO_TIMES
    return Times(*estimate_times(result.graph_result, None))


def empty_side() -> OrderSide:
    """Return the order of a revision without units."""
    return OrderSide(
        graph=Graph(),
        plan=Plan(digest=""),
        units={},
        find_body=lambda _unit, _ref: EMPTY_BODY,
        locate_field=lambda _unit, _ref, _path: None,
        locate_gate=lambda _unit, _gate, _item: None,
        locate_health_rule=lambda _group, _kind: None,
        locate_line=lambda location: location,
    )


def _units(workspace: Workspace, graph_result: GraphResult | None) -> dict[UnitId, Unit]:
    """Return the units with their planned policies and their declared dependencies."""
    units = {member.unit.id: member.unit for member in workspace.members}
    for unit_manifests in graph_result.plan_result.unit_manifests if graph_result else ():
        planned = unit_manifests.manifests.unit
        if planned.id in units:
            dependencies = units[planned.id].dependencies
            units[planned.id] = msgspec.structs.replace(planned, dependencies=dependencies)
    return units


def _unknown_units(workspace: Workspace, graph_result: GraphResult | None) -> frozenset[UnitId]:
    """Return the units whose objects are not all known; all of them without a plan."""
    if graph_result is None:
        return frozenset(member.unit.id for member in workspace.members)
    known = {
        unit_manifests.manifests.unit.id
        for unit_manifests in graph_result.plan_result.unit_manifests
        if unit_manifests.is_complete
    }
    return frozenset(member.unit.id for member in workspace.members if member.unit.id not in known)
