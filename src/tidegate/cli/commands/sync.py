"""`tidegate sync`."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.unit_options import TARGET, UNIT, TargetOptions, UnitOptions, chosen_of, takes

if TYPE_CHECKING:
    from tidegate.cli.rolling import Watching
    from tidegate.flows.sync import Rolling, Target
    from tidegate.flows.units import Chosen


class SyncOptions(UnitOptions, TargetOptions):
    """All that can be said to `tidegate sync`."""

    resources: tuple[str, ...]
    create_namespace: bool
    fail_on_shared: bool
    prune: bool
    hooks: bool
    dry_run: bool
    preflight: str
    on_failure: str
    timeout: str
    take_broken_seals: bool
    pace: float | None
    output: str


@click.command()
@click.argument("what", metavar="DIR")
@takes(UNIT, TARGET)
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="GROUP:KIND:[NAMESPACE/]NAME",
    help="Only this object, and no hooks; `*` is any, `!` before it leaves out; may be repeated.",
)
@click.option("--create-namespace", is_flag=True, help="Create the namespace if it is not there.")
@click.option("--fail-on-shared", is_flag=True, help="Refuse to take objects of another unit.")
@click.option("--prune", is_flag=True, help="Delete what is the unit's and no longer in DIR.")
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
      tidegate sync charts/web -f values-prod.yaml --namespace web --create-namespace
      tidegate sync overlays/prod --resource apps:Deployment:web --resource ':Service:web'
    """
    import asyncio

    from tidegate.cli.rolling import Watching, target_of
    from tidegate.engine.reach.preflight import Preflight
    from tidegate.flows.sync import Rolling

    if told["prune"] and told["resources"]:
        raise click.UsageError("--prune looks at the whole unit: it does not go with --resource")
    chosen = dataclasses.replace(
        chosen_of(what, told),
        resources=told["resources"],
        creates_namespace=told["create_namespace"],
        refuses_shared=told["fail_on_shared"],
    )
    target = target_of(told)
    if told["dry_run"]:
        return asyncio.run(_preview(chosen, target, json=told["output"] == "json"))
    rolling = Rolling(
        carries_on=told["on_failure"] == "continue",
        prunes=told["prune"],
        runs_hooks=told["hooks"],
        preflight=Preflight(told["preflight"]),
    )
    limit = options.duration(told["timeout"], "--timeout")
    watching = Watching(
        title=chosen.unit.name, limit=limit, pace=told["pace"], json=told["output"] == "json"
    )
    broken_seals = told["take_broken_seals"]
    return asyncio.run(_sync(chosen, target, rolling, watching, broken_seals=broken_seals))


async def _preview(chosen: Chosen, target: Target, *, json: bool) -> int:
    from tidegate.cli.previewing import show_preview
    from tidegate.flows.preview import preview_on

    show_preview(await preview_on(chosen, target), json=json)
    return 0


async def _sync(
    chosen: Chosen, target: Target, rolling: Rolling, watching: Watching, *, broken_seals: bool
) -> int:
    import os

    from tidegate.cli.rolling import exit_code_of, show_rollout
    from tidegate.cli.screen import Screen
    from tidegate.flows.rendering import refuse_unsound
    from tidegate.flows.sync import make_plan, open_target

    shown = Screen.on(sys.stdout, os.environ, json=watching.json)
    async with shown as screen, open_target(target) as place:
        planned = await make_plan(chosen, place.world)
        if target.simulation is None:
            refuse_unsound(planned.rendered, takes_broken_seals=broken_seals)
        options.say_notes(planned.notes)
        result = await show_rollout(screen, place, planned.plan, target, rolling, watching)
    return exit_code_of(result)
