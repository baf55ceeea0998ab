"""`tidegate sync`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.unit_options import CLUSTER, FILE, SIMULATION, UNIT, UnitOptions, chosen_of, takes

if TYPE_CHECKING:
    from tidegate.flows.sync import Rolling, Target
    from tidegate.flows.units import Chosen
    from tidegate.model.moment import Ms
    from tidegate.report.rollout.summary import Commands

PASSED, INVALID, FAILED, INTERRUPTED = "passed", 3, 4, 130
PACE = 20.0
"""Seconds of a simulated cluster that pass in one of ours, where somebody is watching."""


@click.command()
@click.argument("what", metavar="DIR")
@click.option("--sandbox", is_flag=True, help="On a simulated cluster.")
@takes(UNIT, CLUSTER, SIMULATION)
@click.option("--prune", is_flag=True, help="Delete what is the unit's and no longer in DIR.")
@click.option(
    "--health-rules", type=FILE, help="Lua health checks, in the form of Argo CD's settings."
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
def sync(
    what: str,
    sandbox: bool,  # noqa: FBT001 - click hands over what is on the command line
    kubeconfig: str | None,
    context: str | None,
    scenario: Path | None,
    profile: Path | None,
    operators: Path | None,
    seed: int,
    prune: bool,  # noqa: FBT001
    health_rules: Path | None,
    hooks: bool,  # noqa: FBT001
    dry_run: bool,  # noqa: FBT001
    preflight: str,
    on_failure: str,
    timeout: str,
    take_broken_seals: bool,  # noqa: FBT001
    pace: float | None,
    output: str,
    **told: Unpack[UnitOptions],
) -> int:
    """Roll out DIR wave by wave; each gate opens when what was applied is healthy.

    DIR is a directory of manifests, a Helm chart or a Kustomize overlay. What is there already and
    as wanted is left alone. Ctrl-C stops cleanly; the same command goes on where it stopped.

    \b
    Examples:
      tidegate sync examples/first --sandbox
      tidegate sync overlays/prod --context prod --prune
      tidegate sync charts/web -f values-prod.yaml --namespace web --timeout 30m
    """
    import asyncio

    from tidegate.engine.reach.preflight import Preflight
    from tidegate.flows.preview import preview_on
    from tidegate.flows.sync import Rolling, Target
    from tidegate.flows.wiring import Simulation
    from tidegate.report.plan import plan_lines

    chosen = chosen_of(what, told)
    simulation = Simulation(scenario=scenario, profile=profile, operators=operators, seed=seed)
    target = Target(
        kubeconfig=kubeconfig,
        context=context,
        simulation=simulation if sandbox else None,
        health_rules=health_rules,
    )
    if dry_run:
        found = asyncio.run(preview_on(chosen, target))
        for line in plan_lines(found.plan, found.differences):
            click.echo(line)
        return 0
    rolling = Rolling(
        carries_on=on_failure == "continue",
        prunes=prune,
        runs_hooks=hooks,
        preflight=Preflight(preflight),
    )
    limit = options.duration(timeout, "--timeout")
    return asyncio.run(
        _sync(
            chosen,
            target,
            rolling,
            limit=limit,
            pace=pace,
            json=output == "json",
            broken_seals=take_broken_seals,
        )
    )


async def _sync(
    chosen: Chosen,
    target: Target,
    rolling: Rolling,
    *,
    limit: Ms | None,
    pace: float | None,
    json: bool,
    broken_seals: bool,
) -> int:
    import os

    from tidegate.cli.screen import Screen
    from tidegate.engine.drive import drive
    from tidegate.flows.evidence import collect_evidence
    from tidegate.flows.pace import Paced
    from tidegate.flows.rendering import refuse_unsound
    from tidegate.flows.sync import Venue, make_driver, make_plan, open_target
    from tidegate.model.moment import Ms
    from tidegate.report.rollout.failure import failing_refs

    async with Screen.on(sys.stdout, os.environ, json=json) as screen, open_target(target) as place:
        world = place.world
        planned = await make_plan(chosen, world)
        plan = planned.plan
        if target.simulation is None:
            refuse_unsound(planned.rendered, takes_broken_seals=broken_seals)
        options.say_notes(planned.notes)
        watched = PACE if screen.is_live and target.simulation is not None else None
        paced = Paced(world, pace or watched)
        driver = make_driver(plan, Venue(paced, place.craft), rolling, screen.emit)
        screen.begin(plan, clock=paced.now, stop=driver.stop, title=chosen.unit.name)
        until = None if limit is None else Ms(world.now() + limit)
        result = await drive(driver, until=until)
        refs = failing_refs(screen.course)
        evidence = await collect_evidence(world, refs, screen.discretion)
        screen.end(evidence, _commands(target))
    return {PASSED: 0, "invalid": INVALID, "stopped": INTERRUPTED}.get(result, FAILED)


def _commands(target: Target) -> Commands:
    """What can be typed next: the same command, and kubectl for the same cluster."""
    from tidegate.report.rollout.summary import Commands

    chosen = [] if target.context is None else ["--context", target.context]
    file = [] if target.kubeconfig is None else ["--kubeconfig", target.kubeconfig]
    is_real = target.simulation is None
    return Commands(
        again=shlex.join(["tidegate", *sys.argv[1:]]),
        kubectl=shlex.join(["kubectl", *file, *chosen]) if is_real else "",
        resumes=is_real,
    )
