"""`tidegate argocd app`: Applications, with the subcommands of `argocd app`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Unpack

import click
from click.decorators import FC

from tidegate.cli import options
from tidegate.cli.commands.delete import delete as delete_command
from tidegate.cli.commands.plan import plan as plan_command
from tidegate.cli.commands.render import render as render_command
from tidegate.cli.commands.sync import sync as sync_command
from tidegate.cli.completion import complete_names
from tidegate.cli.options import CLUSTER, HEALTH, WATCH, Flags, with_options
from tidegate.cli.output import max_line_width
from tidegate.cli.progress import show_progress
from tidegate.cli.unit_arguments import (
    ALL,
    NAMESPACE_FILTER,
    REPOSITORY,
    SELECTOR,
    command_for_units,
    name_argument,
)

if TYPE_CHECKING:
    from tidegate.cli.progress import ProgressLine
    from tidegate.report.applications import ApplicationRow
    from tidegate.workspace.request import UnitSelection

APPLICATION_KINDS = ("Application",)
READ_OPTIONS = (*CLUSTER, *HEALTH, options.OFFLINE, options.REPO_MAP)
REVISION = click.Option(
    ["--revision", "at"],
    default="",
    help="Revision to sync to, if Argo CD is running.",
    metavar="REVISION",
)


def _output_option(*formats: str) -> Callable[[FC], FC]:
    choice = click.Choice(["wide", *formats, "json"])
    return click.option("-o", "--output", type=choice, default="wide", show_default=True)


@click.group()
def app() -> None:
    """List, inspect, sync, wait for and delete Applications, like `argocd app`.

    Tidegate needs no Argo CD server: it reads Git and compares it with the cluster.

    \b
    Examples:
      tidegate argocd app list -l team=shop
      tidegate argocd app get database
      tidegate argocd app sync database shop
    """


@app.command("list")
@with_options((REPOSITORY, NAMESPACE_FILTER, *SELECTOR), READ_OPTIONS)
@click.option(
    "-p",
    "--project",
    "project",
    default="",
    metavar="NAME",
    help="List only Applications of this project.",
)
@with_options(WATCH)
@_output_option("name")
def list_(**flags: Unpack[Flags]) -> int:
    """List Applications with their sync status, health and wave.

    \b
    Examples:
      tidegate argocd app list
      tidegate argocd app list -l team=shop -o name
      tidegate argocd app list -C ~/platform --context prod -o json
      tidegate argocd app list --watch
    """
    progress_line = _show_progress(flags)
    from tidegate.cli.applications import read_applications, watch_applications
    from tidegate.report.applications import application_document, application_list_lines

    def format_rows(rows: list[ApplicationRow]) -> tuple[Iterable[object], Iterable[str]]:
        names = (row.name for row in rows)
        lines = (
            names
            if flags["output"] == "name"
            else application_list_lines(rows, max_line_width(sys.stdout))
        )
        return map(application_document, rows), lines

    if flags["watch"]:
        return watch_applications((), flags, format_rows)
    rows, findings = read_applications((), flags, progress_line)
    options.print_result(flags["output"], *format_rows(rows))
    return options.print_findings(findings)


@app.command()
@name_argument(APPLICATION_KINDS)
@with_options((REPOSITORY, NAMESPACE_FILTER), READ_OPTIONS)
@click.option(
    "--refresh",
    "refresh",
    flag_value="normal",
    default="",
    help="Refresh the Application in a running Argo CD first.",
)
@click.option(
    "--hard-refresh",
    "refresh",
    flag_value="hard",
    help="Like --refresh, and discard cached manifests.",
)
@with_options(WATCH)
@_output_option("tree")
def get(called: str, **flags: Unpack[Flags]) -> int:
    """Show an Application and its resources as a tree, by phase and wave.

    The tree includes hooks and the objects that each resource owns. -o tree prints kind and name in
    one column.

    Tidegate compares Git and the cluster itself. With --refresh, a running Argo CD refreshes the
    Application first, so that its own status is up to date.

    \b
    Examples:
      tidegate argocd app get database
      tidegate argocd app get database -o tree
      tidegate argocd app get database --refresh
      tidegate argocd app get argocd/database -o json
    """
    progress_line = _show_progress(flags)
    from tidegate.cli.applications import read_applications, watch_applications
    from tidegate.report.applications import application_document, application_lines

    def format_rows(rows: list[ApplicationRow]) -> tuple[Iterable[object], Iterable[str]]:
        max_width, as_tree = max_line_width(sys.stdout), flags["output"] == "tree"
        return map(application_document, rows), (
            line for row in rows for line in application_lines(row, max_width, as_tree=as_tree)
        )

    if flags["watch"]:
        return watch_applications((called,), flags, format_rows, with_owned=True)
    rows, findings = read_applications((called,), flags, progress_line, with_owned=True)
    options.print_result(flags["output"], *format_rows(rows))
    return options.print_findings(findings)


@app.command()
@name_argument(APPLICATION_KINDS)
@with_options((REPOSITORY, NAMESPACE_FILTER), READ_OPTIONS)
@_output_option("tree")
def resources(called: str, **flags: Unpack[Flags]) -> int:
    """Show the resources of an Application as a tree, by phase and wave.

    \b
    Examples:
      tidegate argocd app resources database
      tidegate argocd app resources database -o json
    """
    progress_line = _show_progress(flags)
    from tidegate.cli.applications import read_applications
    from tidegate.report.applications import resource_document, resource_lines

    (row,), findings = read_applications((called,), flags, progress_line, with_owned=True)
    documents = map(resource_document, row.resources)
    as_tree = flags["output"] == "tree"
    lines = resource_lines(row.resources, max_line_width(sys.stdout), as_tree=as_tree)
    options.print_result(flags["output"], documents, lines)
    return options.print_findings(findings)


@app.command()
@name_argument(APPLICATION_KINDS)
@with_options((REPOSITORY, NAMESPACE_FILTER), READ_OPTIONS)
@options.OUTPUT
def history(called: str, **flags: Unpack[Flags]) -> int:
    """Show the previous rollouts of an Application.

    The history is stored in the Application, so the cluster must serve Applications.

    \b
    Examples:
      tidegate argocd app history database
    """
    progress_line = _show_progress(flags)
    from tidegate.cli.applications import read_applications
    from tidegate.report.applications import history_documents, history_lines

    (row,), findings = read_applications((called,), flags, progress_line)
    options.print_result(flags["output"], history_documents(row), history_lines(row))
    return options.print_findings(findings)


@app.command()
@click.argument(
    "names", nargs=-1, metavar="[NAME]...", shell_complete=complete_names(APPLICATION_KINDS)
)
@with_options((REPOSITORY, NAMESPACE_FILTER, *SELECTOR, ALL), READ_OPTIONS)
@click.option("--sync", is_flag=True, help="Wait until it is Synced.")
@click.option("--health", is_flag=True, help="Wait until it is Healthy.")
@click.option("--suspended", is_flag=True, help="Wait until it is Suspended.")
@click.option("--degraded", is_flag=True, help="Wait until it is Degraded.")
@click.option("--operation", is_flag=True, help="Wait until no operation is running.")
@click.option("--delete", "gone", is_flag=True, help="Wait until it is deleted.")
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="G:K:[NS/]NAME",
    help="Wait for this resource only. Repeatable; a leading ! excludes one.",
)
@options.TIMEOUT
@options.OUTPUT
def wait(
    names: tuple[str, ...],
    every: bool,  # noqa: FBT001 - a click parameter
    sync: bool,  # noqa: FBT001
    health: bool,  # noqa: FBT001
    suspended: bool,  # noqa: FBT001
    degraded: bool,  # noqa: FBT001
    operation: bool,  # noqa: FBT001
    gone: bool,  # noqa: FBT001
    **flags: Unpack[Flags],
) -> int:
    """Wait until Applications are Synced and Healthy and no operation is running.

    Options select other states. The command fails as soon as an Application becomes Degraded while
    it waits for Healthy.

    \b
    Examples:
      tidegate argocd app wait database shop
      tidegate argocd app wait -l team=shop --health --timeout 10m
      tidegate argocd app wait shop --resource apps:Deployment:shop --health
      tidegate argocd app wait shop --delete
    """
    if sum(map(bool, (names, flags["labels"], every))) != 1:
        raise click.UsageError("give names, -l SELECTOR or --all")
    from tidegate.cli.app_wait import DesiredState, wait_for_applications
    from tidegate.model.k8s.verdict import Health

    requested = {Health.HEALTHY: health, Health.SUSPENDED: suspended, Health.DEGRADED: degraded}
    healths = frozenset(state for state, is_requested in requested.items() if is_requested)
    if gone and (sync or operation or healths or flags["resources"]):
        raise click.UsageError("--delete cannot be combined with other states")
    desired = (
        DesiredState(deleted=True)
        if gone
        else DesiredState.from_flags(
            sync=sync, operation=operation, healths=healths, resources=flags["resources"]
        )
    )
    return wait_for_applications(names, desired, flags)


def _refused_command(name: str) -> click.Command:
    """Return a command that is refused with the file to edit: the Application is in Git."""

    @with_options((REPOSITORY, NAMESPACE_FILTER, options.OFFLINE, options.REPO_MAP))
    def refuse(called: str, more: tuple[str, ...], **flags: Unpack[Flags]) -> int:  # noqa: ARG001 - options of argocd
        from tidegate.cli.unit_arguments import find_resources, load_unit_trees
        from tidegate.errors import UsageError

        (resource,) = find_resources(
            load_unit_trees(flags["path"], flags),
            APPLICATION_KINDS,
            (called,),
            namespace=flags["namespace_filter"],
        )
        problem = f"`{resource.id}` is defined in Git and must be changed there"
        hint = "edit the file and commit it; `tidegate argocd app diff` shows the result"
        raise UsageError("usage.git", problem, location=resource.location, hint=hint)

    return click.Command(
        name,
        callback=refuse,
        params=[
            click.Argument(["called"], metavar="NAME"),
            click.Argument(["more"], nargs=-1, type=click.UNPROCESSED, metavar="[OPTION]..."),
            *reversed(getattr(refuse, "__click_params__", [])),
        ],
        context_settings={"ignore_unknown_options": True},
        help="Refuse to change an Application, and name the file in Git to edit instead.",
        hidden=name != "set",
    )


for _verb in ("set", "unset", "edit", "patch"):
    app.add_command(_refused_command(_verb))


def _show_progress(flags: Flags) -> ProgressLine:
    is_quiet = flags["output"] in {"name", "json"} or flags.get("watch", False)
    return show_progress("reading Applications", quiet=is_quiet)


def _delegate_sync(selection: UnitSelection, flags: Flags) -> int | None:
    from tidegate.cli.delegate import sync_by_argocd

    return sync_by_argocd(selection, flags)


app.add_command(
    command_for_units(
        sync_command,
        kinds=APPLICATION_KINDS,
        delegate=_delegate_sync,
        extra_options=(REVISION,),
        help_text="""Roll out Applications, wave by wave.

        If Argo CD is running, Tidegate asks it to sync one Application after another, and waits.

        \b
        Examples:
          tidegate argocd app sync database shop
          tidegate argocd app sync -l team=shop --prune
          tidegate argocd app sync --all --dry-run
        """,
    )
)
app.add_command(
    command_for_units(
        delete_command,
        kinds=APPLICATION_KINDS,
        help_text="""Delete the objects of Applications, in the reverse order of their waves.

        \b
        Examples:
          tidegate argocd app delete shop
          tidegate argocd app delete -l team=shop --yes
        """,
    )
)
app.add_command(
    command_for_units(
        plan_command,
        name="diff",
        kinds=APPLICATION_KINDS,
        help_text="""Show what a rollout of Applications would change.

        \b
        Examples:
          tidegate argocd app diff shop --context prod --exit-code
        """,
    )
)
app.add_command(
    command_for_units(
        render_command,
        name="manifests",
        kinds=APPLICATION_KINDS,
        help_text="""Render Applications.

        \b
        Examples:
          tidegate argocd app manifests shop
        """,
    )
)
