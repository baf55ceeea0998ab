"""`tidegate simulate`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.commands.learn import learn
from tidegate.cli.completion import complete_engine
from tidegate.cli.options import (
    ALLOW_INCOMPLETE,
    APPROVE,
    EMPTY_CLUSTER,
    HEALTH,
    PLAIN_UNIT,
    SELECTION,
    SIMULATION,
    Flags,
    with_options,
)
from tidegate.cli.progress import show_progress

if TYPE_CHECKING:
    from tidegate.model.units.semantics import Semantics
    from tidegate.report.simulation import EngineRun
    from tidegate.simulation.run import SimulationResult


@options.command(subcommands={"learn": learn})
@options.PATH
@click.option(
    "--engine",
    default="native",
    show_default=True,
    metavar="ENGINE[,ENGINE]",
    shell_complete=complete_engine,
    help="Semantics: native, tidegate, argocd, argocd=3.5, argocd=3.6 or flux; several separated "
    "by commas. native: Argo CD for Applications, Flux for Kustomizations and HelmReleases.",
)
@with_options(SELECTION, PLAIN_UNIT, SIMULATION, EMPTY_CLUSTER, HEALTH, APPROVE, ALLOW_INCOMPLETE)
@click.option(
    "--duration-range",
    is_flag=True,
    help="Run with the shortest, likely and longest durations of the profile.",
)
@options.until_option("2h", "Maximum simulated time.")
@options.OUTPUT
def simulate(**flags: Unpack[Flags]) -> int:
    """Roll out PATH on a simulated cluster, and show when each gate opened.

    Time is virtual: minutes pass in milliseconds. The same input gives the same output.
    Dependencies that PATH does not contain are assumed to exist and listed.

    `tidegate simulate learn` writes a profile with the durations of a real cluster.

    \b
    Examples:
      tidegate simulate examples/first
      tidegate simulate examples/first --engine tidegate,argocd
      tidegate simulate overlays/prod --scenario slow-database.yaml --seed 7
      tidegate simulate . --engine argocd --health-rules argocd-cm.yaml
      tidegate simulate . --profile prod-profile.yaml --duration-range
      tidegate simulate . --empty-cluster
      tidegate simulate learn --context prod > prod-profile.yaml
    """
    path = flags["path"]
    progress_line = show_progress(f"simulating {path}", quiet=flags["output"] == "json")
    from tidegate.cli.assumptions import print_assumptions
    from tidegate.cli.requests import cluster_targets, load_request, render_settings
    from tidegate.cli.run_async import run_async
    from tidegate.model.simulation.duration_estimate import DurationEstimate
    from tidegate.report.simulation import comparison_lines, duration_range_lines
    from tidegate.simulation.run import SimulationOptions
    from tidegate.simulation.run import simulate as run_simulation

    engines = _parse_engines(flags["engine"])
    flags["sandbox"] = True
    request, target = load_request(path, flags), cluster_targets(flags)
    settings, until, approved = render_settings(flags), flags["until"], flags["approved"]
    empty_cluster = flags["empty_cluster"]
    estimates = tuple(DurationEstimate) if flags["duration_range"] else (DurationEstimate.LIKELY,)
    simulation_options = SimulationOptions(
        until=until, empty_cluster=empty_cluster, approved=approved, estimates=estimates
    )
    results = run_async(run_simulation(request, engines, target, settings, simulation_options))
    progress_line.clear()
    options.print_warnings(results[0].notes)
    code = options.print_findings(finding for result in results for finding in result.findings)
    engine_runs = [
        _engine_run(result, with_durations=flags["duration_range"]) for result in results
    ]
    is_json = flags["output"] == "json"
    for missing in dict.fromkeys(result.missing_dependencies for result in results):
        print_assumptions(missing, empty_cluster=empty_cluster, is_json=is_json)
    lines = (
        duration_range_lines(engine_runs)
        if flags["duration_range"]
        else comparison_lines(engine_runs)
    )
    options.print_result(flags["output"], _run_documents(engine_runs), lines)
    incomplete_code = options.print_findings(
        finding for result in results for finding in result.incomplete_findings
    )
    if flags["allow_incomplete"]:
        incomplete_code = 0
    error_code = max(code, incomplete_code)
    return _exit_code(results, error_code, allow_incomplete=flags["allow_incomplete"])


def _exit_code(
    results: Iterable[SimulationResult], error_code: int, *, allow_incomplete: bool
) -> int:
    """Return the exit code of the verdicts of all engines, and of errors in findings."""
    from tidegate.cli.outcome_codes import OUTCOME_CODES
    from tidegate.model.rollouts.event import RolloutOutcome
    from tidegate.model.simulation.verdict import SimulationVerdict

    verdicts = {result.verdict for result in results}
    if SimulationVerdict.INVALID in verdicts:
        return OUTCOME_CODES[RolloutOutcome.INVALID]
    if verdicts & {SimulationVerdict.FAILED, SimulationVerdict.DEGRADED}:
        return OUTCOME_CODES[RolloutOutcome.FAILED]
    is_incomplete = SimulationVerdict.INCOMPLETE in verdicts and not allow_incomplete
    return error_code or (options.INCOMPLETE if is_incomplete else 0)


def _engine_run(result: SimulationResult, *, with_durations: bool) -> EngineRun:
    from tidegate.report.simulation import EngineRun

    return EngineRun(
        result.name,
        result.plan,
        result.events,
        result.evidence,
        result.not_awaited,
        result.not_simulated,
        result.estimate if with_durations else None,
        result.unhealthy_afterwards,
        result.drifts,
        result.revision_syncs,
        result.resyncs,
        "; ".join(finding.message for finding in result.incomplete_findings),
        result.releases,
        result.verdict,
        result.left_out,
        result.unit_states,
        result.later_events,
    )


def _parse_engines(text: str) -> list[Semantics | None]:
    """Return the semantics by name; None is the native engine of each unit."""
    from tidegate.model.units.semantics import SEMANTICS_BY_NAME

    engines: dict[str, Semantics | None] = {**SEMANTICS_BY_NAME, "native": None}
    names = [name.strip() for name in text.split(",")]
    for index, name in enumerate(names):
        if name not in engines:
            problem = f"unknown engine `{name}`; use {', '.join(engines)}"
            raise click.BadParameter(problem, param_hint="--engine")
        if name in names[:index]:
            raise click.BadParameter(f"`{name}` is given twice", param_hint="--engine")
    return [engines[name] for name in names]


def _run_documents(runs: list[EngineRun]) -> Iterator[object]:
    """Yield each event with its engine, and the result of each engine."""
    import msgspec

    from tidegate.model.rollouts.documents import event_document
    from tidegate.report.simulation import engine_result_document

    for run in runs:
        estimate = {"durationEstimate": run.durations} if run.durations else {}
        labels = {"engine": run.name} | estimate
        for event in (*run.events, *run.later_events):
            yield {**labels, **msgspec.to_builtins(event_document(event))}
        yield engine_result_document(run)
