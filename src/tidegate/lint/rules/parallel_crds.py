"""Custom resources that are applied in parallel with the unit that contains their CRD."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.errors import Location
from tidegate.lint.context import LintContext, LintObject
from tidegate.lint.dependencies import UnmetRequirement, dependency_index
from tidegate.lint.names import object_name
from tidegate.lint.rule import Diagnostic, FieldRef
from tidegate.lint.rules.ignored_annotations import WAVE
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.plans.graph import EdgeKind, NodeKind
from tidegate.model.units.source import ChartSource, GitSource, OciSource
from tidegate.model.units.unit import Unit, UnitId


def parallel_definitions(context: LintContext) -> Iterator[Diagnostic]:
    """Yield pairs of units without order, if one contains the CRD of a kind that the other uses.

    The rejected unit retries later.
    """
    reported: set[tuple[UnitId, UnitId]] = set()
    for unmet in dependency_index(context).rejections:
        obj, provider = unmet.dependent, unmet.provider
        if (
            provider is None
            or unmet.edge.kind is not EdgeKind.DEFINITION
            or _is_ordered(context, unmet)
        ):
            continue
        if (obj.unit.id, provider.unit.id) in reported:
            continue
        reported.add((obj.unit.id, provider.unit.id))
        semantics = obj.unit.policy.semantics
        yield Diagnostic(
            message=(
                f"{object_name(obj.ref)} needs a CRD from `{provider.unit.id}`, but"
                f" `{obj.unit.id}` does not wait for that unit"
            ),
            at=FieldRef(obj.document, ("kind",)),
            related=(FieldRef(provider.document),),
            sequence=(
                f"`{obj.unit.id}` does not wait for `{provider.unit.id}`",
                (f"until {object_name(provider.ref)} exists, `{obj.unit.id}` fails as a whole"),
                (
                    f"`{obj.unit.id}` is retried, but only a limited number of times"
                    if semantics.retry.limit
                    else f"`{obj.unit.id}` is not retried"
                ),
            ),
            severity=Severity.NOTE if semantics.name == "flux" else Severity.WARNING,
            semantics=(semantics.name,),
        )


def parallel_definitions_by_name(context: LintContext) -> Iterator[Diagnostic]:
    """Yield such pairs if only the name of the source tells which unit contains the CRD."""
    index, reported = dependency_index(context), set[tuple[UnitId, UnitId]]()
    incomplete_units = {
        unit: _source_names(context.units[unit])
        for unit in context.units.keys() - context.complete_units
    }
    for edge in context.graph.edges if incomplete_units else ():
        obj = index.objects.get(edge.after)
        is_outside = context.graph.nodes[edge.before].kind is NodeKind.EXTERNAL
        if edge.kind is not EdgeKind.DEFINITION or obj is None or not is_outside:
            continue
        kind = obj.ref.kind
        providers = [
            unit
            for unit, names in sorted(incomplete_units.items())
            if any(context.catalog.is_operator_chart(source_name, kind) for source_name in names)
        ]
        if not providers or any(
            _is_deployed_first(context, obj, provider) for provider in providers
        ):
            continue
        if (obj.unit.id, providers[0]) not in reported:
            reported.add((obj.unit.id, providers[0]))
            yield _without_dependency(obj, providers[0], context.units[providers[0]].location)


def _source_names(unit: Unit) -> set[str]:
    """Return the names of the sources of a unit: charts, artifacts, repositories."""
    addresses = (
        (
            unit_source.source.chart
            if isinstance(unit_source.source, ChartSource)
            else unit_source.source.url
        )
        for unit_source in unit.sources
        if isinstance(unit_source.source, ChartSource | GitSource | OciSource)
    )
    return {address.rstrip("/").rpartition("/")[2].removesuffix(".git") for address in addresses}


def _is_deployed_first(context: LintContext, obj: LintObject, provider: UnitId) -> bool:
    """Return whether an object is ordered after a unit, or is part of it."""
    provider_path = _ancestors(context, provider)
    if obj.unit.id in provider_path:
        return True  # `_next_to_release` reports objects next to a release in one Kustomization
    pairs = zip(provider_path, _ancestors(context, obj.unit.id), strict=False)
    first_difference = next(
        (
            (provider_unit, object_unit)
            for provider_unit, object_unit in pairs
            if provider_unit != object_unit
        ),
        None,
    )
    if first_difference is not None and _unit_wave(context, first_difference[0]) < _unit_wave(
        context, first_difference[1]
    ):
        return True
    return not _all_dependencies(context, obj.unit.id).isdisjoint(provider_path)


def _all_dependencies(context: LintContext, unit: UnitId) -> set[UnitId]:
    """Return all units that a unit or one of its parents depends on."""
    dependencies: set[UnitId] = set()
    pending = [*_ancestors(context, unit)]
    for unit_id in pending:  # grows during the loop
        unit_dependencies = context.units[unit_id].dependencies if unit_id in context.units else ()
        added = {
            dependency.unit for dependency in unit_dependencies if dependency.unit is not None
        } - dependencies
        dependencies |= added
        pending += (
            ancestor for added_unit in added for ancestor in _ancestors(context, added_unit)
        )
    return dependencies


def _without_dependency(obj: LintObject, provider: UnitId, location: Location | None) -> Diagnostic:
    semantics = obj.unit.policy.semantics
    return Diagnostic(
        message=(
            f"{object_name(obj.ref)} needs a CRD that is probably in `{provider}`, judging by its"
            f" name, but `{obj.unit.id}` does not wait for that unit"
        ),
        at=FieldRef(obj.document, ("kind",)),
        related=(location,) if location else (),
        sequence=(
            f"`{obj.unit.id}` does not wait for `{provider}`",
            f"until the CRD exists, `{obj.unit.id}` fails as a whole",
            f"`{obj.unit.id}` is retried later",
        ),
        severity=Severity.NOTE if semantics.name == "flux" else Severity.WARNING,
        semantics=(semantics.name,),
    )


def _is_ordered(context: LintContext, unmet: UnmetRequirement) -> bool:
    """Return whether the two steps are ordered. Another rule reports a missing gate."""
    provider_step, dependent_step = (
        context.step_for(unmet.provider) if unmet.provider else None,
        context.step_for(unmet.dependent),
    )
    if provider_step is None or dependent_step is None or provider_step.unit == dependent_step.unit:
        return True
    pairs = zip(
        _ancestors(context, provider_step.unit),
        _ancestors(context, dependent_step.unit),
        strict=False,
    )
    first_difference = next(
        (
            (provider_unit, dependent_unit)
            for provider_unit, dependent_unit in pairs
            if provider_unit != dependent_unit
        ),
        None,
    )
    is_earlier_wave = first_difference is not None and _unit_wave(
        context, first_difference[0]
    ) < _unit_wave(context, first_difference[1])
    return is_earlier_wave or context.order.is_after(dependent_step.id, provider_step.id)


def _ancestors(context: LintContext, unit: UnitId) -> list[UnitId]:
    """Return the parents of a unit, root first, and the unit itself."""
    path: list[UnitId] = []
    current: UnitId | None = unit
    while current is not None and current not in path:
        path.append(current)
        current = context.units[current].parent if current in context.units else None
    return path[::-1]


def _unit_wave(context: LintContext, unit: UnitId) -> int:
    """Return the wave of a unit resource in its parent."""
    unit_resource = context.unit_resources.get(unit)
    value = get_text(unit_resource.body, "metadata", "annotations", WAVE) if unit_resource else ""
    return int(value) if value.lstrip("-").isdecimal() else 0
