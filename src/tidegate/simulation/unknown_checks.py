"""Health checks of objects that only a unit with unknown objects can create."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.units.unit import Unit
from tidegate.workspace.discovery.unit_tree import RenderedUnit
from tidegate.workspace.workspace import Workspace

ObjectName = tuple[str, str, str]
"""Group, kind and name."""


def without_unknown_checks(workspace: Workspace) -> tuple[Workspace, tuple[Finding, ...]]:
    """Return the workspace without health checks that may be met by what was not rendered.

    What they wait for is assumed to be ready, and a finding says so.
    """
    if not workspace.unavailable:
        return workspace, ()
    known = {name for member in workspace.members for name in _object_names(member)}
    findings: list[Finding] = []
    unit_trees = tuple(
        replace(
            unit_tree,
            members=tuple(
                _without_unknown(member, known, findings) for member in unit_tree.members
            ),
        )
        for unit_tree in workspace.unit_trees
    )
    return replace(workspace, unit_trees=unit_trees), tuple(findings)


def _object_names(member: RenderedUnit) -> list[ObjectName]:
    kinds = [
        (Kind.of(get_text(document.body, "apiVersion"), get_text(document.body, "kind")), document)
        for document in member.documents
    ]
    return [
        (kind.group, kind.name, get_text(document.body, "metadata", "name"))
        for kind, document in kinds
    ]


def _without_unknown(
    member: RenderedUnit, known: set[ObjectName], findings: list[Finding]
) -> RenderedUnit:
    refs = member.unit.policy.gating_refs
    unknown = [ref for ref in refs if (ref.kind.group, ref.kind.name, ref.name) not in known]
    if not unknown:
        return member
    findings.append(_assumed_finding(member.unit, unknown))
    remaining = tuple(ref for ref in refs if ref not in unknown)
    policy = msgspec.structs.replace(member.unit.policy, gating_refs=remaining)
    return replace(member, unit=msgspec.structs.replace(member.unit, policy=policy))


def _assumed_finding(unit: Unit, refs: list[Ref]) -> Finding:
    return Finding(
        code="units.check-assumed",
        severity=Severity.NOTE,
        message=f"`{unit.id}` waits for {', '.join(map(str, refs))}, assumed to be ready",
        location=unit.location,
        reason="a unit that could not be rendered may create it",
        unit=unit.id,
    )
