"""`tidegate delete`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import (
    TARGET,
    UNIT,
    TargetOptions,
    UnitOptions,
    WatchingOptions,
    chosen_of,
    takes,
)

if TYPE_CHECKING:
    from tidegate.cli.rolling import Watching
    from tidegate.flows.delete import Deletion
    from tidegate.flows.sync import Target
    from tidegate.flows.units import Chosen

STOPPED = 130
NOTHING = "nothing to delete"


class DeleteOptions(UnitOptions, TargetOptions, WatchingOptions):
    """All that can be said to `tidegate delete`."""

    yes: bool
    confirm: bool


@click.command()
@click.argument("what", metavar="DIR")
@takes(UNIT, TARGET)
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
    import asyncio

    from tidegate.cli.rolling import target_of, watching_of
    from tidegate.flows.delete import plan_deletion_on

    chosen, target = chosen_of(what, told), target_of(told)
    watching = watching_of(chosen.unit.name, doing, told)
    shown = ""
    if not told["yes"]:
        doing.say(f"looking for what {what} has brought")
        found = asyncio.run(plan_deletion_on(chosen, target, confirmed=told["confirm"]))
        doing.clear()
        if found.going and not _agrees(found):
            click.echo("nothing was deleted", err=True)
            return STOPPED
        shown = found.plan.digest
    return asyncio.run(_delete(chosen, target, watching, confirmed=told["confirm"], shown=shown))


def _agrees(found: Deletion) -> bool:
    """Show what would be deleted, and ask."""
    from tidegate.report.deletion import deletion_lines

    for line in deletion_lines(found.plan, found.staying, found.asking):
        click.echo(line, err=True)
    try:
        count = len(found.going)
        return click.confirm(f"Delete {count} object{'s' if count != 1 else ''}?", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise click.UsageError("nobody answers here: --yes deletes without asking") from None


async def _delete(
    chosen: Chosen, target: Target, watching: Watching, *, confirmed: bool, shown: str
) -> int:
    import os

    from tidegate.cli.rolling import PASSED, exit_code_of, reach, show_rollout
    from tidegate.cli.screen import Screen
    from tidegate.flows.delete import finish_deletion, plan_deletion, refuse_other
    from tidegate.flows.rendering import refuse_unsound
    from tidegate.flows.sync import Rolling

    on_screen = Screen.on(sys.stdout, os.environ, json=watching.json)
    then = f"looking for what {chosen.wanted.what} has brought"
    async with on_screen as screen, reach(target, watching.doing, then) as place:
        found = await plan_deletion(chosen, place.world, confirmed=confirmed)
        refuse_other(found, shown)
        if target.simulation is None and found.runs_hooks:
            refuse_unsound(found.rendered, takes_broken_seals=False)
        watching.doing.clear()
        options.say_notes(found.notes)
        result = PASSED
        if found.is_due:
            rolling = Rolling(consents=confirmed)
            result = await show_rollout(screen, place, found.plan, target, rolling, watching)
        if result == PASSED:
            await finish_deletion(found, place.world)
    if not found.is_due:
        click.echo(NOTHING, err=watching.json)
    _say_staying(found)
    return exit_code_of(result)


def _say_staying(found: Deletion) -> None:
    for ref in found.staying:
        hint = "; `--confirm` deletes it" if ref in found.asking else ""
        click.echo(f"note: {ref} stays, as it asks for{hint}", err=True)
