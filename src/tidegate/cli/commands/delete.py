"""`tidegate delete`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import CONTENTS, TARGET, UNIT, WATCHING, Told, takes

if TYPE_CHECKING:
    from tidegate.cli.doing import Doing
    from tidegate.flows.delete import Deletion
    from tidegate.model.event import Result
    from tidegate.model.unit import Unit

NOTHING = "nothing to delete"


@click.command()
@click.argument("what", metavar="DIR")
@takes(UNIT, TARGET, CONTENTS)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--confirm", is_flag=True, help="Delete what asks for confirmation, too.")
@takes(WATCHING)
def delete(what: str, **told: Unpack[Told]) -> int:
    """Delete what DIR has brought: the last wave first, each wave when the one before is gone.

    PreDelete hooks run before, PostDelete hooks behind. What says Delete=false stays, and so do
    custom resource definitions. It is shown first what would be deleted, and asked.

    \b
    Examples:
      tidegate delete examples/first --context test
      tidegate delete overlays/prod --context prod --yes --confirm
    """
    doing = say_first(f"reading {what}", quiet=told["output"] == "json")
    from tidegate.cli.asking import units_of

    return max(_delete_unit(what, unit, told, doing) for unit in units_of(what, told))


def _delete_unit(what: str, unit: Unit, told: Told, doing: Doing) -> int:
    import asyncio

    from tidegate.cli.asking import in_session
    from tidegate.cli.exits import CODES
    from tidegate.flows.delete import plan_deletion
    from tidegate.model.event import Result

    shown = ""
    if not told["yes"]:
        doing.say(f"looking for what {what} has brought")
        found = in_session(told, lambda session: plan_deletion(unit, session))
        doing.clear()
        if found.going and not _agrees(found):
            click.echo("nothing was deleted", err=True)
            return CODES[Result.STOPPED]
        shown = found.plan.digest
    return CODES[asyncio.run(_delete(what, unit, told, doing, shown))]


def _agrees(found: Deletion) -> bool:
    """Show what would be deleted, and ask."""
    from tidegate.report.deletion import deletion_lines

    for line in deletion_lines(found.plan, found.staying, found.asking):
        click.echo(line, err=True)
    options.say_notes(found.contents)
    try:
        count = len(found.going)
        return click.confirm(f"Delete {count} object{'s' if count != 1 else ''}?", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise click.UsageError("nobody answers here: --yes deletes without asking") from None


async def _delete(what: str, unit: Unit, told: Told, doing: Doing, shown: str) -> Result:
    from tidegate.cli.rolling import on_screen, show_rollout
    from tidegate.flows.delete import finish_deletion, plan_deletion, refuse_other
    from tidegate.flows.rendering import refuse_unsound
    from tidegate.flows.rollout import Rolling
    from tidegate.model.event import Result

    then = f"looking for what {what} has brought"
    async with on_screen([unit], told, doing, then) as (screen, session):
        found = await plan_deletion(unit, session)
        refuse_other(found, shown)
        if session.target.simulation is None and found.runs_hooks:
            refuse_unsound(found.rendered, takes_broken_seals=False)
        doing.clear()
        options.say_notes(found.notes)
        result = Result.PASSED
        if found.is_due:
            result = await show_rollout(screen, session, found.plan, Rolling(), told)
        if result is Result.PASSED:
            await finish_deletion(found, session.world)
    if not found.is_due:
        click.echo(NOTHING, err=told["output"] == "json")
    _say_staying(found)
    return result


def _say_staying(found: Deletion) -> None:
    for ref in found.staying:
        hint = "; `--confirm` deletes it" if ref in found.asking else ""
        click.echo(f"note: {ref} stays, as it asks for{hint}", err=True)
