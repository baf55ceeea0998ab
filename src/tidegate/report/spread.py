"""One rollout with short, likely and long durations: when each gate would open, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from tidegate.report.plan import step_name
from tidegate.report.simulation import (
    EngineRun,
    StepTimes,
    ending_lines,
    opening,
    step_times,
)

WIDTH = 14


def spread_lines(runs: Sequence[EngineRun]) -> Iterator[str]:
    """For each engine a table of when gates open, and how each of its runs ended."""
    for place, (name, told) in enumerate(groupby(runs, key=lambda run: run.name)):
        alike = list(told)
        if place:
            yield ""
        yield from _table(name, alike)
        yield ""
        for run in alike:
            yield from ending_lines(run, f"{name}, {run.expecting}")


def _table(name: str, runs: Sequence[EngineRun]) -> Iterator[str]:
    plan = runs[0].plan
    steps = [step for step in plan.steps if not step.is_joint]
    names = [step_name(step, several=len(plan.units) > 1) for step in steps]
    title = f"{name} opens"
    width = max(map(len, (title, *names)))
    found = [step_times(run.events) for run in runs]
    yield f"{title:{width}}" + "".join(f"  {run.expecting or '':>{WIDTH}}" for run in runs)
    for shown, step in zip(names, steps, strict=True):
        cells = (opening(times.get(step.id, StepTimes())) for times in found)
        yield f"{shown:{width}}" + "".join(f"  {cell:>{WIDTH}}" for cell in cells)
