"""`tidegate simulate`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_engine, complete_path
from tidegate.cli.doing import say_first
from tidegate.cli.unit_options import (
    APPROVING,
    ASSUMING,
    HEALTH,
    NARROWING,
    SIMULATION,
    UNIT,
    Given,
    takes,
)

if TYPE_CHECKING:
    from tidegate.flows.simulate import Simulated
    from tidegate.model.event import Result
    from tidegate.model.semantics import Semantics
    from tidegate.report.simulation import EngineRun


@click.command()
@click.argument("what", metavar="PATH", shell_complete=complete_path)
@click.option(
    "--engine",
    default="own",
    show_default=True,
    shell_complete=complete_engine,
    help="Whose rules: tidegate, argocd, flux, or each unit's own; several as a,b.",
)
@takes(NARROWING, UNIT, SIMULATION, ASSUMING, HEALTH, APPROVING)
@click.option(
    "--spread",
    is_flag=True,
    help="Three times: with the shortest, the likely and the longest durations of the profile.",
)
@options.until("2h", "How long at most, in its own time.")
@options.text_or_json
def simulate(what: str, **told: Unpack[Given]) -> int:
    """Roll out PATH on a simulated cluster, and show when each gate opened.

    Time is virtual: minutes pass in milliseconds. The same input gives the same output. What PATH
    leans on and does not bring is taken to be there, and told.

    \b
    Examples:
      tidegate simulate examples/first
      tidegate simulate examples/first --engine tidegate,argocd
      tidegate simulate overlays/prod --scenario slow-database.yaml --seed 7
      tidegate simulate charts/laravel --engine argocd --health-rules argocd-cm.yaml
      tidegate simulate overlays/prod --profile ours.yaml --spread
      tidegate simulate . --greenfield
    """
    doing = say_first(f"simulating {what}", quiet=told["output"] == "json")
    from tidegate.cli.asking import pointed_of, setting_of, target_of
    from tidegate.cli.assuming import show_absences
    from tidegate.cli.running import run as run_story
    from tidegate.flows.simulate import Playing
    from tidegate.flows.simulate import simulate as run
    from tidegate.model.expectation import Expectation
    from tidegate.report.simulation import side_by_side
    from tidegate.report.spread import spread_lines

    engines = _engines(told["engine"])
    told["sandbox"] = True
    pointed, target = pointed_of(what, told), target_of(told)
    setting, until, names = setting_of(told), told["until"], told["approved"]
    greenfield = told["greenfield"]
    expectations = tuple(Expectation) if told["spread"] else (Expectation.LIKELY,)
    playing = Playing(until=until, greenfield=greenfield, approved=names, expectations=expectations)
    runs = run_story(run(pointed, engines, target, setting, playing))
    doing.clear()
    options.say_notes(runs[0].notes)
    code = options.say_findings(finding for one in runs for finding in one.findings)
    shown = [_shown(one, spread=told["spread"]) for one in runs]
    is_json = told["output"] == "json"
    for absences in dict.fromkeys(one.absences for one in runs):
        show_absences(absences, greenfield=greenfield, json=is_json)
    lines = spread_lines(shown) if told["spread"] else side_by_side(shown)
    options.show(told["output"], _documents(shown), lines)
    unknown = options.say_findings(finding for one in runs for finding in one.weakness)
    return _code_of({one.result for one in runs}) or max(code, unknown)


def _code_of(results: set[Result]) -> int:
    """The exit code of how the engines ended."""
    from tidegate.cli.exits import CODES
    from tidegate.model.event import Result

    if results == {Result.PASSED}:
        return 0
    return CODES[Result.INVALID if Result.INVALID in results else Result.FAILED]


def _shown(one: Simulated, *, spread: bool) -> EngineRun:
    from tidegate.report.simulation import EngineRun

    return EngineRun(
        one.name,
        one.plan,
        one.events,
        one.evidence,
        one.unwaited,
        one.unplayed,
        one.expecting if spread else None,
        one.aftermath,
        one.drifts,
        one.uptakes,
        one.resyncs,
        "; ".join(finding.sentence for finding in one.weakness),
        one.releases,
        one.faulty,
    )


def _engines(text: str) -> list[Semantics | None]:
    """Whose rules, by their names; None is each unit's own."""
    from tidegate.model.semantics import BY_NAME

    known: dict[str, Semantics | None] = {**BY_NAME, "own": None}
    names = [name.strip() for name in text.split(",")]
    for at, name in enumerate(names):
        if name not in known:
            problem = f"there is no `{name}`; there are {', '.join(known)}"
            raise click.BadParameter(problem, param_hint="--engine")
        if name in names[:at]:
            raise click.BadParameter(f"`{name}` is there twice", param_hint="--engine")
    return [known[name] for name in names]


def _documents(runs: list[EngineRun]) -> Iterator[object]:
    """Each event, with the engine it is of; the last one says how that ended."""
    import msgspec

    from tidegate.report.rollout.documents import event_out
    from tidegate.report.simulation_document import ending_of

    for run in runs:
        of = {"engine": run.name} | ({"expecting": run.expecting} if run.expecting else {})
        for event in run.events:
            yield {**of, **msgspec.to_builtins(event_out(event))}
        yield ending_of(run)
