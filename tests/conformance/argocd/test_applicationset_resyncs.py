"""ApplicationSets with steps, whose Applications Argo CD syncs twice.

It notes in whole seconds when an Application had its turn, and when its sync began. One of the very
second of the turn is not after it: the Application stays Pending, and is synced again.
"""

from __future__ import annotations

import pytest

from tests.conformance.argocd.stage import case
from tests.conformance.argocd.test_applicationset_revisions import committed
from tests.conformance.argocd.test_applicationsets import played
from tests.support.rolling_appset import Ladder
from tidegate.model.k8s.json_fields import get_int, get_list, get_mapping, get_text
from tidegate.model.k8s.objects import Json

MIGRATION = """\
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {argocd.argoproj.io/hook: PreSync}}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example/m"}]}}
"""


def resyncs(events: list[dict[str, Json]]) -> dict[str, dict[str, Json]]:
    """By the names of Applications, what was synced again; each is named once."""
    matches = [get_mapping(resync) for resync in get_list(events[-1], "doubleSyncs")]
    by_name = {get_text(item, "unit").rpartition("/")[2]: item for item in matches}
    assert len(by_name) == len(matches)
    return by_name


def with_migration(ladder: Ladder, name: str) -> None:
    (ladder.folder / "apps" / name / "migrate.yaml").write_text(MIGRATION)


def began(events: list[dict[str, Json]], name: str) -> int:
    """When the sync of an Application began, from the start."""
    times = (
        get_int(event, "at")
        for event in events
        if event.get("event") == "step.applying"
        and get_text(event, "unit").rpartition("/")[2] == name
    )
    return min(times) - get_int(events[0], "at")


@case(70)
def test_a_sync_started_in_the_second_of_its_trigger_is_repeated_with_its_hooks(
    ladder: Ladder,
) -> None:
    ladder.step(1, "a")
    ladder.step(2, "b")
    with_migration(ladder, "a")

    events = played(ladder)

    again = resyncs(events)
    assert [get_text(hook, "name") for hook in get_list(again["a"], "hooks")] == ["migrate"]
    assert get_int(again["a"], "at") <= began(events, "b") < get_int(again["a"], "finishedAt")
    assert "hooks" not in again["b"], "what has no hooks is as wanted already"


@case(70)
def test_a_sync_started_in_a_later_second_is_not_repeated(ladder: Ladder) -> None:
    ladder.step(1, "a")
    ladder.step(2, "b")
    with_migration(ladder, "b")
    slow: Json = {"effect": "slow", "by": "1s", "when": {"kind": "Secret", "verb": ["replace"]}}

    assert {*resyncs(played(ladder))} == {"a", "b"}
    assert "b" not in resyncs(played(ladder, {"faults": [slow]}))


@case(70)
@pytest.mark.parametrize(
    ("most", "words"), [(None, ("--engine", "tidegate")), (0, ("--approve", "a"))]
)
def test_only_applications_of_a_rolling_sync_with_argo_cd_semantics_are_synced_twice(
    ladder: Ladder, most: int | None, words: tuple[str, ...]
) -> None:
    ladder.step(1, "a", most=most)
    with_migration(ladder, "a")

    events = played(ladder, None, *words)

    assert events[-1]["outcome"] == "passed"
    assert not resyncs(events)


@case(70)
def test_a_new_commit_is_synced_twice(ladder: Ladder) -> None:
    ladder.step(1, "a")
    with_migration(ladder, "a")
    file = "apps/a/web.yaml"
    newer = (ladder.folder / file).read_text().replace(":1", ":2")

    events = played(ladder, committed(ladder, file, newer))

    matches = [get_mapping(resync) for resync in get_list(events[-1], "doubleSyncs")]
    taken = get_mapping(get_list(events[-1], "revisionSyncs")[0])
    assert [get_int(item, "stepAt") > 5 * 60_000 for item in matches] == [False, True]
    assert matches[1]["at"] == taken["finishedAt"]
