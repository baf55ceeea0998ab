"""Units that cannot be looked into, in a simulation: told, and taken to bring what is leaned on.

Whatever is wrong with a unit's own text stays an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec
from msgspec.structs import replace

from tidegate.flows.discover import Member
from tidegate.flows.discover.far import FAR
from tidegate.flows.discover.findings import not_rendered, not_there, slips_of
from tidegate.flows.entering import Found
from tidegate.flows.rendering import Unrendered
from tidegate.model.finding import Finding, Severity
from tidegate.model.unit import UnitId


def with_opaque(found: Found) -> Found:
    """The same, where units that lie elsewhere are opaque, and no error."""
    far = [one for one in found.members if _is_far(one)]
    told = {told.sentence: one.unit.id for one in far for told in not_rendered(one)}
    known = {one.unit.id for one in found.members}
    units = [one.unit for one in found.members]
    slips = {not_there(unit, one) for unit in units for one in slips_of(unit, known)}
    findings = tuple(_lenient(one, told, slips) for one in found.findings)
    return replace(found, findings=findings, opaque=frozenset(one.unit.id for one in far))


def _is_far(member: Member) -> bool:
    """Whether a unit could not be rendered for no other reason than where it lies."""
    rendered = member.rendered
    if not isinstance(rendered, Unrendered) or not member.unit.id.kind:
        return False
    return all(error.code in FAR for error in rendered.errors)


def _lenient(finding: Finding, far: Mapping[str, UnitId], slips: Collection[str]) -> Finding:
    if finding.code == "units.unknown" and finding.sentence not in slips:
        why = "it is in another part of the repository, or nowhere; it is taken to be ready"
        return msgspec.structs.replace(finding, severity=Severity.WARNING, why=why)
    if finding.code == "argo.set-far":
        why = "what it would bring is not known; what others lean on is taken to be there"
        return msgspec.structs.replace(finding, severity=Severity.WARNING, why=why)
    unit = far.get(finding.sentence)
    if unit is None:
        return finding
    return Finding(
        code="units.opaque",
        severity=Severity.WARNING,
        sentence=f"`{unit}` is opaque{finding.sentence.removeprefix(f'`{unit}` is not rendered')}",
        where=finding.where,
        why="what it brings is not known; what others lean on is taken to be there",
        fix=finding.fix,
    )
