"""Comparison of two traces.

A slow controller does several steps in one reconciliation. So two traces of an object are equal if,
between two actions of the case (that is, as long as the generation is the same):

* each condition takes the same statuses and reasons, in the same order;
* the observed generation, and the revisions, change in the same order;
* each count has the same first, last, lowest and highest value.

The lowest values of counts of new (`updated...`) or placed pods (`currentNumberScheduled`) are not
compared: they may or may not dip between a deletion and a creation. The number of intermediate
values of a count, and the order in which two conditions change, may differ too.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from tests.support.trace_run import Trace
from tests.support.trace_states import REVISIONS, State
from tidegate.model.k8s.json_fields import get_int, get_mapping
from tidegate.model.k8s.objects import Json

BLINKING = ("currentNumberScheduled", "updatedNumberScheduled", "updatedReplicas")
Summary = dict[str, object]


def summary_of(trace: Trace) -> dict[str, list[Summary]]:
    """What is compared: for each object, and each stretch with one generation."""
    return {name: _stretches(states) for name, states in trace.items()}


def _stretches(states: list[State]) -> list[Summary]:
    stretches = groupby(states, key=lambda state: state.get("generation"))
    return [_stretch(list(stretch)) for _, stretch in stretches]


def _stretch(states: list[State]) -> Summary:
    conditions = sorted({name for state in states for name in get_mapping(state, "conditions")})
    counts = sorted({name for state in states for name in get_mapping(state, "counts")})
    by_name: Summary = {
        name: _distinct(get_mapping(state, "conditions").get(name) for state in states)
        for name in conditions
    }
    by_name |= {
        name: _distinct(state.get(name) for state in states)
        for name in ("generation", "observed", *REVISIONS)
    }
    for name in counts:
        values = [get_int(state, "counts", name) for state in states]
        least = None if name in BLINKING else min(values)
        by_name[name] = (values[0], least, max(values), values[-1])
    return by_name


def _distinct(values: Iterable[Json]) -> list[Json]:
    return [value for value, _ in groupby(values)]
