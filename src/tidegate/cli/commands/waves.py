"""`tidegate waves`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_path
from tidegate.cli.doing import say_first
from tidegate.cli.saying import say
from tidegate.cli.unit_options import NARROWING, UNIT, Given, takes
from tidegate.report.places import seen_text


@click.command()
@click.argument("what", metavar="[PATH]", default=".", shell_complete=complete_path)
@takes(NARROWING, UNIT)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="How.",
)
def waves(what: str, **told: Unpack[Given]) -> int:
    """Show which units and objects of PATH come in which wave.

    Phases are the steps of an ApplicationSet, with the label that they go by. Waves are those of
    Applications in the one that brings them. Levels follow from dependsOn. Below, the waves of the
    objects of each unit, and how many of them say themselves in which wave they are.

    \b
    Examples:
      tidegate waves
      tidegate waves clusters/prod -o json
      tidegate waves charts/laravel -f values-prod.yaml
    """
    output = told["output"]
    doing = say_first(f"reading {what}", quiet=output == "json")
    import sys

    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.cli.window import room_on
    from tidegate.flows.waves import take_inventory
    from tidegate.flows.weakness import findings_of
    from tidegate.report.findings import is_error
    from tidegate.report.waves import waves_document, waves_lines

    told["sandbox"] = told["still"] = True
    found, inventories = in_found(pointed_of(what, told), told, take_inventory)
    doing.clear()
    read = findings = findings_of(found)
    for family, (planned, inventory) in zip(found.families, inventories, strict=False):
        options.say_notes(planned.notes)
        findings = (*findings, *planned.findings)
        if output == "table" and len(inventories) > 1:
            say(f"{family.entry}, from {seen_text(family.members[0].unit.where)}")
        document = waves_document(inventory, (*read, *planned.findings))
        options.show(output, [document], waves_lines(inventory, room_on(sys.stdout)))
    if output != "json":
        return options.say_findings(findings)
    return options.INPUT if any(map(is_error, findings)) else 0
