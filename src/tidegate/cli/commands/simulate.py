"""`tidegate simulate`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import (
    HEALTH,
    SIMULATION,
    UNIT,
    UnitOptions,
    policy_of,
    setting_of,
    takes,
    units_of,
)

if TYPE_CHECKING:
    from tidegate.model.semantics import Semantics
    from tidegate.report.simulation import Run


class SimulateOptions(UnitOptions):
    """All that can be said to `tidegate simulate`."""

    engine: str
    scenario: Path | None
    profile: Path | None
    operators: Path | None
    seed: int
    health_rules: Path | None
    until: str
    output: str


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
def simulate(what: str, **told: Unpack[SimulateOptions]) -> int:
    """Roll out DIR on a simulated cluster, and show when each gate opened.

    Time is virtual: minutes pass in milliseconds. The same input gives the same output.

    \b
    Examples:
      tidegate simulate examples/first
      tidegate simulate examples/first --engine tidegate,argocd
      tidegate simulate overlays/prod --scenario slow-database.yaml --seed 7
      tidegate simulate charts/laravel --engine argocd --health-rules argocd-cm.yaml
    """
    doing = say_first(f"simulating {what}", quiet=told["output"] == "json")
    import asyncio

    from tidegate.cli.exits import CODES
    from tidegate.flows.session import Target
    from tidegate.flows.simulate import simulate as run
    from tidegate.flows.wiring import Simulation
    from tidegate.model.event import Result
    from tidegate.report.simulation import Run, side_by_side

    engines = _engines(told["engine"])
    simulation = Simulation(
        scenario=told["scenario"],
        profile=told["profile"],
        operators=told["operators"],
        seed=told["seed"],
    )
    runs = asyncio.run(
        run(
            units_of(what, told, policy_of(told)),
            engines,
            Target(simulation=simulation, health_rules=told["health_rules"]),
            setting_of(told),
            until=options.duration(told["until"], "--until"),
        )
    )
    doing.clear()
    options.say_notes(runs[0].notes)
    shown = [
        Run(one.semantics.name, one.plan, one.events, one.evidence, one.unwaited) for one in runs
    ]
    for line in side_by_side(shown) if told["output"] == "text" else _documents(shown):
        click.echo(line)
    results = {one.result for one in runs}
    if results == {Result.PASSED}:
        return CODES[Result.PASSED]
    return CODES[Result.INVALID if Result.INVALID in results else Result.FAILED]


def _engines(text: str) -> list[Semantics]:
    """Whose rules, by their names."""
    from tidegate.model.semantics import BY_NAME

    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in BY_NAME:
            problem = f"there is no `{name}`; there are {', '.join(BY_NAME)}"
            raise click.BadParameter(problem, param_hint="--engine")
    return [BY_NAME[name] for name in names]


def _documents(runs: list[Run]) -> Iterator[str]:
    """One line for each event, with the engine it is of; the last one says how that ended."""
    import msgspec

    from tidegate.report.simulation import ending_of

    for run in runs:
        for event in run.events:
            yield msgspec.json.encode({"engine": run.name, **msgspec.to_builtins(event)}).decode()
        yield msgspec.json.encode(ending_of(run)).decode()
