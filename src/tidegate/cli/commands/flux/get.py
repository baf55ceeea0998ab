"""`tidegate flux get`: Flux units and sources, like `flux get`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completion import complete_names_of_noun, complete_word
from tidegate.cli.options import CLUSTER, HEALTH, WATCH, Flags, with_options
from tidegate.cli.output import max_line_width
from tidegate.cli.progress import show_progress
from tidegate.cli.unit_arguments import REPOSITORY, SELECTOR, unknown_noun_message
from tidegate.errors import UsageError

if TYPE_CHECKING:
    from tidegate.clusters.session import Session
    from tidegate.inspection.status import UnitStatus
    from tidegate.model.finding import Finding
    from tidegate.planning.plan import PlanResult
    from tidegate.report.flux import FluxRow
    from tidegate.workspace.workspace import Workspace

    RowReader = Callable[[Session, Workspace, PlanResult], Awaitable[list[FluxRow]]]
    RowFormatter = Callable[[list[FluxRow]], tuple[Iterable[object], Iterable[str]]]

SOURCE_KINDS = ("GitRepository", "OCIRepository", "HelmRepository", "HelmChart", "Bucket")
KINDS_BY_NOUN = {
    "kustomizations": ("Kustomization",),
    "helmreleases": ("HelmRelease",),
    "sources": SOURCE_KINDS,
    "gitrepositories": ("GitRepository",),
    "all": (*SOURCE_KINDS, "Kustomization", "HelmRelease"),
}
NOUN_ALIASES = {
    "kustomization": "kustomizations",
    "ks": "kustomizations",
    "helmrelease": "helmreleases",
    "hr": "helmreleases",
    "source": "sources",
    "gitrepo": "gitrepositories",
    "gitrepository": "gitrepositories",
}


@options.command()
@click.argument(
    "which",
    metavar="kustomizations|helmreleases|sources|all",
    shell_complete=complete_word([*KINDS_BY_NOUN]),
)
@click.argument(
    "called",
    metavar="[NAME]",
    required=False,
    default="",
    shell_complete=complete_names_of_noun(
        lambda which: KINDS_BY_NOUN.get(NOUN_ALIASES.get(which, which), ())
    ),
)
@with_options((REPOSITORY, *SELECTOR), CLUSTER, HEALTH)
@click.option(
    "-A", "--all-namespaces", "everywhere", is_flag=True, help="List objects of all namespaces."
)
@options.namespace_filter("List objects of this namespace.", default="flux-system")
@options.OFFLINE
@options.REPO_MAP
@with_options(WATCH)
@options.output_option(
    ["text", "wide", "json"], text="Output format. wide: with sources, untruncated."
)
def get(which: str, called: str, **flags: Unpack[Flags]) -> int:
    """List Kustomizations, HelmReleases and sources with their revision and status.

    The short names `ks`, `hr` and `gitrepo` work, too.

    \b
    Examples:
      tidegate flux get kustomizations
      tidegate flux get ks apps -n flux-system
      tidegate flux get ks -A -o wide
      tidegate flux get all -A -o json
      tidegate flux get ks --watch
    """
    from tidegate.report.flux import flux_document, flux_lines

    noun = NOUN_ALIASES.get(which, which)
    if noun not in KINDS_BY_NOUN:
        raise click.UsageError(unknown_noun_message(which, tuple(KINDS_BY_NOUN)))
    read_rows = _row_reader(noun, called, flags)

    def format_rows(rows: list[FluxRow]) -> tuple[Iterable[object], Iterable[str]]:
        wide, everywhere = flags["output"] == "wide", flags["everywhere"]
        max_width = max_line_width(sys.stdout)
        lines = flux_lines(rows, all_namespaces=everywhere, wide=wide, max_width=max_width)
        return map(flux_document, rows), lines

    if flags["watch"]:
        return _watch_rows(read_rows, flags, format_rows, has_units=bool(_unit_kinds(noun)))
    rows, findings = _read_rows(read_rows, noun, flags)
    if not rows and flags["output"] != "json":
        namespace_text = "any" if flags["everywhere"] else f'"{flags["namespace_filter"]}"'
        raise UsageError("usage.unit", f"no {noun} found in {namespace_text} namespace")
    options.print_result(flags["output"], *format_rows(rows))
    return options.print_findings(findings)


def _watch_rows(
    read_rows: RowReader, flags: Flags, format_rows: RowFormatter, *, has_units: bool
) -> int:
    """Print the rows again after each change."""
    from tidegate.cli.watch import WatchOutput, watch

    async def read_and_format(
        session: Session, workspace: Workspace, plan_result: PlanResult
    ) -> WatchOutput:
        return format_rows(await read_rows(session, workspace, plan_result))

    return watch(flags, read_and_format, needs_plan=has_units)


def _read_rows(
    read_rows: RowReader, noun: str, flags: Flags
) -> tuple[list[FluxRow], tuple[Finding, ...]]:
    """Return the selected rows and the findings."""
    progress_line = show_progress(f"reading {noun}", quiet=flags["output"] == "json")
    from tidegate.cli.requests import load_request, with_workspace
    from tidegate.inspection.diff import NO_PLAN, plan_units
    from tidegate.workspace.completeness import workspace_findings

    async def read_with_workspace(
        session: Session, workspace: Workspace
    ) -> tuple[list[FluxRow], Workspace]:
        plan_result = (
            await plan_units(workspace.deployable_trees, session) if _unit_kinds(noun) else NO_PLAN
        )
        return await read_rows(session, workspace, plan_result), workspace

    rows, workspace = with_workspace(load_request(flags["path"], flags), flags, read_with_workspace)
    progress_line.clear()
    return rows, workspace_findings(workspace)


def _unit_kinds(noun: str) -> list[str]:
    return [kind for kind in KINDS_BY_NOUN[noun] if kind not in SOURCE_KINDS]


def _row_reader(noun: str, name: str, flags: Flags) -> RowReader:
    """Return a function that reads the selected objects and compares them with the cluster."""
    from tidegate.cli.unit_arguments import unit_selection
    from tidegate.inspection.status import read_desired_and_live, read_unit_statuses
    from tidegate.report.flux import FluxRow
    from tidegate.workspace.selection import parse_selector

    kinds = KINDS_BY_NOUN[noun]
    unit_kinds = _unit_kinds(noun)
    names = (name,) if name and noun != "all" else ()
    if unit_kinds and noun != "all":
        flags["selection"] = unit_selection(unit_kinds, names, flags["labels"])
    selector = parse_selector(flags["labels"])

    def is_selected(row: FluxRow) -> bool:
        has_namespace = flags["everywhere"] or row.namespace == flags["namespace_filter"]
        has_name = name in {"", row.name, f"{row.namespace}/{row.name}"}
        return (
            has_namespace
            and has_name
            and all(requirement.matches(row.labels) for requirement in selector)
        )

    async def read(
        session: Session, workspace: Workspace, plan_result: PlanResult
    ) -> list[FluxRow]:
        sources = [source_kind for source_kind in kinds if source_kind in SOURCE_KINDS]
        trees = workspace.repository_trees
        bodies = await read_desired_and_live(trees, sources, session, workspace.scan)
        rows = [FluxRow(desired, live) for desired, live in bodies]
        if unit_kinds:
            statuses = await read_unit_statuses(workspace, plan_result, session, unit_kinds)
            rows += map(_flux_row, statuses)
        return [row for row in rows if is_selected(row)]

    return read


def _flux_row(status: UnitStatus) -> FluxRow:
    from tidegate.model.display import count_noun
    from tidegate.model.k8s.verdict import Health
    from tidegate.report.flux import FluxRow

    differing = sum(not object_status.is_synced for object_status in status.objects)
    is_healthy = not differing and status.verdict.health is Health.HEALTHY
    if differing:
        status_message = (
            f"{differing} of {count_noun(len(status.objects), 'object')} differ from Git"
        )
    elif is_healthy:
        status_message = f"{count_noun(len(status.objects), 'object')} in sync and healthy"
    else:
        status_message = f"{status.verdict.health}: {status.verdict.message}"
    return FluxRow(status.unit_resource, status.live_resource, status_message, is_healthy)
