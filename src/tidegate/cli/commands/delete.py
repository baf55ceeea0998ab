"""`tidegate delete`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_path
from tidegate.cli.doing import say_first
from tidegate.cli.saying import note, say
from tidegate.cli.unit_options import (
    CONTENTS,
    NARROWING,
    TARGET,
    UNIT,
    WATCHING,
    Given,
    takes,
)

if TYPE_CHECKING:
    from tidegate.cli.doing import Doing
    from tidegate.cli.screen import Screen
    from tidegate.flows.delete import Deletion, Deletions
    from tidegate.flows.pointing import Pointed
    from tidegate.flows.session import Session
    from tidegate.model.event import Result

NOTHING = "nothing to delete"


@click.command()
@click.argument("what", metavar="PATH", shell_complete=complete_path)
@takes(NARROWING, UNIT, TARGET, CONTENTS)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--confirm", is_flag=True, help="Delete what asks for confirmation, too.")
@click.option(
    "--take-over",
    is_flag=True,
    help="Hold the controllers of Argo CD or Flux that bring these units, and delete them.",
)
@takes(WATCHING)
def delete(what: str, **told: Unpack[Given]) -> int:
    """Delete what PATH has brought: the last wave first, each wave when the one before is gone.

    PreDelete hooks run before, PostDelete hooks behind. What says Delete=false stays, and so do
    custom resource definitions. It is shown first what would be deleted, and asked.

    \b
    Examples:
      tidegate delete examples/first --context test
      tidegate delete overlays/prod --context prod --yes --confirm
      tidegate delete . --context prod --take-over
    """
    doing = say_first(f"reading {what}", quiet=told["output"] == "json")
    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.cli.consent import needs_consent, say_target
    from tidegate.cli.exits import CODES
    from tidegate.cli.running import run
    from tidegate.flows.delete import digest_of, plan_deletions

    pointed, shown = pointed_of(what, told), ""
    asks = needs_consent(told)
    if asks:
        doing.say(f"looking for what {what} has brought")
        found = in_found(pointed, told, plan_deletions)
        doing.clear()
        say_target(told)
        if found.going:
            _agree(found)
        shown = digest_of(found.units)
    return CODES[run(_delete(pointed, told, doing, shown))]


def _agree(found: Deletions) -> None:
    """Show what would be deleted, and ask."""
    from tidegate.cli.consent import agree
    from tidegate.report.deletion import deletion_lines
    from tidegate.report.findings import as_warning, finding_lines

    staying = [ref for one in found.units for ref in one.staying]
    asking = [ref for one in found.units for ref in one.asking]
    lines = [*deletion_lines(found.plan, staying, asking)]
    lines += finding_lines(map(as_warning, found.contents))
    count = len(found.going)
    agree(lines, f"Delete {count} object{'s' if count != 1 else ''}?")


async def _delete(pointed: Pointed, told: Given, doing: Doing, shown: str) -> Result:
    """All units at once; what was brought last goes first."""
    from tidegate.cli.consent import say_target
    from tidegate.cli.rolling import on_screen
    from tidegate.flows.delete import plan_deletions, refuse_other

    then = f"looking for what {pointed.what} has brought"
    async with on_screen(pointed, told, doing, then) as (screen, session, found):
        going = await plan_deletions(session, found)
        refuse_other(going.units, shown)
        doing.clear()
        if not shown:
            say_target(told)
        options.say_findings(going.findings)
        result = await _delete_units(going, session, screen, told)
    if not going.is_due:
        (note if told["output"] == "json" else say)(NOTHING)
    for one in going.units:
        _say_staying(one)
    return result


async def _delete_units(found: Deletions, session: Session, screen: Screen, told: Given) -> Result:
    from tidegate.cli.rolling import show_rollout
    from tidegate.flows.delete import finish_deletion
    from tidegate.flows.masters import meet_masters_at_end, still_held
    from tidegate.flows.releases import end_releases
    from tidegate.flows.rendering import refuse_unsound
    from tidegate.flows.rollout import Rolling
    from tidegate.model.event import Result

    for one in found.units if session.target.simulation is None else ():
        if one.runs_hooks:
            refuse_unsound(one.rendered, takes_broken_seals=False)
    options.say_notes(found.notes)
    result = Result.PASSED
    if found.is_due:
        met = await meet_masters_at_end(found.planned, session, takes_over=told["take_over"])
        _say(met.notes)
        rolling = Rolling(releases=end_releases(found.plan))
        result = await show_rollout(screen, session, found.plan, rolling, told)
        _say(await still_held(met, session))
    if result is Result.PASSED:
        for one in found.units:
            await finish_deletion(one, session.world)
    return result


def _say(notes: Iterable[str]) -> None:
    for one in notes:
        note(one)


def _say_staying(found: Deletion) -> None:
    for ref in found.staying:
        hint = "; `--confirm` deletes it" if ref in found.asking else ""
        note(f"{ref} stays, as it asks for{hint}")
