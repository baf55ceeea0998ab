"""`tidegate units`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_path
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import NAMING, NARROWING, Given, takes


@click.command()
@click.argument("what", metavar="[PATH]", default=".", shell_complete=complete_path)
@takes(NAMING, NARROWING)
@options.offline
@options.repo_map
@click.option("--objects", is_flag=True, help="Render every unit, to count its objects.")
@options.text_or_json
def units(what: str, **told: Unpack[Given]) -> int:
    """Show the units of a repository: who brings them, and what they deploy where.

    PATH is a repository of Argo CD's or Flux's, or of both. An Application, a Kustomization and a
    HelmRelease are units; so are charts, overlays and directories that are pointed at.

    Charts and overlays that can bring no further units are not rendered without --objects: what is
    wrong with them is said by `plan`.

    \b
    Examples:
      tidegate units
      tidegate units clusters/prod
      tidegate units . --entry clusters/prod -o json
    """
    doing = say_first(f"looking for units in {what}", quiet=told["output"] == "json")
    import sys

    from tidegate.cli.asking import pointed_of, setting_of
    from tidegate.cli.running import run
    from tidegate.cli.window import room_on
    from tidegate.flows.entering import find
    from tidegate.flows.units import unit_rows
    from tidegate.flows.weakness import findings_of
    from tidegate.report.findings import is_error
    from tidegate.report.units import unit_lines, units_document

    only_units = not told["objects"]
    found = run(find(pointed_of(what, told), setting_of(told), only_units=only_units))
    doing.clear()
    rows = unit_rows(found.families, counts=told["objects"])
    findings = findings_of(found)
    document = units_document(rows, findings)
    options.show(told["output"], [document], unit_lines(rows, room_on(sys.stdout)))
    if told["output"] != "json":
        return options.say_findings(findings)
    return options.INPUT if any(map(is_error, findings)) else 0
