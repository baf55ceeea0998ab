"""`tidegate sync`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import (
    CONTENTS,
    PRUNING,
    TARGET,
    UNIT,
    PruningOptions,
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
    from tidegate.cli.rolling import Watching
    from tidegate.flows.rollout import Rolling
    from tidegate.flows.session import Target
    from tidegate.model.unit import Unit


class SyncOptions(UnitOptions, TargetOptions, PruningOptions, WatchingOptions):
    """All that can be said to `tidegate sync`."""

    resources: tuple[str, ...]
    hooks: bool
    dry_run: bool
    preflight: str
    on_failure: str
    keep_going: bool
    adopt_name: bool
    take_broken_seals: bool


@click.command()
@click.argument("what", metavar="DIR")
@takes(UNIT, TARGET, PRUNING, CONTENTS)
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="GROUP:KIND:[NAMESPACE/]NAME",
    help="Only this object, and no hooks; `*` is any, `!` before it leaves out; may be repeated.",
)
@click.option("--hooks", is_flag=True, help="Run hooks though nothing has changed.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option(
    "--preflight",
    type=click.Choice(["local", "server"]),
    default="local",
    show_default=True,
    help="Ask the server about every object before the first write, or only where needed.",
)
@click.option(
    "--on-failure",
    type=click.Choice(["stop", "continue"]),
    default="stop",
    show_default=True,
    help="What becomes of what lies behind a failed step.",
)
@click.option(
    "--adopt-name", is_flag=True, help="Take over a name that another directory had until now."
)
@click.option(
    "--keep-going", is_flag=True, help="Leave out a unit with a fault, and what waits for it."
)
@click.option("--timeout", default="", help="Stop cleanly after so long, such as 30m.")
@click.option(
    "--take-broken-seals", is_flag=True, help="Apply encrypted files that were changed by hand."
)
@click.option("--pace", type=float, default=None, help="Simulated seconds in one of ours.")
@options.text_or_json
def sync(what: str, **told: Unpack[SyncOptions]) -> int:
    """Roll out DIR wave by wave; each gate opens when what was applied is healthy.

    DIR is a directory of manifests, a Helm chart or a Kustomize overlay. What is there already and
    as wanted is left alone. Ctrl-C stops cleanly; the same command goes on where it stopped.

    \b
    Examples:
      tidegate sync examples/first --sandbox
      tidegate sync overlays/prod --context prod --prune
      tidegate sync charts/web --namespace web --sync-option CreateNamespace=true
      tidegate sync overlays/prod --cluster east=prod-east --cluster west=prod-west
      tidegate sync overlays/prod --resource apps:Deployment:web --resource ':Service:web'
    """
    doing = say_first(f"reading {what}", quiet=told["output"] == "json")
    import asyncio

    from tidegate.cli.rolling import target_of, watching_of
    from tidegate.flows.rollout import Preflight, Rolling

    policy = policy_of(
        told,
        prunes=told["prune"],
        consents=told["confirm"],
        allows_empty=told["allow_empty"],
        deletes_contents=told["yes_delete_contents"],
        carries_on=told["on_failure"] == "continue",
        runs_hooks=told["hooks"],
        adopts_name=told["adopt_name"],
    )
    units, target = units_of(what, told, policy, told["clusters"]), target_of(told)
    if told["dry_run"]:
        return asyncio.run(_preview(what, units, target, told, doing))
    rolling = Rolling(keeps_going=told["keep_going"], preflight=Preflight(told["preflight"]))
    watching = watching_of(", ".join(str(unit.id) for unit in units), doing, told)
    return asyncio.run(_sync(what, units, target, told, rolling, watching))


async def _preview(
    what: str, units: list[Unit], target: Target, told: SyncOptions, doing: Doing
) -> int:
    from tidegate.cli.previewing import show_preview
    from tidegate.flows.preview import preview
    from tidegate.flows.session import open_session

    doing.say(f"comparing {what} with what lives")
    async with open_session(target, setting_of(told)) as session:
        found = await preview(units, session, told["resources"])
    doing.clear()
    show_preview(found, json=told["output"] == "json")
    return 0


async def _sync(
    what: str,
    units: list[Unit],
    target: Target,
    told: SyncOptions,
    rolling: Rolling,
    watching: Watching,
) -> int:
    import os

    from tidegate.cli.exits import CODES
    from tidegate.cli.rolling import reach, show_rollout
    from tidegate.cli.screen import Screen
    from tidegate.flows.planning import make_plan
    from tidegate.flows.rendering import refuse_unsound

    shown = Screen.on(sys.stdout, os.environ, json=watching.json)
    reached = reach(target, setting_of(told), watching.doing, f"rendering {what}")
    async with shown as screen, reached as session:
        planned = await make_plan(units, session, told["resources"])
        if target.simulation is None:
            broken_seals = told["take_broken_seals"]
            refuse_unsound(planned.rendered, takes_broken_seals=broken_seals)
        watching.doing.clear()
        options.say_notes(planned.notes)
        result = await show_rollout(screen, session, planned.plan, rolling, watching)
    for left in screen.course.kept:
        click.echo(f"note: {left} asks for confirmation; `--confirm` prunes it", err=True)
    return CODES[result]
