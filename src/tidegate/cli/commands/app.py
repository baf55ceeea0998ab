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
    from tidegate.flows.entering import Found
    from tidegate.flows.session import Session
    from tidegate.flows.standing import UnitStanding
    from tidegate.model.finding import Finding
    from tidegate.report.applications import ApplicationRow

KINDS = ("Application",)
LOOKING = (*CLUSTER, *HEALTH, options.offline, options.repo_map)
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
@takes((PLACE, *LABELS), LOOKING)
@click.option("-p", "--project", "project", default="", help="Only those of this project.")
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

    rows, findings = _read((), told)
    if told["output"] == "name":
        for row in rows:
            say(row.name)
    else:
        options.show(told["output"], map(application_document, rows), list_lines(rows))
    return options.say_findings(findings)


@app.command()
@click.argument("called", metavar="NAME")
@takes((PLACE,), LOOKING)
@options.text_or_json
def get(called: str, **told: Unpack[Given]) -> int:
    """Show one Application, and its resources wave by wave.

    \b
    Examples:
      tidegate app get database
      tidegate app get argocd/database -o json
    """
    from tidegate.report.applications import application_document, application_lines

    (row,), findings = _read((called,), told)
    options.show(told["output"], [application_document(row)], application_lines(row))
    return options.say_findings(findings)


@app.command()
@click.argument("called", metavar="NAME")
@takes((PLACE,), LOOKING)
@options.text_or_json
def resources(called: str, **told: Unpack[Given]) -> int:
    """Show the resources of an Application, wave by wave.

    \b
    Examples:
      tidegate app resources database
      tidegate app resources database -o json
    """
    from tidegate.report.applications import resource_document, resource_lines

    (row,), findings = _read((called,), told)
    documents = map(resource_document, row.resources)
    options.show(told["output"], documents, resource_lines(row.resources))
    return options.say_findings(findings)


@app.command()
@click.argument("called", metavar="NAME")
@takes((PLACE,), LOOKING)
@options.text_or_json
def history(called: str, **told: Unpack[Given]) -> int:
    """Show what was rolled out of an Application before.

    It is written where the cluster serves Applications.

    \b
    Examples:
      tidegate app history database
    """
    from tidegate.report.applications import history_documents, history_lines

    (row,), findings = _read((called,), told)
    options.show(told["output"], history_documents(row), history_lines(row))
    return options.say_findings(findings)


def _read(names: tuple[str, ...], told: Given) -> tuple[list[ApplicationRow], tuple[Finding, ...]]:
    """The Applications that are meant, compared with what lives, and what was found on the way."""
    doing = say_first("looking at Applications", quiet=told["output"] not in {"wide", "text"})
    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.cli.naming import find_families, name_units
    from tidegate.flows.standing import read_standings
    from tidegate.model.reading import text

    place = told["place"]
    families = find_families(place, told)
    wanted = told["units"] = name_units(families, names, told.get("labels", ""), KINDS)

    async def ask(session: Session, found: Found) -> tuple[list[UnitStanding], Found]:
        return await read_standings(found, families, session), found

    standings, found = in_found(pointed_of(place, told), told, ask)
    doing.clear()
    chosen = (one for one in standings if one.unit.id.kind in KINDS)
    rows = [_row(one) for one in chosen if not wanted or str(one.unit.id) in wanted]
    project = told.get("project", "")
    fitting = [
        row for row in rows if project in {"", text(row.own, "spec", "project") or "default"}
    ]
    return fitting, found.findings


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
