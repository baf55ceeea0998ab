"""When two traces are the same.

Real controllers do several steps in one look when they are slow. So two traces of an object are the
same when, between two actions of the case (that is, as long as the generation is the same):

* each condition takes the same statuses and reasons, in the same order;
* the generation that was observed, and the revisions, change in the same order;
* each count begins and ends the same, and has the same least and greatest value in between.

Counts of what is new (`updated...`) or placed (`currentNumberScheduled`) may dip, or not, for the
instant between a deletion and a creation; their least values are not compared. How often a count is
told on its way, and which of two conditions is told first, may differ too.
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
