"""Durations that are learned from a dump of a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.errors import FileError, Location
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.simulation.learn_profile import learn_from_file

BOUND, BEGAN, READY, ENDED = (f"2026-11-16T08:00:{second:02}Z" for second in (0, 6, 15, 48))
PROBE: Json = {"tcpSocket": {"port": 80}}


def a_pod(
    name: str = "web", *, task: bool = False, restarts: int = 0, **container: Json
) -> JsonObject:
    """Begins six seconds after it was bound; is ready nine later, or ends after 42."""
    state: JsonObject = {"running": {"startedAt": BEGAN}}
    if task:
        state = {"terminated": {"exitCode": 0, "startedAt": BEGAN, "finishedAt": ENDED}}
    status: JsonObject = {"name": "main", "restartCount": restarts, "state": state}
    ready = "False" if task else "True"
    conditions: list[Json] = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": BOUND},
        {"type": "ContainersReady", "status": ready, "lastTransitionTime": READY},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": {
            "restartPolicy": "Never" if task else "Always",
            "containers": [{"name": "main", "image": "r:5000/web:1", **container}],
        },
        "status": {"conditions": conditions, "containerStatuses": [status]},
    }


def an_event(reason: str, message: str, pod: str = "web") -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{pod}.{reason}", "namespace": "shop"},
        "involvedObject": {"uid": pod, "fieldPath": "spec.containers{main}"},
        "reason": reason,
        "message": message,
    }


def a_certificate(ready: str, **metadata: Json) -> JsonObject:
    condition: JsonObject = {"type": "Ready", "status": "True", "lastTransitionTime": ready}
    return {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": "tls", "creationTimestamp": BOUND, **metadata},
        "spec": {"secretName": "tls", "issuerRef": {"name": "own"}},
        "status": {"conditions": [condition]},
    }


def learned(folder: Path, *bodies: JsonObject) -> tuple[dict[str, Json], tuple[str, ...]]:
    dump = folder / "dump.json"
    dump.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": bodies}))
    result = learn_from_file(dump)
    return result.document, result.notes


def likely(document: dict[str, Json], part: str) -> Json:
    durations = document.get("durations")
    result = durations.get(part) if isinstance(durations, dict) else None
    return result.get("likely") if isinstance(result, dict) else None


@pytest.mark.parametrize(
    ("message", "pull", "start"),
    [
        ('Successfully pulled image "web" in 4s (4s including waiting).', "4s", "2s"),
        ('Successfully pulled image "web" in 1.2s (4.913s including waiting).', "5s", "1s"),
        ('Successfully pulled image "web" in 3.351690873s', "3s", "3s"),
        ('Container image "web" already present on machine', "0s", "6s"),
        (
            'Container image "web" already present on machine and can be accessed by the pod',
            "0s",
            "6s",
        ),
    ],
)
def test_a_pull_takes_the_time_of_its_event_and_the_start_the_rest(
    message: str, pull: str, start: str, tmp_path: Path
) -> None:
    document, _ = learned(tmp_path, a_pod(), an_event("Pulled", message))

    assert (likely(document, "pull"), likely(document, "start")) == (pull, start)


def test_without_events_the_usual_start_is_subtracted(
    tmp_path: Path, wording: RecordedWording
) -> None:
    document, notes = learned(tmp_path, a_pod())

    assert (likely(document, "pull"), likely(document, "start")) == ("5s", None)
    wording(notes[-1])


def test_the_start_of_a_pod_that_was_delayed_is_not_used(tmp_path: Path) -> None:
    held = an_event("FailedMount", "no such secret")

    document, _ = learned(tmp_path, a_pod(), held)

    assert (likely(document, "pull"), likely(document, "start")) == (None, None)


def test_readiness_is_learned_from_containers_with_a_probe(tmp_path: Path) -> None:
    without, _ = learned(tmp_path, a_pod())
    probed, _ = learned(tmp_path, a_pod(readinessProbe=PROBE))
    restarted, _ = learned(tmp_path, a_pod(readinessProbe=PROBE, restarts=2))

    matches = [likely(item, "ready") for item in (without, probed, restarted)]
    assert matches == [None, "9s", None]


@pytest.mark.parametrize(
    "script",
    ["until nc -z db 5432; do sleep 1; done", "kubectl wait pod/db --for=condition=Ready"],
    ids=["service", "object"],
)
def test_the_duration_of_a_task_is_measured_unless_it_waits(
    tmp_path: Path, script: str, wording: RecordedWording
) -> None:
    waits = ["sh", "-c", script]

    plain, _ = learned(tmp_path, a_pod(task=True))
    waiting, notes = learned(tmp_path, a_pod(task=True, command=[*waits]))

    assert likely(plain, "run") == "42s"
    assert likely(waiting, "run") is None
    wording(notes[-1])


def test_a_range_needs_three_measurements(tmp_path: Path) -> None:
    few, _ = learned(tmp_path, *(a_pod(f"web-{item}") for item in range(2)))
    many, _ = learned(tmp_path, *(a_pod(f"web-{item}") for item in range(3)))

    assert few["durations"] == {"pull": {"likely": "5s", "source": "2 pulls"}}
    spread = {"likely": "5s", "optimistic": "5s", "pessimistic": "5s", "source": "3 pulls"}
    assert many["durations"] == {"pull": spread}


def test_an_image_that_takes_longer_has_a_rule_without_its_tag(tmp_path: Path) -> None:
    slow = an_event("Pulled", 'Successfully pulled image "web" in 5s', pod="slow")
    quick = an_event("Pulled", "image already present on machine")
    other = a_pod(image="docker.io/other@sha256:12")

    document, _ = learned(tmp_path, a_pod("slow"), other, slow, quick)

    rules = document["rules"]
    assert isinstance(rules, list)
    assert {"image": "r:5000/web:*"} in [rule["when"] for rule in rules if isinstance(rule, dict)]


def test_an_operator_takes_from_the_last_dependency_until_the_object_is_ready(
    tmp_path: Path,
) -> None:
    issuer = a_certificate(BEGAN, name="own") | {"kind": "Issuer"}

    alone, _ = learned(tmp_path, a_pod(), a_certificate(READY))
    with_issuer, _ = learned(tmp_path, a_pod(), a_certificate(READY), issuer)

    when: Json = {"kind": "Certificate", "group": "cert-manager.io", "stage": "issued"}
    spans = [
        stage["after"]
        for document in (alone, with_issuer)
        for stage in document["stages"]  # type: ignore[union-attr]
        if isinstance(stage, dict) and stage["when"] == when
    ]
    assert spans == [{"likely": name, "source": "1 object"} for name in ("15s", "9s")]


def test_an_object_that_became_ready_a_day_later_is_not_used(
    tmp_path: Path, wording: RecordedWording
) -> None:
    document, notes = learned(tmp_path, a_pod(), a_certificate("2026-11-17T08:00:00Z"))

    assert "stages" not in document
    wording(notes[-1])


def test_a_dump_without_pods_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(FileError) as refusal:
        learned(tmp_path, a_certificate(READY))

    assert refusal.value.code == "file.missing"
    assert refusal.value.location == Location(str(tmp_path / "dump.json"))


@pytest.mark.parametrize("odd", [{}, {"status": 3}, {"spec": {"containers": "x"}}, {"metadata": 1}])
def test_malformed_objects_of_a_dump_are_ignored(odd: JsonObject, tmp_path: Path) -> None:
    document, _ = learned(tmp_path, a_pod(), {**a_pod("odd"), **odd})

    assert likely(document, "pull") == "5s"
