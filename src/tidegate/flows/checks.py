"""Objects that units list as their health checks, in the versions that there are."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from tidegate.dialect.flux.part import STABLE_VERSIONS
from tidegate.dialect.units import is_dialect_kind
from tidegate.flows.discover.families import RenderedUnit
from tidegate.flows.field_places import FieldLocator
from tidegate.flows.session import Session
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Kind, Ref, with_served_version
from tidegate.model.reading import get_text
from tidegate.model.unit import Unit, UnitId

GroupKind = tuple[str, str]


async def resolve_health_checks(
    members: list[RenderedUnit], session: Session
) -> tuple[list[RenderedUnit], list[Finding]]:
    """Return the units with their health checks in served versions, and findings.

    Flux looks up group and kind only, so that an old version works there as well.
    """
    findings: list[Finding] = []
    resolved: list[RenderedUnit] = []
    deployed_kinds = (
        _deployed_kinds(members) if any(member.unit.policy.listed for member in members) else {}
    )
    parents = {_unit_key(member.unit): member.unit.parent for member in members}
    for rendered_unit in members:
        unit = rendered_unit.unit
        if not unit.policy.listed:
            resolved.append(rendered_unit)
            continue
        kinds = {served.kind: None for served in await session.kinds(unit.destination.cluster)}
        refs = tuple(_served_ref(ref, kinds, deployed_kinds) for ref in unit.policy.listed)
        pairs = enumerate(zip(unit.policy.listed, refs, strict=True))
        findings += [
            _version_finding(unit, index, old, new) for index, (old, new) in pairs if old != new
        ]
        unserved = [check for check in refs if _is_unserved_unit(check, unit, parents, kinds)]
        findings += [_unchecked_finding(unit, check) for check in unserved]
        checks = tuple(check for check in refs if check not in unserved)
        policy = msgspec.structs.replace(unit.policy, listed=checks)
        resolved.append(replace(rendered_unit, unit=msgspec.structs.replace(unit, policy=policy)))
    return resolved, [*FieldLocator(session.source_root).locate_findings(findings)]


def _deployed_kinds(members: Iterable[RenderedUnit]) -> dict[GroupKind, Kind]:
    """Return the kinds of all rendered objects, in the version in which they are rendered."""
    bodies = (document.body for member in members for document in member.documents)
    kinds = (Kind.of(get_text(body, "apiVersion"), get_text(body, "kind")) for body in bodies)
    return {(kind.group, kind.name): kind for kind in kinds}


def _served_ref(ref: Ref, kinds: dict[Kind, None], deployed_kinds: dict[GroupKind, Kind]) -> Ref:
    """Return the object in a served version, or in the version in which it is rendered."""
    served = with_served_version(ref, kinds)
    if served.kind in kinds or ref.kind.version in STABLE_VERSIONS:
        return served
    kind = deployed_kinds.get((ref.kind.group, ref.kind.name), ref.kind)
    return msgspec.structs.replace(ref, kind=kind)


def _unit_key(unit: Unit) -> tuple[str, str, str]:
    return unit.id.kind, unit.id.namespace, unit.id.name


def _is_unserved_unit(
    ref: Ref,
    unit: Unit,
    parents: dict[tuple[str, str, str], UnitId | None],
    kinds: dict[Kind, None],
) -> bool:
    """Whether the ref is the unit resource of a unit of another parent, of an unserved kind."""
    name = (ref.kind.name, ref.namespace, ref.name)
    is_unit = is_dialect_kind(ref.kind) and name in parents
    return is_unit and parents[name] != unit.id and ref.kind not in kinds


def _unchecked_finding(unit: Unit, ref: Ref) -> Finding:
    return Finding(
        code="flux.uncheckable",
        severity=Severity.WARNING,
        message=f"`{unit.id}` does not wait for {ref}",
        location=unit.location and unit.location.with_field("spec.healthChecks"),
        reason="another unit brings it, and its kind is not served in this cluster",
        fix="depend on that unit with `dependsOn`",
    )


def _version_finding(unit: Unit, index: int, old: Ref, new: Ref) -> Finding:
    location = unit.location and unit.location.with_field(f"spec.healthChecks[{index}].apiVersion")
    return Finding(
        code="flux.check",
        severity=Severity.WARNING,
        message=f"a health check names `{old.kind.api_version}` of {old.kind.name}, which is not"
        " served",
        location=location,
        reason="Flux looks for the group and the kind alone, and finds it all the same",
        fix=f"write `{new.kind.api_version}`",
    )
