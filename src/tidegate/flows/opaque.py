"""Units with an unavailable source in a simulation: assumed to provide what other units need.

They are reported. Errors in the unit resource itself stay errors.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec
from msgspec.structs import replace

from tidegate.flows.discover import RenderedUnit
from tidegate.flows.discover.far import UNAVAILABLE_SOURCE_CODES
from tidegate.flows.discover.findings import (
    missing_dependency_message,
    misspelt_dependencies,
    render_failure_findings,
)
from tidegate.flows.entering import Workspace
from tidegate.flows.rendering import RenderFailure
from tidegate.model.finding import Finding, Severity
from tidegate.model.unit import UnitId


def with_unavailable_units(workspace: Workspace) -> Workspace:
    """Return the workspace with unavailable units listed, and their errors as warnings."""
    unavailable = [member for member in workspace.members if _is_unavailable(member)]
    render_finding = {
        render_finding.message: member.unit.id
        for member in unavailable
        for render_finding in render_failure_findings(member)
    }
    unit_ids = {member.unit.id for member in workspace.members}
    units = [member.unit for member in workspace.members]
    typos = {
        missing_dependency_message(unit, name)
        for unit in units
        for name in misspelt_dependencies(unit, unit_ids)
    }
    findings = tuple(_as_warning(finding, render_finding, typos) for finding in workspace.findings)
    return replace(
        workspace,
        findings=findings,
        unavailable=frozenset(member.unit.id for member in unavailable),
    )


def _is_unavailable(member: RenderedUnit) -> bool:
    """Return whether a unit could not be rendered only because its source cannot be fetched."""
    rendered = member.result
    if not isinstance(rendered, RenderFailure) or not member.unit.id.kind:
        return False
    return all(error.code in UNAVAILABLE_SOURCE_CODES for error in rendered.errors)


def _as_warning(
    finding: Finding, units_by_message: Mapping[str, UnitId], typos: Collection[str]
) -> Finding:
    if finding.code == "units.unknown" and finding.message not in typos:
        reason = "it is in another part of the repository, or nowhere; it is taken to be ready"
        return msgspec.structs.replace(finding, severity=Severity.WARNING, reason=reason)
    if finding.code == "argo.set-far":
        reason = "what it would bring is not known; what others lean on is taken to be there"
        return msgspec.structs.replace(finding, severity=Severity.WARNING, reason=reason)
    unit = units_by_message.get(finding.message)
    if unit is None:
        return finding
    return Finding(
        code="units.opaque",
        severity=Severity.WARNING,
        message=f"`{unit}` is opaque{finding.message.removeprefix(f'`{unit}` is not rendered')}",
        location=finding.location,
        reason="what it brings is not known; what others lean on is taken to be there",
        fix=finding.fix,
    )
