"""`tidegate status`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_path
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import CLUSTER, HEALTH, NARROWING, UNIT, Given, takes
from tidegate.cli.window import room_on

if TYPE_CHECKING:
    from tidegate.flows.entering import Found
    from tidegate.flows.session import Session
    from tidegate.flows.status import ObjectStatus


@click.command()
@click.argument("what", metavar="PATH", shell_complete=complete_path)
@takes(NARROWING, UNIT, CLUSTER, HEALTH)
@options.text_or_json
def status(what: str, **told: Unpack[Given]) -> int:
    """Show how the objects of PATH stand in the cluster: as wanted or not, healthy or not.

    \b
    Examples:
      tidegate status examples/first
      tidegate status overlays/prod --context prod -o json
    """
    doing = say_first(f"looking at {what}", quiet=told["output"] == "json")
    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.cli.consent import say_target
    from tidegate.flows.weakness import weakness_of
    from tidegate.report.status import status_lines

    found, stands = in_found(pointed_of(what, told), told, _read)
    doing.clear()
    say_target(told)
    rows = [(one.ref, one.wave, one.is_synced, one.verdict) for one in stands]
    lines = status_lines(rows, room_on(sys.stdout))
    options.show(told["output"], map(_document, stands), lines)
    weakness = weakness_of(found.members, found.findings)
    return options.say_findings((*found.findings, *weakness))


async def _read(session: Session, found: Found) -> tuple[Found, list[ObjectStatus]]:
    from tidegate.flows.status import read_status

    return found, await read_status(found.one, session)


def _document(one: ObjectStatus) -> dict[str, object]:
    from tidegate.report.status import verdict_document

    return {
        "unit": str(one.unit) if one.unit else "",
        "cluster": one.cluster,
        **verdict_document(one.ref, one.verdict),
        "wave": one.wave,
        "synced": one.is_synced,
        "inGit": not one.leaves,
    }
