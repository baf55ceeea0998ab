"""Simulated rollouts compared: times of steps and outcomes, as text and as JSON documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from tidegate.report.plan import step_title
from tidegate.report.simulation import (
    EngineRun,
    StepTimes,
    gate_time,
    result_lines,
    step_times,
)

TIME_WIDTH = 14


def duration_range_lines(runs: Sequence[EngineRun]) -> Iterator[str]:
    """Yield a table of gate times per engine, and the outcome of each of its runs."""
    for index, (name, group) in enumerate(groupby(runs, key=lambda run: run.name)):
        engine_runs = list(group)
        if index:
            yield ""
        yield from _duration_table(name, engine_runs)
        yield ""
        for run in engine_runs:
            yield from result_lines(run, f"{name}, {run.durations}")


def _duration_table(name: str, runs: Sequence[EngineRun]) -> Iterator[str]:
    plan = runs[0].plan
    steps = [step for step in plan.steps if not step.is_placeholder]
    names = [step_title(step, with_unit=len(plan.units) > 1) for step in steps]
    title = f"{name} opens"
    width = max(map(len, (title, *names)))
    times_by_run = [step_times(run.events) for run in runs]
    yield f"{title:{width}}" + "".join(f"  {run.durations or '':>{TIME_WIDTH}}" for run in runs)
    for step_text, step in zip(names, steps, strict=True):
        cells = (gate_time(times.get(step.id, StepTimes())) for times in times_by_run)
        yield f"{step_text:{width}}" + "".join(f"  {cell:>{TIME_WIDTH}}" for cell in cells)
