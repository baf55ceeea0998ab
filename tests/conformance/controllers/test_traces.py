"""The controllers of the sandbox behave like the recorded real ones.

`compare.py` has the rule. Real controllers race each other, so a case is recorded several times,
and its file holds every trace that differs by that rule; the sandbox has to produce one of them.
"""

from __future__ import annotations

import pytest

from tests.conformance.controllers.catalogue import CASES
from tests.conformance.controllers.compare import summary_of
from tests.conformance.controllers.files import FOLDER, path_of, read_traces
from tests.support.trace_case import Case
from tests.support.trace_simulation import simulated


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_the_sandbox_produces_a_recorded_trace(case: Case) -> None:
    recorded = [summary_of(trace) for trace in read_traces(case)]

    summary = summary_of(await simulated(case))

    # Compared with the first alone, a failure shows where they differ.
    assert summary in recorded or summary == recorded[0]


def test_every_recorded_trace_has_a_case() -> None:
    known = {path_of(case) for case in CASES}

    recorded = set(FOLDER.glob("*.json"))

    assert recorded == known


async def test_a_case_produces_the_same_trace_twice() -> None:
    case = next(case_ for case_ in CASES if case_.name == "deployment-rolls-to-a-new-image")

    first, second = await simulated(case), await simulated(case)

    assert first == second
