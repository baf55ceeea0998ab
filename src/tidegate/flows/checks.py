"""Objects that units list as their health checks, in the versions that there are."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from tidegate.dialect.flux.part import CURRENT
from tidegate.dialect.units import is_own_kind
from tidegate.flows.discover.families import Member
from tidegate.flows.field_places import SourceFiles
from tidegate.flows.session import Session
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Kind, Ref, as_served
from tidegate.model.reading import text
from tidegate.model.unit import Unit, UnitId

GroupKind = tuple[str, str]


async def settle_checks(
    members: list[Member], session: Session
) -> tuple[list[Member], list[Finding]]:
    """The members with what they list as it is served, and what is said of other versions.

    Flux looks for the group and the kind alone, so that an old version works there as well.
    """
    findings: list[Finding] = []
    settled: list[Member] = []
    brought = _brought(members) if any(one.unit.policy.listed for one in members) else {}
    parents = {_name_of(one.unit): one.unit.parent for one in members}
    for member in members:
        unit = member.unit
        if not unit.policy.listed:
            settled.append(member)
            continue
        kinds = {one.kind: None for one in await session.kinds(unit.destination.cluster)}
        listed = tuple(_served(ref, kinds, brought) for ref in unit.policy.listed)
        pairs = enumerate(zip(unit.policy.listed, listed, strict=True))
        findings += [_told(unit, at, old, new) for at, (old, new) in pairs if old != new]
        strange = [one for one in listed if _is_strange(one, unit, parents, kinds)]
        findings += [_unwaited(unit, one) for one in strange]
        kept = tuple(one for one in listed if one not in strange)
        policy = msgspec.structs.replace(unit.policy, listed=kept)
        settled.append(replace(member, unit=msgspec.structs.replace(unit, policy=policy)))
    return settled, [*SourceFiles(session.tree).of_findings(findings)]


def _brought(members: Iterable[Member]) -> dict[GroupKind, Kind]:
    """The kinds of what units bring, in the version in which they bring it."""
    bodies = (one.body for member in members for one in member.documents)
    kinds = (Kind.of(text(body, "apiVersion"), text(body, "kind")) for body in bodies)
    return {(one.group, one.name): one for one in kinds}


def _served(ref: Ref, kinds: dict[Kind, None], brought: dict[GroupKind, Kind]) -> Ref:
    """The same object in a version that is served, or in the one that somebody brings."""
    served = as_served(ref, kinds)
    if served.kind in kinds or ref.kind.version in CURRENT:
        return served
    kind = brought.get((ref.kind.group, ref.kind.name), ref.kind)
    return msgspec.structs.replace(ref, kind=kind)


def _name_of(unit: Unit) -> tuple[str, str, str]:
    return unit.id.kind, unit.id.namespace, unit.id.name


def _is_strange(
    ref: Ref,
    unit: Unit,
    parents: dict[tuple[str, str, str], UnitId | None],
    kinds: dict[Kind, None],
) -> bool:
    """Whether it is the own object of a unit that somebody else brings, and nobody serves it."""
    name = (ref.kind.name, ref.namespace, ref.name)
    is_unit = is_own_kind(ref.kind) and name in parents
    return is_unit and parents[name] != unit.id and ref.kind not in kinds


def _unwaited(unit: Unit, ref: Ref) -> Finding:
    return Finding(
        code="flux.uncheckable",
        severity=Severity.WARNING,
        sentence=f"`{unit.id}` does not wait for {ref}",
        where=unit.where and unit.where.at("spec.healthChecks"),
        why="another unit brings it, and its kind is not served in this cluster",
        fix="depend on that unit with `dependsOn`",
    )


def _told(unit: Unit, at: int, old: Ref, new: Ref) -> Finding:
    where = unit.where and unit.where.at(f"spec.healthChecks[{at}].apiVersion")
    return Finding(
        code="flux.check",
        severity=Severity.WARNING,
        sentence=f"a health check names `{old.kind.api_version}` of {old.kind.name}, which is not"
        " served",
        where=where,
        why="Flux looks for the group and the kind alone, and finds it all the same",
        fix=f"write `{new.kind.api_version}`",
    )
