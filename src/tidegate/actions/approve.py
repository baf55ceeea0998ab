"""Approval of waiting units, in a running rollout and in later ones."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import msgspec

from tidegate.clusters.reader import run_procedure
from tidegate.engine.records.markers import build_approval
from tidegate.engine.records.storage import (
    TIDEGATE_NAMESPACE,
    RecordHead,
    list_heads,
    read_head,
    resource_name,
)
from tidegate.errors import ClusterError, Location, PlanError
from tidegate.model.units.unit import UnitId
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.errors import error_from_outcome
from tidegate.world.messages import is_error
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
    names: Iterable[str], world: Dispatcher, clusters: Iterable[str]
) -> list[ApprovedUnit]:
    """Approve what rollouts are deploying of these units: all of them or none.

    Raises PlanError if a name matches no unit, or if nothing of a unit waits for approval.
    """
    recorded = [
        recorded_unit
        for cluster in clusters
        for recorded_unit in await _read_records(cluster, world)
    ]
    selected = [recorded_unit for name in names for recorded_unit in _find_by_name(name, recorded)]
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


def _find_by_name(name: str, recorded: Sequence[_RecordedUnit]) -> list[_RecordedUnit]:
    """Return the units with this identity, or else with this name, one per cluster."""
    exact = [
        recorded_unit for recorded_unit in recorded if recorded_unit.unit == resource_name(name)
    ]
    by_name = [
        recorded_unit
        for recorded_unit in recorded
        if recorded_unit.head.kin and name in _names(recorded_unit.head.kin.unit)
    ]
    matches = [
        _RecordedUnit(_marker(recorded_unit, name), recorded_unit.cluster, recorded_unit.head)
        for recorded_unit in exact or by_name
    ]
    if not matches:
        units = [
            unit_name
            for recorded_unit in recorded
            if recorded_unit.head.kin
            for unit_name in _names(recorded_unit.head.kin.unit)
        ]
        closest = get_close_matches(name, units, n=1)
        hint = (
            f"did you mean `{closest[0]}`?"
            if closest
            else "use an identifier from `tidegate units`"
        )
        raise PlanError("plan.named", f"no rollout of unit `{name}` found", hint=hint)
    if len({match.unit for match in matches}) > 1:
        ambiguous = ", ".join(f"`{match.unit}`" for match in matches)
        hint = "use the full identifier"
        raise PlanError("plan.named", f"`{name}` is ambiguous: {ambiguous}", hint=hint)
    return matches


def _names(unit: UnitId) -> tuple[str, ...]:
    return (unit.tracking_id, str(unit), f"{unit.namespace}/{unit.name}", unit.name)


def _marker(recorded_unit: _RecordedUnit, name: str) -> str:
    return recorded_unit.head.kin.unit.tracking_id if recorded_unit.head.kin else name


def _refuse_finished(recorded_unit: _RecordedUnit) -> None:
    if recorded_unit.head.text in ("", recorded_unit.head.done):
        problem = f"`{recorded_unit.unit}` is not waiting for approval: its last rollout passed"
        hint = "approve it after its next rollout has started"
        raise PlanError(
            "plan.approval", problem, location=Location(recorded_unit.cluster), hint=hint
        )


async def _write_approval(recorded_unit: _RecordedUnit, world: Dispatcher) -> ApprovedUnit:
    by = f"{getpass.getuser()}@{socket.gethostname()}"
    write = build_approval(recorded_unit.unit, recorded_unit.head.text, by)
    (outcome,) = await send_requests(world, write, cluster=recorded_unit.cluster)
    if is_error(outcome):
        raise error_from_outcome(
            outcome, "approving", location=Location(f"unit {recorded_unit.unit}")
        )
    return ApprovedUnit(recorded_unit.unit, recorded_unit.cluster, recorded_unit.head.text)
