"""Since when an object is healthy, by the times recorded in it."""

from __future__ import annotations

import pytest

from tidegate.health.recorded_time import find_creator, find_last_write, find_ready_time
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import parse_timestamp

EARLY, LATE = "2026-11-17T10:00:00Z", "2026-11-17T10:00:07Z"


def condition(name: str, at: str = EARLY, *, status: str = "True", **more: str) -> Json:
    return {"type": name, "status": status, "lastTransitionTime": at, **more}


def body(*conditions: Json, managed: tuple[Json, ...] = (), **status: Json) -> JsonObject:
    metadata: Json = {"creationTimestamp": EARLY, "managedFields": [*managed]}
    return {"metadata": metadata, "status": {"conditions": [*conditions], **status}}


def entry(manager: str, at: str, subresource: str = "") -> Json:
    return {"manager": manager, "time": at, "subresource": subresource}


PROGRESSING = condition("Progressing", lastUpdateTime=LATE, reason="NewReplicaSetAvailable")


@pytest.mark.parametrize(
    ("live", "at", "is_final"),
    [
        (body(condition("Complete", LATE), completionTime=EARLY), EARLY, True),
        (body(condition("Ready", LATE), condition("Stalled", EARLY)), LATE, False),
        (body(condition("Available"), PROGRESSING), LATE, False),
        (body(condition("Established", LATE), condition("NamesAccepted")), LATE, True),
        (
            body(managed=(entry("kube", LATE, "status"), entry("us", EARLY)), replicas=1),
            LATE,
            False,
        ),
    ],
    ids=["job", "ready", "deployment", "definition", "no conditions"],
)
def test_the_recorded_time_that_decides(live: JsonObject, at: str, is_final: bool) -> None:  # noqa: FBT001
    since = find_ready_time(live)

    assert since is not None
    assert (since.at, since.is_final) == (parse_timestamp(at), is_final)


def test_an_unhealthy_object_and_one_without_a_status_have_no_ready_time() -> None:
    assert find_ready_time(body(condition("Ready", status="False"))) is None
    assert find_ready_time({"metadata": {"creationTimestamp": EARLY}}) is None
    assert find_ready_time(body(condition("Ready", "yesterday"))) is None


def test_the_last_writer_and_the_creator_are_found() -> None:
    managed = (entry("kubectl", EARLY), entry("tidegate", LATE), entry("tidegate", LATE, "status"))

    assert find_last_write(body(managed=managed), "kubectl") == parse_timestamp(EARLY)
    assert find_last_write(body(managed=managed)) == parse_timestamp(LATE)
    assert find_last_write(body(), "kubectl") is None
    assert find_creator(body(managed=managed)) == "kubectl"
    assert find_creator(body(managed=(entry("a", EARLY), entry("b", EARLY)))) == ""
