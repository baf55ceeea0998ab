"""`tidegate app`: Applications by the verbs of `argocd app`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.commands.delete import delete as delete_verb
from tidegate.cli.commands.plan import plan as plan_verb
from tidegate.cli.commands.render import render as render_verb
from tidegate.cli.commands.sync import sync as sync_verb
from tidegate.cli.doing import say_first
from tidegate.cli.naming import LABELS, PLACE, units_like
from tidegate.cli.saying import say
from tidegate.cli.unit_options import CLUSTER, HEALTH, Given, takes

if TYPE_CHECKING:
    from tidegate.flows.standing import UnitStanding
    from tidegate.report.applications import ApplicationRow

KINDS = ("Application",)
OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Choice(["wide", "name", "json"]),
    default="wide",
    show_default=True,
)


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
@takes((PLACE, *LABELS), CLUSTER, HEALTH)
@click.option("-p", "--project", "project", default="", help="Only those of this project.")
@options.offline
@options.repo_map
@OUTPUT
def list_(**told: Unpack[Given]) -> int:
    """Show all Applications: how they stand, and in which wave they come.

    \b
    Examples:
      tidegate app list
      tidegate app list -l team=shop -o name
      tidegate app list -C ~/platform --context prod -o json
    """
    from tidegate.report.applications import application_document, list_lines

    rows = _read((), told)
    if told["output"] == "name":
        for row in rows:
            say(row.name)
        return 0
    options.show(told["output"], map(application_document, rows), list_lines(rows, wide=True))
    return 0


@app.command()
@click.argument("called", metavar="NAME")
@takes((PLACE,), CLUSTER, HEALTH)
@options.offline
@options.repo_map
@options.text_or_json
def get(called: str, **told: Unpack[Given]) -> int:
    """Show one Application, and its resources wave by wave.

    \b
    Examples:
      tidegate app get database
      tidegate app get argocd/database -o json
    """
    from tidegate.report.applications import application_document, application_lines

    (row,) = _read((called,), told)
    options.show(told["output"], [application_document(row)], application_lines(row))
    return 0


@app.command()
@click.argument("called", metavar="NAME")
@takes((PLACE,), CLUSTER, HEALTH)
@options.offline
@options.repo_map
def resources(called: str, **told: Unpack[Given]) -> int:
    """Show the resources of an Application, wave by wave.

    \b
    Examples:
      tidegate app resources database
    """
    from tidegate.report.applications import resource_lines

    told["output"] = "wide"
    (row,) = _read((called,), told)
    options.show("text", [], resource_lines(row.resources))
    return 0


@app.command()
@click.argument("called", metavar="NAME")
@takes((PLACE,), CLUSTER, HEALTH)
@options.offline
@options.repo_map
def history(called: str, **told: Unpack[Given]) -> int:
    """Show what was rolled out of an Application before.

    It is written where the cluster serves Applications.

    \b
    Examples:
      tidegate app history database
    """
    from tidegate.report.applications import history_lines

    told["output"] = "wide"
    (row,) = _read((called,), told)
    options.show("text", [], history_lines(row))
    return 0


def _read(names: tuple[str, ...], told: Given) -> list[ApplicationRow]:
    """The Applications that are meant, compared with what lives."""
    doing = say_first("looking at Applications", quiet=told["output"] != "wide")
    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.cli.naming import find_named
    from tidegate.flows.standing import read_standings
    from tidegate.model.reading import text

    place, labels = told["place"], told.get("labels", "")
    families, told["units"] = find_named(names, place, labels, KINDS, told)
    standings = in_found(
        pointed_of(place, told),
        told,
        lambda session, found: read_standings(found, families, session),
    )
    doing.clear()
    wanted = told["units"]
    chosen = (one for one in standings if one.unit.id.kind in KINDS)
    rows = [_row(one) for one in chosen if not wanted or str(one.unit.id) in wanted]
    project = told.get("project", "")
    return [row for row in rows if project in {"", text(row.own, "spec", "project") or "default"}]


def _row(one: UnitStanding) -> ApplicationRow:
    from tidegate.report.applications import ApplicationRow, ResourceRow

    resources = tuple(
        ResourceRow(each.ref, each.wave, each.is_synced, each.leaves, each.verdict)
        for each in one.objects
    )
    name = f"{one.unit.id.namespace}/{one.unit.id.name}"
    return ApplicationRow(name, one.wave, one.own, one.live, one.is_synced, one.verdict, resources)


app.add_command(
    units_like(
        sync_verb,
        kinds=KINDS,
        told="""Roll out Applications, one wave after another. Argo CD itself goes by name.

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
