"""`tidegate app`: Applications by the verbs of `argocd app`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Unpack

import click
from click.decorators import FC

from tidegate.cli import options
from tidegate.cli.commands.delete import delete as delete_verb
from tidegate.cli.commands.plan import plan as plan_verb
from tidegate.cli.commands.render import render as render_verb
from tidegate.cli.commands.sync import sync as sync_verb
from tidegate.cli.completing import complete_names
from tidegate.cli.doing import say_first
from tidegate.cli.naming import ALL, HOME, LABELS, PLACE, called_argument, units_like
from tidegate.cli.unit_options import CHANGING, CLUSTER, HEALTH, Given, takes
from tidegate.cli.window import room_on

if TYPE_CHECKING:
    from tidegate.cli.doing import Doing
    from tidegate.flows.discover import Family
    from tidegate.flows.named import NamedObject
    from tidegate.report.applications import ApplicationRow

KINDS = ("Application",)
LOOKING = (*CLUSTER, *HEALTH, options.offline, options.repo_map)
REVISION = click.Option(
    ["--revision", "at"],
    default="",
    help="What a live Argo CD is to sync to, instead of Git's word.",
)


def _output(*forms: str) -> Callable[[FC], FC]:
    choice = click.Choice(["wide", *forms, "json"])
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
@takes((PLACE, HOME, *LABELS), LOOKING)
@click.option("-p", "--project", "project", default="", help="Only those of this project.")
@takes(CHANGING)
@_output("name")
def list_(**told: Unpack[Given]) -> int:
    """Show all Applications: how they stand, and in which wave they come.

    \b
    Examples:
      tidegate app list
      tidegate app list -l team=shop -o name
      tidegate app list -C ~/platform --context prod -o json
      tidegate app list --watch
    """
    doing = _say_first(told)
    from tidegate.cli.applications import read_applications, watch_applications
    from tidegate.report.applications import application_document, list_lines

    def show(rows: list[ApplicationRow]) -> tuple[Iterable[object], Iterable[str]]:
        names = (row.name for row in rows)
        lines = names if told["output"] == "name" else list_lines(rows, room_on(sys.stdout))
        return map(application_document, rows), lines

    if told["watch"]:
        return watch_applications((), told, show)
    rows, findings = read_applications((), told, doing)
    options.show(told["output"], *show(rows))
    return options.say_findings(findings)


@app.command()
@called_argument(KINDS)
@takes((PLACE, HOME), LOOKING)
@click.option("--refresh", is_flag=True, help="Have a live Argo CD look again before.")
@click.option("--hard-refresh", is_flag=True, help="The same, and forget what it has rendered.")
@takes(CHANGING)
@_output("tree")
def get(called: str, refresh: bool, hard_refresh: bool, **told: Unpack[Given]) -> int:  # noqa: FBT001 - click's way
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
    doing = _say_first(told)
    from tidegate.cli.applications import read_applications, watch_applications
    from tidegate.report.applications import application_document, application_lines

    if refresh or hard_refresh:
        from tidegate.cli.mastered import refresh_by_argo

        refresh_by_argo(called, told, hard=hard_refresh)

    def show(rows: list[ApplicationRow]) -> tuple[Iterable[object], Iterable[str]]:
        room, as_tree = room_on(sys.stdout), told["output"] == "tree"
        return map(application_document, rows), (
            line for row in rows for line in application_lines(row, room, as_tree=as_tree)
        )

    if told["watch"]:
        return watch_applications((called,), told, show, whole=True)
    rows, findings = read_applications((called,), told, doing, whole=True)
    options.show(told["output"], *show(rows))
    return options.say_findings(findings)


@app.command()
@called_argument(KINDS)
@takes((PLACE, HOME), LOOKING)
@_output("tree")
def resources(called: str, **told: Unpack[Given]) -> int:
    """Show the resources of an Application as a tree, by phases and waves.

    \b
    Examples:
      tidegate app resources database
      tidegate app resources database -o json
    """
    doing = _say_first(told)
    from tidegate.cli.applications import read_applications
    from tidegate.report.applications import resource_document, resource_lines

    (row,), findings = read_applications((called,), told, doing, whole=True)
    documents = map(resource_document, row.resources)
    as_tree = told["output"] == "tree"
    lines = resource_lines(row.resources, room_on(sys.stdout), as_tree=as_tree)
    options.show(told["output"], documents, lines)
    return options.say_findings(findings)


@app.command()
@called_argument(KINDS)
@takes((PLACE, HOME), LOOKING)
@options.text_or_json
def history(called: str, **told: Unpack[Given]) -> int:
    """Show what was rolled out of an Application before.

    It is written where the cluster serves Applications.

    \b
    Examples:
      tidegate app history database
    """
    doing = _say_first(told)
    from tidegate.cli.applications import read_applications
    from tidegate.report.applications import history_documents, history_lines

    (row,), findings = read_applications((called,), told, doing)
    options.show(told["output"], history_documents(row), history_lines(row))
    return options.say_findings(findings)


@app.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_names(KINDS))
@takes((PLACE, HOME, *LABELS, ALL), LOOKING)
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
@options.timeout
@options.text_or_json
def wait(
    names: tuple[str, ...],
    every: bool,  # noqa: FBT001 - click's way
    sync: bool,  # noqa: FBT001
    health: bool,  # noqa: FBT001
    suspended: bool,  # noqa: FBT001
    degraded: bool,  # noqa: FBT001
    operation: bool,  # noqa: FBT001
    gone: bool,  # noqa: FBT001
    **told: Unpack[Given],
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
    if sum(map(bool, (names, told["labels"], every))) != 1:
        raise click.UsageError("give names, or -l SELECTOR, or --all")
    from tidegate.cli.waiting import DesiredState, wait_for
    from tidegate.model.verdict import Health

    chosen = {Health.HEALTHY: health, Health.SUSPENDED: suspended, Health.DEGRADED: degraded}
    healths = frozenset(one for one, is_wanted in chosen.items() if is_wanted)
    if gone and (sync or operation or healths or told["resources"]):
        raise click.UsageError("--delete is waited for alone")
    wanted = (
        DesiredState(gone=True)
        if gone
        else DesiredState.of(
            sync=sync, operation=operation, healths=healths, resources=told["resources"]
        )
    )
    return wait_for(names, wanted, told)


def _edits(name: str) -> click.Command:
    """A verb of Argo CD's that writes what stands in Git: it is refused, with the file to edit."""

    @takes((PLACE, HOME, options.offline, options.repo_map))
    def refuse(called: str, more: tuple[str, ...], **told: Unpack[Given]) -> int:  # noqa: ARG001 - theirs
        from tidegate.cli.naming import find_families, find_meant
        from tidegate.errors import WordsError

        (one,) = find_meant(find_families(told["place"], told), KINDS, (called,), home=told["home"])
        problem = f"`{one.id}` stands in Git, and is changed there"
        hint = "edit that file and commit it; `tidegate app diff` shows what that comes to"
        raise WordsError("words.git", problem, where=one.where, hint=hint)

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
    app.add_command(_edits(_verb))


def _say_first(told: Given) -> Doing:
    is_quiet = told["output"] in {"name", "json"} or told.get("watch", False)
    return say_first("looking at Applications", quiet=is_quiet)


def _sync_first(named: list[NamedObject], families: tuple[Family, ...], told: Given) -> int | None:
    from tidegate.cli.mastered import sync_by_argo

    return sync_by_argo(named, families, told)


app.add_command(
    units_like(
        sync_verb,
        kinds=KINDS,
        first=_sync_first,
        more=(REVISION,),
        told="""Roll out Applications, one wave after another. Argo CD itself goes by name.

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
    units_like(
        delete_verb,
        kinds=KINDS,
        told="""Delete what Applications have brought, in the reverse of their waves.

        \b
        Examples:
          tidegate app delete shop
          tidegate app delete -l team=shop --yes
        """,
    )
)
app.add_command(
    units_like(
        plan_verb,
        name="diff",
        kinds=KINDS,
        told="""Show what a rollout of Applications would change.

        \b
        Examples:
          tidegate app diff shop --context prod --exit-code
        """,
    )
)
app.add_command(
    units_like(
        render_verb,
        name="manifests",
        kinds=KINDS,
        told="""Show what Applications render to.

        \b
        Examples:
          tidegate app manifests shop
        """,
    )
)
