"""The time to find ignored differences with jq, in a worker.

`in the worker` is jq alone, for two expressions and two bodies. `asked` includes the call of the
worker, as in a comparison of one object. `known` is the same call again. `first` is the time of the
first call, including the start of the worker.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from statistics import median
from time import perf_counter

import msgspec

from bench.lua import BODY
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.model.plans.plan import PlanItem
from tidegate.workers.jq import Jq
from tidegate.workers.jq_worker import JqQuery, evaluate

ITEM = PlanItem(ref=Ref(Kind("example.com", "v1", "Thing"), "shop", "one"))
EXPRESSIONS = (".spec.replicas", '.spec.ports[] | select(.name == "port-7") | .port')
AMOUNT = 1_000
ROUNDS = 5


def measure() -> dict[str, float]:
    """Objects a second, each with both of its bodies."""
    encoded = msgspec.json.encode(BODY)
    question = msgspec.msgpack.encode(JqQuery(EXPRESSIONS, (encoded, encoded)))
    with closing(Jq()) as jq:
        start = perf_counter()
        _ask(jq, -1)
        first = perf_counter() - start
        return {
            "in the worker/s": _rate(lambda _: evaluate(question)),
            "asked/s": _rate(lambda number: _ask(jq, number)),
            "known/s": _rate(lambda _: _ask(jq, -1)),
            "first, ms": first * 1_000,
        }


def _ask(jq: Jq, version: int) -> None:
    """Each version of a body is a new question."""
    live: dict[str, Json] = {**BODY, "version": version}
    expected, there = jq.paths_for(ITEM)(EXPRESSIONS, (BODY, live))
    if expected != (("spec", "replicas"), ("spec", "ports", 7, "port")) or expected != there:
        raise AssertionError(expected)


def _rate(work: Callable[[int], object]) -> float:
    rounds = []
    for number in range(ROUNDS):
        start = perf_counter()
        for item in range(AMOUNT):
            work(number * AMOUNT + item)
        rounds.append(AMOUNT / (perf_counter() - start))
    return median(rounds)
