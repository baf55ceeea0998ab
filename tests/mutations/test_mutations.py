"""Some places of each mutation operator: mistakes are reported, harmless changes are not.

`python -m tests.mutations` runs all places and prints the rates.
"""

from __future__ import annotations

import pytest

from tests.mutations.operator import OPERATORS
from tests.mutations.repository import repositories
from tests.mutations.run import Outcome, choose_mutations, run_mutations

LEAST_DETECTED = 0.94
"""The share of mistakes that has to be reported as an error or a warning."""


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    all_repositories = repositories()
    mutations = choose_mutations(all_repositories, [*OPERATORS], len(OPERATORS), seed=7)
    return run_mutations(all_repositories, mutations, processes=1)


def is_breaking(outcome: Outcome) -> bool:
    return OPERATORS[outcome.mutation.operator].is_breaking


@pytest.mark.timeout(600)
def test_mistakes_are_reported_with_their_cause(outcomes: list[Outcome]) -> None:
    mistakes = [outcome for outcome in outcomes if is_breaking(outcome)]

    missed = [outcome.mutation for outcome in mistakes if not outcome.is_expected]
    assert len(mistakes) >= 40
    assert len(missed) <= (1 - LEAST_DETECTED) * len(mistakes), missed


def test_harmless_changes_cause_no_alarm(outcomes: list[Outcome]) -> None:
    alarms = [
        (outcome.mutation, outcome.new_findings, outcome.crash)
        for outcome in outcomes
        if not is_breaking(outcome) and not outcome.is_expected
    ]

    assert alarms == []


def test_there_are_hundreds_of_mutations() -> None:
    places = choose_mutations(repositories(), [*OPERATORS], places=0, seed=0)

    breaking = [place for place in places if OPERATORS[place.operator].is_breaking]
    assert len(breaking) >= 300
    assert len(places) - len(breaking) >= 300
