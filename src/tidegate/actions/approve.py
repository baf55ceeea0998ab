"""Approval of waiting units, in a running rollout and in later ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import msgspec

from tidegate.clusters.reader import run_procedure
from tidegate.clusters.session import user_identity
from tidegate.engine.records.markers import build_approval
from tidegate.engine.records.storage import (
    TIDEGATE_NAMESPACE,
    RecordHead,
    list_heads,
    read_head,
    resource_name,
)
from tidegate.errors import ClusterError, Location, PlanError
from tidegate.model.text.names import unknown_name_error
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.errors import raise_for_error
from tidegate.world.one_shot import send_requests


class ApprovedUnit(msgspec.Struct, frozen=True):
    """An approved unit, its cluster, and the digest of the approved text."""

    unit: str
    cluster: str
    text: str


class _RecordedUnit(msgspec.Struct, frozen=True):
    """A unit as the cluster has it recorded."""

    unit: str
    """Its identity, or the name of its record if only that is known."""
    cluster: str
    head: RecordHead


async def approve_units(
    identities: Iterable[str], world: Dispatcher, clusters: Iterable[str]
) -> list[ApprovedUnit]:
    """Approve what rollouts are deploying of these units: all of them or none.

    Raises PlanError if a unit has no rollout, or if nothing of a unit waits for approval.
    """
    recorded = [
        recorded_unit
        for cluster in clusters
        for recorded_unit in await _read_records(cluster, world)
    ]
    selected = [
        recorded_unit
        for identity in identities
        for recorded_unit in _find_records(identity, recorded)
    ]
    for recorded_unit in selected:
        _refuse_finished(recorded_unit)
    return [await _write_approval(recorded_unit, world) for recorded_unit in selected]


async def _read_records(cluster: str, world: Dispatcher) -> list[_RecordedUnit]:
    heads = await run_procedure(list_heads(cluster, TIDEGATE_NAMESPACE), world)
    if heads is None:
        problem = f"cannot list rollouts: listing Secrets in `{TIDEGATE_NAMESPACE}` is forbidden"
        hint = f"grant `list` on Secrets in namespace `{TIDEGATE_NAMESPACE}`"
        raise ClusterError("cluster.records", problem, location=Location(cluster), hint=hint)
    return [_RecordedUnit(name, cluster, read_head(live)) for name, live in heads.items()]


def _find_records(identity: str, recorded: Sequence[_RecordedUnit]) -> list[_RecordedUnit]:
    """Return the records of the unit with this identity, one per cluster."""
    matches = [
        _RecordedUnit(_name(recorded_unit, identity), recorded_unit.cluster, recorded_unit.head)
        for recorded_unit in recorded
        if recorded_unit.unit == resource_name(identity) or identity in _identities(recorded_unit)
    ]
    if not matches:
        known = [name for recorded_unit in recorded for name in _identities(recorded_unit)]
        make_error = partial(PlanError, "plan.named")
        raise unknown_name_error(identity, known, make_error, noun="rollout of unit")
    if len({match.unit for match in matches}) > 1:
        ambiguous = ", ".join(f"`{match.unit}`" for match in matches)
        hint = "add the name of the cluster, as listed"
        raise PlanError("plan.named", f"`{identity}` is ambiguous: {ambiguous}", hint=hint)
    return matches


def _identities(recorded_unit: _RecordedUnit) -> tuple[str, ...]:
    """Return the identity of a recorded unit, with and without its cluster; none if unknown."""
    origin = recorded_unit.head.origin
    return (origin.unit.tracking_id, origin.unit.qualified_name) if origin else ()


def _name(recorded_unit: _RecordedUnit, identity: str) -> str:
    return recorded_unit.head.origin.unit.tracking_id if recorded_unit.head.origin else identity


def _refuse_finished(recorded_unit: _RecordedUnit) -> None:
    if recorded_unit.head.text in ("", recorded_unit.head.done):
        problem = f"`{recorded_unit.unit}` is not waiting for approval: its last rollout passed"
        hint = "approve it after its next rollout has started"
        raise PlanError(
            "plan.approval", problem, location=Location(recorded_unit.cluster), hint=hint
        )


async def _write_approval(recorded_unit: _RecordedUnit, world: Dispatcher) -> ApprovedUnit:
    write = build_approval(recorded_unit.unit, recorded_unit.head.text, user_identity())
    (outcome,) = await send_requests(world, write, cluster=recorded_unit.cluster)
    raise_for_error(outcome, "approving", Location(f"unit {recorded_unit.unit}"))
    return ApprovedUnit(recorded_unit.unit, recorded_unit.cluster, recorded_unit.head.text)
