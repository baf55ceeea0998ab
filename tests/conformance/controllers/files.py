"""Recorded traces as files: one for each case, one line for each state.

A file has one trace if all recordings of the case were equal, otherwise a list of traces, the most
frequent first.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.conformance.controllers.compare import summary_of
from tests.support.trace_case import Case
from tests.support.trace_run import Trace

FOLDER = Path(__file__).parents[2] / "data" / "traces"


def path_of(case: Case) -> Path:
    return FOLDER / f"{case.name}.json"


def write_traces(case: Case, traces: list[Trace]) -> None:
    """Keep one trace of each kind."""
    kept = distinct(traces)
    shown = [show_trace(trace) for trace in kept]
    text = shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"
    path_of(case).write_text(f"{text}\n")


def read_traces(case: Case) -> list[Trace]:
    document: Trace | list[Trace] = msgspec.json.decode(path_of(case).read_bytes())
    return document if isinstance(document, list) else [document]


def distinct(traces: list[Trace]) -> list[Trace]:
    """Of traces that are the same, one: whichever is the first by its text."""
    groups: list[list[Trace]] = []
    for trace in sorted(traces, key=show_trace):
        summary = summary_of(trace)
        group = next((group for group in groups if summary_of(group[0]) == summary), None)
        if group is None:
            groups.append([trace])
        else:
            group.append(trace)
    groups.sort(key=len, reverse=True)
    return [group[0] for group in groups]


def show_trace(trace: Trace) -> str:
    """JSON, with a line for each state, so that a change of one is a change of one line."""
    objects = []
    for name, states in trace.items():
        lines = ",\n".join(f"    {_line(state)}" for state in states)
        objects.append(f'  "{name}": [\n{lines}\n  ]')
    return "{\n" + ",\n".join(objects) + "\n}"


def _line(state: object) -> str:
    return msgspec.json.format(msgspec.json.encode(state), indent=0).decode()
