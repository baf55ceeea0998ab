"""Many objects at once: a rollout compared with a bare loop, and a second run without changes."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter

from bench.engine.cluster import Bench
from bench.world import bare_lap, bodies, encoded
from tests.support.builders import make_plan_from, make_unit
from tests.support.rollout_audit import is_own_write
from tidegate.model.plans.plan import Plan

ROUNDS = 3
OBJECTS = 2_000
AGAIN = 5_000


def a_heap(name: str, count: int) -> Plan:
    """One unit with one wave of ConfigMaps."""
    return make_plan_from(make_unit(tuple(bodies(0, namespace=name, count=count)), name=name))


async def first_runs(bench: Bench) -> list[tuple[float, float]]:
    """Objects per second: of the bare loop, and of whole rollouts."""
    rates = []
    for turn in range(ROUNDS):
        bare, engine = f"heap-bare-{turn}", f"heap-engine-{turn}"
        for name in (bare, engine):
            await bench.make_namespace(name)
        work = encoded(bodies(0, namespace=bare, count=OBJECTS))
        async with bench.session() as session:
            lap = await bare_lap(session, bench.target, work, bare)
        plan = a_heap(engine, OBJECTS)
        rates.append((lap.rate, OBJECTS / await _seconds(bench, plan)))
    return rates


async def _seconds(bench: Bench, plan: Plan) -> float:
    start = time.perf_counter()
    await bench.roll_out(plan)
    return time.perf_counter() - start


async def second_run(bench: Bench) -> dict[str, float]:
    """What a rollout costs that has nothing to do, by the audit log."""
    await bench.make_namespace("again")
    plan = a_heap("again", AGAIN)
    first = await _seconds(bench, plan)
    before = sum(1 for _ in bench.entries())
    second = await _seconds(bench, plan)
    request = list(bench.entries())[before:]
    lists = Counter(
        entry.object_ref.resource
        for entry in request
        if entry.verb == "list" and "continue=" not in entry.request_uri
    )
    return {
        f"first run of {AGAIN:,}, s": first,
        f"second run of {AGAIN:,}, s": second,
        "second run, LISTs of a kind at most": max(lists.values()),
        "second run, pages of lists": sum(entry.verb == "list" for entry in request),
        "second run, writes": sum(map(is_own_write, request)),
        "second run, dry runs": sum("dryRun" in entry.request_uri for entry in request),
    }


def measure(bench: Bench) -> dict[str, float]:
    rates = asyncio.run(first_runs(bench))
    return {
        f"{OBJECTS:,} applies, bare, per s": statistics.median(bare for bare, _ in rates),
        f"{OBJECTS:,} applies, engine, per s": statistics.median(ours for _, ours in rates),
        f"{OBJECTS:,} applies, engine / bare": statistics.median(
            ours / bare for bare, ours in rates
        ),
        **asyncio.run(second_run(bench)),
    }
