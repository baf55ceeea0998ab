"""`tidegate jobs`: Jobs and hooks of units, and how one is run again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_runs
from tidegate.cli.doing import say_first
from tidegate.cli.naming import PLACE
from tidegate.cli.unit_options import NARROWING, TARGET, UNIT, WATCHING, Given, takes
from tidegate.cli.window import room_on

if TYPE_CHECKING:
    from tidegate.cli.doing import Doing
    from tidegate.flows.entering import Found
    from tidegate.flows.jobs import Rerunning
    from tidegate.flows.pointing import Pointed
    from tidegate.flows.session import Session
    from tidegate.model.event import Result
    from tidegate.report.jobs import JobRow


@click.group()
def jobs() -> None:
    """Show the Jobs and hooks of units, and run one again.

    \b
    Examples:
      tidegate jobs list --context prod
      tidegate jobs rerun fineract-schema-migration --context prod
    """


@jobs.command("list")
@takes((PLACE,), NARROWING, UNIT, TARGET)
@options.text_or_json
def list_(**told: Unpack[Given]) -> int:
    """Show all Jobs and hooks of units, in their order, and how they stand.

    \b
    Examples:
      tidegate jobs list -C ~/platform --context prod
      tidegate jobs list -C overlays/prod --namespace shop -o json
    """
    doing = say_first("looking for Jobs and hooks", quiet=told["output"] == "json")
    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.cli.consent import say_target
    from tidegate.flows.weakness import findings_of
    from tidegate.report.jobs import job_document, job_lines

    found, rows = in_found(pointed_of(told["place"], told), told, _list)
    doing.clear()
    say_target(told)
    options.show(told["output"], map(job_document, rows), job_lines(rows, room_on(sys.stdout)))
    return options.say_findings(findings_of(found))


async def _list(session: Session, found: Found) -> tuple[Found, list[JobRow]]:
    from tidegate.flows.jobs import list_jobs

    return found, await list_jobs(session, found)


@jobs.command()
@click.argument("called", metavar="NAME", shell_complete=complete_runs)
@takes((PLACE,), NARROWING, UNIT, TARGET)
@click.option("--yes", is_flag=True, help="Do not ask before a real cluster is changed.")
@takes(WATCHING)
def rerun(called: str, **told: Unpack[Given]) -> int:
    """Delete a Job or hook, run it again, and then what waits behind it, in order.

    Jobs and hooks behind it are run again, other objects are brought where they differ: in its own
    unit, and in those that wait for that. What comes before it or beside it is not touched. With
    --unit, it is left at that unit.

    \b
    Examples:
      tidegate jobs rerun fineract-schema-migration --context prod
      tidegate jobs rerun shop/migrate -C overlays/prod --context prod --yes
    """
    doing = say_first(f"reading {told['place']}", quiet=told["output"] == "json")
    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.cli.consent import needs_consent, say_target
    from tidegate.cli.exits import CODES
    from tidegate.cli.running import run
    from tidegate.flows.jobs import plan_rerun

    pointed, shown = pointed_of(told["place"], told), ""
    if needs_consent(told):
        found = in_found(pointed, told, lambda session, one: plan_rerun(session, one, called))
        doing.clear()
        say_target(told)
        shown = _agreed(found)
    return CODES[run(_rerun(pointed, called, told, doing, shown))]


def _agreed(found: Rerunning) -> str:
    """The plan that somebody agrees to. Raises where nobody does."""
    from tidegate.cli.consent import agree

    lines = [f"{found.ref} is deleted and run again", *(f"then {ref}" for ref in found.behind)]
    agree(lines, "Run again?")
    return found.planned.plan.digest


async def _rerun(pointed: Pointed, called: str, told: Given, doing: Doing, shown: str) -> Result:
    from tidegate.cli.consent import say_target
    from tidegate.cli.rolling import on_screen, show_rollout
    from tidegate.cli.saying import note
    from tidegate.flows.jobs import plan_rerun
    from tidegate.flows.masters import meet_masters
    from tidegate.flows.rollout import Rolling
    from tidegate.flows.syncing import refuse_other

    async with on_screen(pointed, told, doing, "rendering") as (screen, session, found):
        again = await plan_rerun(session, found, called)
        refuse_other(again.planned.plan, shown)
        doing.clear()
        if not shown:
            say_target(told)
        options.say_findings(found.findings)
        met = await meet_masters(again.planned, session, takes_over=False, hands_back=False)
        for one in met.notes:
            note(one)
        return await show_rollout(screen, session, met.planned.plan, Rolling(), told)
