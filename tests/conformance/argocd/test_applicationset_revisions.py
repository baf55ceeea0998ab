"""ApplicationSets with steps, with commits after their rollout."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.conformance.argocd.stage import case
from tests.conformance.argocd.test_applicationsets import played
from tests.support.rolling_appset import Ladder
from tidegate.model.k8s.json_fields import get_int, get_list, get_mapping, get_text
from tidegate.model.k8s.objects import Json


def committed(ladder: Ladder, path: str, text: str) -> Json:
    """A scenario in which this comes into the repository five minutes after the start."""
    newer = ladder.folder.parent / f"{ladder.folder.name}-newer"
    file = newer / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return {"commits": [{"at": "5m", "files": newer.name}]}


def uptakes(events: list[dict[str, Json]]) -> dict[str, dict[str, Json]]:
    """By the names of Applications, what they did with what was committed."""
    matches = (get_mapping(uptake) for uptake in get_list(events[-1], "revisionSyncs"))
    return {get_text(item, "unit").rpartition("/")[2]: item for item in matches}


@case(70)
@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_later_step_that_refreshes_first_syncs_first(ladder: Ladder, seed: str) -> None:
    ladder.step(1, "a")
    ladder.step(2, "b", "c", most=1)
    ladder.step(3, "d")
    scenario: Json = None
    for name in "abcd":
        file = f"apps/{name}/web.yaml"
        newer = (ladder.folder / file).read_text().replace(":1", ":2")
        scenario = committed(ladder, file, newer)

    taken = uptakes(played(ladder, scenario, "--seed", seed))

    assert [*taken] == ["a", "b", "c", "d"]
    overtaken = 0
    for item, other in permutations(taken.values(), 2):
        earlier = get_int(item, "step") < get_int(other, "step")
        if earlier and get_int(item, "detectedAt") <= get_int(other, "startedAt"):
            assert get_int(item, "finishedAt") <= get_int(other, "startedAt"), "it is waited for"
        elif earlier:
            overtaken += 1
            assert get_text(item, "unit").rpartition("/")[2] in str(other["outdatedPredecessors"])
    assert overtaken, "each Application looks again in its own rhythm"


@case(70)
def test_a_change_of_the_set_reaches_all_steps_at_once_and_in_order(
    ladder: Ladder,
) -> None:
    ladder.step(1, "a")
    ladder.step(2, "b")
    text_of_set = (ladder.write() / "set.yaml").read_text()
    for name in "ab":
        old = (ladder.folder / "apps" / name / "web.yaml").read_text()
        committed(ladder, f"next/{name}/web.yaml", old.replace(":1", ":2"))
    scenario = committed(ladder, "set.yaml", text_of_set.replace("apps/{{name}}", "next/{{name}}"))

    taken = uptakes(played(ladder, scenario))

    assert taken["a"]["detectedAt"] == taken["b"]["detectedAt"]
    assert get_int(taken["b"], "startedAt") >= get_int(taken["a"], "finishedAt")
    assert "outdatedPredecessors" not in taken["b"]
