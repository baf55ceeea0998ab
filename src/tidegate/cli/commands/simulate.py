"""`tidegate simulate`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import HEALTH, SIMULATION, UNIT, UnitOptions, chosen_of, takes

if TYPE_CHECKING:
    from tidegate.model.plan import Plan
    from tidegate.report.simulation import Run

INVALID, FAILED = 3, 4
ENGINES = ("tidegate", "argocd", "flux")


@click.command()
@click.argument("what", metavar="DIR")
@click.option(
    "--engine",
    default="tidegate",
    show_default=True,
    help="Whose rules: tidegate, argocd or flux; several parted by commas.",
)
@takes(UNIT, SIMULATION, HEALTH)
@click.option("--until", default="2h", show_default=True, help="How long at most, in its own time.")
@options.text_or_json
def simulate(
    what: str,
    engine: str,
    scenario: Path | None,
    profile: Path | None,
    operators: Path | None,
    seed: int,
    health_rules: Path | None,
    until: str,
    output: str,
    **told: Unpack[UnitOptions],
) -> int:
    """Roll out DIR on a simulated cluster, and show when each gate opened.

    Time is virtual: minutes pass in milliseconds. The same input gives the same output.

    \b
    Examples:
      tidegate simulate examples/first
      tidegate simulate examples/first --engine tidegate,argocd
      tidegate simulate overlays/prod --scenario slow-database.yaml --seed 7
      tidegate simulate charts/laravel --engine argocd --health-rules argocd-cm.yaml
    """
    doing = say_first(f"simulating {what}", quiet=output == "json")
    import asyncio

    from tidegate.flows.simulate import simulate as run
    from tidegate.flows.sync import Target
    from tidegate.flows.wiring import Simulation
    from tidegate.model.semantics import BY_NAME
    from tidegate.report.simulation import Run, side_by_side

    names = [name.strip() for name in engine.split(",")]
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        problem = f"there is no `{unknown[0]}`; there are {', '.join(ENGINES)}"
        raise click.BadParameter(problem, param_hint="--engine")
    simulation = Simulation(scenario=scenario, profile=profile, operators=operators, seed=seed)
    runs = asyncio.run(
        run(
            chosen_of(what, told),
            [BY_NAME[name] for name in names],
            Target(simulation=simulation, health_rules=health_rules),
            until=options.duration(until, "--until"),
        )
    )
    doing.clear()
    options.say_notes(runs[0].notes)
    shown = [Run(one.semantics.name, one.events, one.evidence, one.unwaited) for one in runs]
    plan = runs[0].plan
    for line in side_by_side(plan, shown) if output == "text" else _documents(plan, shown):
        click.echo(line)
    if any(one.is_invalid for one in runs):
        return INVALID
    return 0 if all(one.passed for one in runs) else FAILED


def _documents(plan: Plan, runs: list[Run]) -> Iterator[str]:
    """One line for each event, with the engine it is of; the last one says how that ended."""
    import msgspec

    from tidegate.report.simulation import ending_of

    for run in runs:
        for event in run.events:
            yield msgspec.json.encode({"engine": run.name, **msgspec.to_builtins(event)}).decode()
        yield msgspec.json.encode(ending_of(plan, run)).decode()
