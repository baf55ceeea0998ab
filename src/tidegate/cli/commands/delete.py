"""`tidegate delete`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import (
    CONTENTS,
    TARGET,
    UNIT,
    TargetOptions,
    UnitOptions,
    WatchingOptions,
    policy_of,
    setting_of,
    takes,
    units_of,
)

if TYPE_CHECKING:
    from tidegate.cli.doing import Doing
    from tidegate.flows.delete import Deletion
    from tidegate.flows.session import Target
    from tidegate.model.event import Result
    from tidegate.model.unit import Unit

NOTHING = "nothing to delete"


class DeleteOptions(UnitOptions, TargetOptions, WatchingOptions):
    """All that can be said to `tidegate delete`."""

    yes: bool
    confirm: bool
    yes_delete_contents: bool


@click.command()
@click.argument("what", metavar="DIR")
@takes(UNIT, TARGET, CONTENTS)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--confirm", is_flag=True, help="Delete what asks for confirmation, too.")
@click.option("--timeout", default="", help="Stop cleanly after so long, such as 30m.")
@click.option("--pace", type=float, default=None, help="Simulated seconds in one of ours.")
@options.text_or_json
def delete(what: str, **told: Unpack[DeleteOptions]) -> int:
    """Delete what DIR has brought: the last wave first, each wave when the one before is gone.

    PreDelete hooks run before, PostDelete hooks behind. What says Delete=false stays, and so do
    custom resource definitions. It is shown first what would be deleted, and asked.

    \b
    Examples:
      tidegate delete examples/first --context test
      tidegate delete overlays/prod --context prod --yes --confirm
    """
    doing = say_first(f"reading {what}", quiet=told["output"] == "json")
    from tidegate.cli.rolling import target_of

    contents = told["yes_delete_contents"]
    policy = policy_of(told, consents=told["confirm"], deletes_contents=contents)
    target = target_of(told)
    units = units_of(what, told, policy, told["clusters"])
    return max(_delete_unit(what, unit, target, told, doing) for unit in units)


def _delete_unit(what: str, unit: Unit, target: Target, told: DeleteOptions, doing: Doing) -> int:
    import asyncio

    from tidegate.cli.exits import CODES
    from tidegate.model.event import Result

    shown = ""
    if not told["yes"]:
        doing.say(f"looking for what {what} has brought")
        found = asyncio.run(_look(unit, target, told))
        doing.clear()
        if found.going and not _agrees(found):
            click.echo("nothing was deleted", err=True)
            return CODES[Result.STOPPED]
        shown = found.plan.digest
    return CODES[asyncio.run(_delete(what, unit, target, told, doing, shown))]


async def _look(unit: Unit, target: Target, told: DeleteOptions) -> Deletion:
    from tidegate.flows.delete import plan_deletion
    from tidegate.flows.session import open_session

    async with open_session(target, setting_of(told)) as session:
        return await plan_deletion(unit, session)


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


async def _delete(
    what: str, unit: Unit, target: Target, told: DeleteOptions, doing: Doing, shown: str
) -> Result:
    import os

    from tidegate.cli.rolling import reach, show_rollout, watching_of
    from tidegate.cli.screen import Screen
    from tidegate.flows.delete import finish_deletion, plan_deletion, refuse_other
    from tidegate.flows.rendering import refuse_unsound
    from tidegate.flows.rollout import Rolling
    from tidegate.model.event import Result

    watching = watching_of(str(unit.id), doing, told)
    on_screen = Screen.on(sys.stdout, os.environ, json=watching.json)
    then = f"looking for what {what} has brought"
    async with on_screen as screen, reach(target, setting_of(told), doing, then) as session:
        found = await plan_deletion(unit, session)
        refuse_other(found, shown)
        if target.simulation is None and found.runs_hooks:
            refuse_unsound(found.rendered, takes_broken_seals=False)
        doing.clear()
        options.say_notes(found.notes)
        result = Result.PASSED
        if found.is_due:
            result = await show_rollout(screen, session, found.plan, Rolling(), watching)
        if result is Result.PASSED:
            await finish_deletion(found, session.world)
    if not found.is_due:
        click.echo(NOTHING, err=watching.json)
    _say_staying(found)
    return result


def _say_staying(found: Deletion) -> None:
    for ref in found.staying:
        hint = "; `--confirm` deletes it" if ref in found.asking else ""
        click.echo(f"note: {ref} stays, as it asks for{hint}", err=True)
