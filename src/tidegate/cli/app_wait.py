"""Implementation of `argocd app wait`."""

from __future__ import annotations

from contextlib import aclosing

import msgspec

from tidegate.cli import options
from tidegate.cli.options import Flags
from tidegate.cli.outcome_codes import OUTCOME_CODES
from tidegate.cli.output import note
from tidegate.cli.requests import load_request, with_workspace
from tidegate.cli.unit_arguments import unit_selection
from tidegate.clusters.session import Session
from tidegate.errors import WaitTimeoutError
from tidegate.inspection.diff import EMPTY_PLAN, plan_units
from tidegate.inspection.events import diagnose_statuses
from tidegate.inspection.status import (
    UnitStatus,
    filter_unit_statuses,
    is_deleted,
    read_unit_statuses,
)
from tidegate.inspection.watch import watch_changes, watch_targets
from tidegate.model.k8s.json_fields import get_text, get_value
from tidegate.model.k8s.verdict import Health
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.model.times import format_duration
from tidegate.report.rollout.explain import wait_explanation, wait_rows
from tidegate.report.styled_text import plain_text
from tidegate.workspace.workspace import Workspace

FINISHED_PHASES = frozenset({"", "Succeeded", "Failed", "Error"})


class DesiredState(msgspec.Struct, frozen=True):
    """State of an Application to wait for; any of the healths is accepted."""

    in_sync: bool = False
    idle: bool = False
    healths: frozenset[Health] = frozenset()
    resources: tuple[str, ...] = ()
    """Resources to look at; empty for all."""
    deleted: bool = False
    """Whether to wait for deletion."""

    @classmethod
    def from_flags(
        cls,
        *,
        sync: bool,
        operation: bool,
        healths: frozenset[Health],
        resources: tuple[str, ...] = (),
    ) -> DesiredState:
        """Return the state from the flags; without any, the defaults of `argocd app wait`."""
        if not (sync or operation or healths):
            sync, operation, healths = True, True, frozenset({Health.HEALTHY})
        return cls(in_sync=sync, idle=operation, healths=healths, resources=resources)

    async def is_met(self, status: UnitStatus, session: Session) -> bool:
        if self.deleted:
            return await is_deleted(status, session)
        is_healthy = not self.healths or status.verdict.health in self.healths
        return (
            (status.is_synced or not self.in_sync)
            and is_healthy
            and (_is_idle(status) or not self.idle)
        )

    def has_degraded(self, previous: Health | None, status: UnitStatus) -> bool:
        """Return whether an Application became Degraded while waiting for Healthy."""
        is_degraded = status.verdict.health is Health.DEGRADED
        return (
            is_degraded
            and self.healths == {Health.HEALTHY}
            and previous not in {None, Health.DEGRADED}
        )


def _is_idle(status: UnitStatus) -> bool:
    """Return whether no operation of a running Argo CD is in progress."""
    phase = get_text(status.live_resource, "status", "operationState", "phase")
    return get_value(status.live_resource, "operation") is None and phase in FINISHED_PHASES


def wait_for_applications(names: tuple[str, ...], desired: DesiredState, flags: Flags) -> int:
    """Wait for the selected Applications and return the exit code. Raises on timeout."""
    kinds = ("Application",)
    flags["selection"] = unit_selection(kinds, names, flags["labels"], flags["namespace_filter"])
    last_statuses: dict[str, tuple[str, Health]] = {}

    async def wait(session: Session, workspace: Workspace) -> RolloutOutcome:
        plan_result = await plan_units(workspace.deployable_trees, session)
        targets, pending = watch_targets(workspace, plan_result, session), list[UnitStatus]()
        async with aclosing(watch_changes(targets, session, flags["timeout"])) as changes:
            async for _ in changes:
                statuses = await read_unit_statuses(workspace, plan_result, session, kinds)
                selected = filter_unit_statuses(statuses, desired.resources)
                degraded = [
                    status
                    for status in selected
                    if desired.has_degraded(_previous_health(last_statuses, status), status)
                ]
                _print_changes(selected, last_statuses, flags["output"])
                if degraded:
                    reason = (
                        f"`{degraded[0].unit.id}` became Degraded: {degraded[0].verdict.message}"
                    )
                    await _print_explanation(
                        degraded, RolloutOutcome.FAILED, reason, session, flags["output"]
                    )
                    note(reason)
                    return RolloutOutcome.FAILED
                pending = [
                    status for status in selected if not await desired.is_met(status, session)
                ]
                if not pending:
                    return RolloutOutcome.PASSED
        timeout = _timeout_error(pending, flags)
        await _print_explanation(
            pending, RolloutOutcome.TIMED_OUT, timeout.problem, session, flags["output"]
        )
        raise timeout

    return OUTCOME_CODES[with_workspace(load_request(flags["path"], flags), flags, wait)]


async def _print_explanation(
    pending: list[UnitStatus], outcome: RolloutOutcome, reason: str, session: Session, output: str
) -> None:
    """Print the diagnosis of the Applications that are not healthy."""
    evidence = await diagnose_statuses(pending, session)
    plan = pending[0].plan if pending else EMPTY_PLAN
    document = wait_explanation(plan, outcome, reason, evidence)
    options.print_result(output, [document], map(plain_text, wait_rows(plan, evidence)))


def _previous_health(
    last_statuses: dict[str, tuple[str, Health]], status: UnitStatus
) -> Health | None:
    last = last_statuses.get(str(status.unit.id))
    return last[1] if last else None


def _print_changes(
    statuses: list[UnitStatus], last_statuses: dict[str, tuple[str, Health]], output: str
) -> None:
    """Print a line for each Application whose status has changed."""
    for status in statuses:
        name, sync = str(status.unit.id), "Synced" if status.is_synced else "OutOfSync"
        if last_statuses.get(name) == (sync, status.verdict.health):
            continue
        last_statuses[name] = (sync, status.verdict.health)
        reason = f": {status.verdict.message}" if status.verdict.message else ""
        line = (
            f"{status.unit.id.namespace}/{status.unit.id.name}  {sync} "
            f" {status.verdict.health}{reason}"
        )
        document = {
            "unit": name,
            "synced": status.is_synced,
            "health": status.verdict.health.value,
            "message": status.verdict.message,
        }
        options.print_result(output, [document], [line])


def _timeout_error(pending: list[UnitStatus], flags: Flags) -> WaitTimeoutError:
    names = ", ".join(f'"{status.unit.id.name}"' for status in pending)
    duration = format_duration(flags["timeout"]) if flags["timeout"] else "0s"
    worst = pending[0] if pending else None
    hint = f"{worst.unit.id}: {worst.verdict.health}, {worst.verdict.message}" if worst else ""
    problem = f"timed out ({duration}) waiting for app {names} match desired state"
    return WaitTimeoutError("cluster.wait-timeout", problem, hint=hint)
