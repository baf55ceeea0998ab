"""A release that is killed at any turn is gone on with: no lock, no number lost, no hook twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rollout_cases import shared_by, some_turns
from tests.support.rollout_releases import ReleaseCase, ReleaseStage, release_cases
from tests.support.rollout_stages import PATIENCE

pytestmark = pytest.mark.timeout(PATIENCE)


@shared_by(100)
@given(release_cases, st.integers(0, 7))
def test_a_release_killed_at_any_turn_is_continued(case: ReleaseCase, variant: int) -> None:
    turns = [_whole(case, upto).release(f"{upto}").life.turns for upto in (0, 1)]

    for upto in (0, 1):
        for turn in some_turns(turns[upto], variant):
            master = _whole(case, upto)
            master.release(f"{upto}", dies_at=turn, lands=(turn + variant // 2) % 4)
            heir = "one" if (turn + variant) % 2 else "two"
            run = master.release(f"{upto}", holder=heir).run

            assert run.result == "passed", turn
            done = [(number, "superseded") for number in range(1, upto + 1)]
            assert master.revision_statuses == [*done, (upto + 1, "deployed")], turn
            assert master.made == case.expected(master.actions), turn


def _whole(case: ReleaseCase, upto: int) -> ReleaseStage:
    """The number of releases that have passed."""
    master = ReleaseStage(case)
    for to in range(upto):
        master.release(f"{to}")
    return master


@shared_by(20)
@given(release_cases, st.lists(st.tuples(st.integers(0, 2), st.integers(1, 80)), max_size=4))
def test_kill_after_kill_leaves_records_in_order(
    case: ReleaseCase, kills: list[tuple[int, int]]
) -> None:
    """After the next rollout, the last revision is deployed, and nothing stays locked."""
    master = ReleaseStage(case)
    for to, turn in kills:
        master.release(f"{to}", dies_at=turn, lands=turn % 3)
    run = master.release("last").run

    assert run.result == "passed"
    revision_statuses = master.revision_statuses
    assert [number for number, _ in revision_statuses] == [*range(1, len(revision_statuses) + 1)]
    assert revision_statuses[-1][1] == "deployed"
    assert {status for _, status in revision_statuses[:-1]} <= {"superseded", "failed"}
