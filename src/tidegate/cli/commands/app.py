"""`tidegate app`: Applications, with the subcommands of `argocd app`."""

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
    from tidegate.workspace.discovery.unit_tree import UnitTree
    from tidegate.workspace.selection import SelectedResource

APPLICATION_KINDS = ("Application",)
READ_OPTIONS = (*CLUSTER, *HEALTH, options.OFFLINE, options.REPO_MAP)
REVISION = click.Option(
    ["--revision", "at"],
    default="",
    help="What a live Argo CD is to sync to, instead of Git's word.",
)


def _output_option(*formats: str) -> Callable[[FC], FC]:
    choice = click.Choice(["wide", *formats, "json"])
    return click.option("-o", "--output", type=choice, default="wide", show_default=True)


@click.group()
def app() -> None:
    """Look at Applications, and roll them out, by the verbs of `argocd app`.

    There is no server: what Git says is read here, and compared with the cluster.

    \b
    Examples:
      tidegate app list -l team=shop
      tidegate app get database
      tidegate app sync database shop
    """


@app.command("list")
@with_options((REPOSITORY, NAMESPACE_FILTER, *SELECTOR), READ_OPTIONS)
@click.option("-p", "--project", "project", default="", help="Only those of this project.")
@with_options(WATCH)
@_output_option("name")
def list_(**flags: Unpack[Flags]) -> int:
    """Show all Applications: how they stand, and in which wave they come.

    \b
    Examples:
      tidegate app list
      tidegate app list -l team=shop -o name
      tidegate app list -C ~/platform --context prod -o json
      tidegate app list --watch
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
@click.option("--refresh", is_flag=True, help="Have a live Argo CD look again before.")
@click.option("--hard-refresh", is_flag=True, help="The same, and forget what it has rendered.")
@with_options(WATCH)
@_output_option("tree")
def get(called: str, refresh: bool, hard_refresh: bool, **flags: Unpack[Flags]) -> int:  # noqa: FBT001 - click's way
    """Show one Application, and its resources as a tree, by phases and waves.

    Hooks are among them, and below each object stands what it owns. -o tree has kind and name in
    one column.

    What is shown is compared now, whoever else has looked before. With --refresh a live Argo CD
    looks again, too, so that what it says of the Application is of now.

    \b
    Examples:
      tidegate app get database
      tidegate app get database -o tree
      tidegate app get database --refresh
      tidegate app get argocd/database -o json
    """
    progress_line = _show_progress(flags)
    from tidegate.cli.applications import read_applications, watch_applications
    from tidegate.report.applications import application_document, application_lines

    if refresh or hard_refresh:
        from tidegate.cli.delegate import refresh_by_argocd

        refresh_by_argocd(called, flags, hard=hard_refresh)

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
    """Show the resources of an Application as a tree, by phases and waves.

    \b
    Examples:
      tidegate app resources database
      tidegate app resources database -o json
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
    """Show what was rolled out of an Application before.

    It is written where the cluster serves Applications.

    \b
    Examples:
      tidegate app history database
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
@click.option("--sync", is_flag=True, help="Until all of it is as Git has it.")
@click.option("--health", is_flag=True, help="Until it is Healthy.")
@click.option("--suspended", is_flag=True, help="Until it is Suspended; or any other of these.")
@click.option("--degraded", is_flag=True, help="Until it is Degraded; or any other of these.")
@click.option("--operation", is_flag=True, help="Until no operation of Argo CD is under way.")
@click.option("--delete", "gone", is_flag=True, help="Until it is deleted.")
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="G:K:[NS/]NAME",
    help="Look at this resource of it alone; may be repeated, and ! leaves one out.",
)
@options.TIMEOUT
@options.OUTPUT
def wait(
    names: tuple[str, ...],
    every: bool,  # noqa: FBT001 - click's way
    sync: bool,  # noqa: FBT001
    health: bool,  # noqa: FBT001
    suspended: bool,  # noqa: FBT001
    degraded: bool,  # noqa: FBT001
    operation: bool,  # noqa: FBT001
    gone: bool,  # noqa: FBT001
    **flags: Unpack[Flags],
) -> int:
    """Wait until Applications are synced, healthy and at rest, or as the options say.

    It ends early where one becomes Degraded while it is waited for to become Healthy.

    \b
    Examples:
      tidegate app wait database shop
      tidegate app wait -l team=shop --health --timeout 10m
      tidegate app wait shop --resource apps:Deployment:shop --health
      tidegate app wait shop --delete
    """
    if sum(map(bool, (names, flags["labels"], every))) != 1:
        raise click.UsageError("give names, or -l SELECTOR, or --all")
    from tidegate.cli.app_wait import DesiredState, wait_for_applications
    from tidegate.model.k8s.verdict import Health

    requested = {Health.HEALTHY: health, Health.SUSPENDED: suspended, Health.DEGRADED: degraded}
    healths = frozenset(state for state, is_requested in requested.items() if is_requested)
    if gone and (sync or operation or healths or flags["resources"]):
        raise click.UsageError("--delete is waited for alone")
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
    def refuse(called: str, more: tuple[str, ...], **flags: Unpack[Flags]) -> int:  # noqa: ARG001 - theirs
        from tidegate.cli.unit_arguments import find_resources, load_unit_trees
        from tidegate.errors import UsageError

        (resource,) = find_resources(
            load_unit_trees(flags["place"], flags),
            APPLICATION_KINDS,
            (called,),
            namespace=flags["namespace_filter"],
        )
        problem = f"`{resource.id}` stands in Git, and is changed there"
        hint = "edit that file and commit it; `tidegate app diff` shows what that comes to"
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
        help="Refused: what it would change stands in Git. Says in which file.",
        hidden=name != "set",
    )


for _verb in ("set", "unset", "edit", "patch"):
    app.add_command(_refused_command(_verb))


def _show_progress(flags: Flags) -> ProgressLine:
    is_quiet = flags["output"] in {"name", "json"} or flags.get("watch", False)
    return show_progress("looking at Applications", quiet=is_quiet)


def _delegate_sync(
    resources: list[SelectedResource], unit_trees: tuple[UnitTree, ...], flags: Flags
) -> int | None:
    from tidegate.cli.delegate import sync_by_argocd

    return sync_by_argocd(resources, unit_trees, flags)


app.add_command(
    command_for_units(
        sync_command,
        kinds=APPLICATION_KINDS,
        delegate=_delegate_sync,
        extra_options=(REVISION,),
        help_text="""Roll out Applications, one wave after another. Argo CD itself goes by name.

        An Argo CD that is alive is asked to, one Application after another, and waited for.

        \b
        Examples:
          tidegate app sync database shop
          tidegate app sync -l team=shop --prune
          tidegate app sync --all --dry-run
        """,
    )
)
app.add_command(
    command_for_units(
        delete_command,
        kinds=APPLICATION_KINDS,
        help_text="""Delete what Applications have brought, in the reverse of their waves.

        \b
        Examples:
          tidegate app delete shop
          tidegate app delete -l team=shop --yes
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
          tidegate app diff shop --context prod --exit-code
        """,
    )
)
app.add_command(
    command_for_units(
        render_command,
        name="manifests",
        kinds=APPLICATION_KINDS,
        help_text="""Show what Applications render to.

        \b
        Examples:
          tidegate app manifests shop
        """,
    )
)
