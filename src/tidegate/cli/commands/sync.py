"""`tidegate sync`."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import (
    PRUNING,
    TARGET,
    UNIT,
    TargetOptions,
    UnitOptions,
    WatchingOptions,
    chosen_of,
    takes,
)

if TYPE_CHECKING:
    from tidegate.cli.doing import Doing
    from tidegate.cli.rolling import Watching
    from tidegate.flows.preview import Pruning
    from tidegate.flows.sync import Rolling, Target
    from tidegate.flows.units import Chosen


class SyncOptions(UnitOptions, TargetOptions, WatchingOptions):
    """All that can be said to `tidegate sync`."""

    resources: tuple[str, ...]
    prune: bool
    confirm: bool
    hooks: bool
    dry_run: bool
    preflight: str
    on_failure: str
    take_broken_seals: bool


@click.command()
@click.argument("what", metavar="DIR")
@takes(UNIT, TARGET, PRUNING)
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
      tidegate sync overlays/prod --resource apps:Deployment:web --resource ':Service:web'
    """
    doing = say_first(f"reading {what}", quiet=told["output"] == "json")
    import asyncio

    from tidegate.cli.previewing import pruning_of
    from tidegate.cli.rolling import target_of, watching_of
    from tidegate.engine.reach.preflight import Preflight
    from tidegate.flows.sync import Rolling

    chosen = dataclasses.replace(chosen_of(what, told), resources=told["resources"])
    target = target_of(told)
    if told["dry_run"]:
        pruning = pruning_of(prunes=told["prune"], consents=told["confirm"])
        return asyncio.run(_preview(chosen, target, pruning, doing, json=told["output"] == "json"))
    rolling = Rolling(
        carries_on=told["on_failure"] == "continue",
        prunes=told["prune"],
        consents=told["confirm"],
        runs_hooks=told["hooks"],
        preflight=Preflight(told["preflight"]),
    )
    watching = watching_of(chosen.unit.name, doing, told)
    broken_seals = told["take_broken_seals"]
    return asyncio.run(_sync(chosen, target, rolling, watching, broken_seals=broken_seals))


async def _preview(
    chosen: Chosen, target: Target, pruning: Pruning, doing: Doing, *, json: bool
) -> int:
    from tidegate.cli.previewing import show_preview
    from tidegate.flows.preview import preview_on

    doing.say(f"comparing {chosen.wanted.what} with what lives")
    found = await preview_on(chosen, target, pruning)
    doing.clear()
    show_preview(found, json=json)
    return 0


async def _sync(
    chosen: Chosen, target: Target, rolling: Rolling, watching: Watching, *, broken_seals: bool
) -> int:
    import os

    from tidegate.cli.rolling import exit_code_of, reach, show_rollout
    from tidegate.cli.screen import Screen
    from tidegate.flows.rendering import refuse_unsound
    from tidegate.flows.sync import make_plan

    shown = Screen.on(sys.stdout, os.environ, json=watching.json)
    then = f"rendering {chosen.wanted.what}"
    async with shown as screen, reach(target, watching.doing, then) as place:
        planned = await make_plan(chosen, place.world, prunes=rolling.prunes)
        if target.simulation is None:
            refuse_unsound(planned.rendered, takes_broken_seals=broken_seals)
        watching.doing.clear()
        options.say_notes(planned.notes)
        result = await show_rollout(screen, place, planned.plan, target, rolling, watching)
    for left in screen.course.kept:
        click.echo(f"note: {left} asks for confirmation; `--confirm` prunes it", err=True)
    return exit_code_of(result)
