"""Applications with their status, read once or after each change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from tidegate.cli.delegate import refresh_by_argocd
from tidegate.cli.options import Flags
from tidegate.cli.output import note
from tidegate.cli.progress import ProgressLine
from tidegate.cli.requests import load_request, with_workspace
from tidegate.cli.unit_arguments import unit_selection
from tidegate.cli.unit_kinds import KINDS_BY_NOUN
from tidegate.cli.watch import WatchOutput, watch
from tidegate.clusters.session import Session
from tidegate.inspection.diff import plan_units
from tidegate.inspection.resources import Resources, object_rows, read_resources
from tidegate.inspection.status import UnitStatus, read_unit_statuses
from tidegate.model.finding import Finding
from tidegate.model.k8s.json_fields import get_text
from tidegate.planning.plan import PlanResult
from tidegate.report.applications import ApplicationRow, sync_window_texts
from tidegate.workspace.completeness import workspace_findings
from tidegate.workspace.workspace import Workspace

ApplicationReader = Callable[[Session, Workspace, PlanResult], Awaitable[list[ApplicationRow]]]
ApplicationFormatter = Callable[[list[ApplicationRow]], tuple[Iterable[object], Iterable[str]]]
APPLICATION_KINDS = KINDS_BY_NOUN["application"]


def read_applications(
    names: tuple[str, ...], flags: Flags, progress_line: ProgressLine, *, with_owned: bool = False
) -> tuple[list[ApplicationRow], tuple[Finding, ...]]:
    """Return the selected Applications compared with the cluster, and the findings.

    If `with_owned`, hooks and owned objects are included.
    """
    read = _application_reader(names, flags, with_owned=with_owned)

    async def read_with_workspace(
        session: Session, workspace: Workspace
    ) -> tuple[list[ApplicationRow], Workspace]:
        plan_result = await plan_units(workspace.deployable_trees, session)
        return await read(session, workspace, plan_result), workspace

    rows, workspace = with_workspace(load_request(flags["path"], flags), flags, read_with_workspace)
    progress_line.clear()
    return rows, workspace_findings(workspace)


def watch_applications(
    names: tuple[str, ...],
    flags: Flags,
    format_rows: ApplicationFormatter,
    *,
    with_owned: bool = False,
) -> int:
    """Print the selected Applications again after each change."""
    read = _application_reader(names, flags, with_owned=with_owned)

    async def read_and_format(
        session: Session, workspace: Workspace, plan_result: PlanResult
    ) -> WatchOutput:
        return format_rows(await read(session, workspace, plan_result))

    return watch(flags, read_and_format)


def _application_reader(
    names: tuple[str, ...], flags: Flags, *, with_owned: bool
) -> ApplicationReader:
    """Return a function that reads the current status of the selected Applications."""
    flags["selection"] = unit_selection(
        APPLICATION_KINDS, names, flags.get("labels", ""), flags["namespace_filter"]
    )
    project, refresh = flags.get("project", ""), flags.get("refresh", "")

    async def read(
        session: Session, workspace: Workspace, plan_result: PlanResult
    ) -> list[ApplicationRow]:
        nonlocal refresh
        if refresh:
            await refresh_by_argocd(session, workspace, hard=refresh == "hard")
            refresh = ""
        statuses = await read_unit_statuses(workspace, plan_result, session, APPLICATION_KINDS)
        rows = [
            await _application_row(status, session, with_owned=with_owned) for status in statuses
        ]
        return [
            row
            for row in rows
            if project in {"", get_text(row.desired, "spec", "project") or "default"}
        ]

    return read


async def _application_row(
    status: UnitStatus, session: Session, *, with_owned: bool
) -> ApplicationRow:
    resources = (
        await read_resources(status, session) if with_owned else Resources(object_rows(status))
    )
    for namespace in resources.unreadable:
        note(f"no permission to list objects in {namespace}: owned objects are left out")
    return ApplicationRow(
        f"{status.unit.id.namespace}/{status.unit.id.name}",
        status.wave,
        status.unit_resource,
        status.live_resource,
        status.is_synced,
        status.verdict,
        resources.rows,
        sync_window_texts(status.unit.policy.windows, session.world.now()),
    )
