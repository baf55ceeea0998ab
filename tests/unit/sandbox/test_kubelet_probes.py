"""Probes: their times, and what happens when they fail too often."""

from __future__ import annotations

import pytest

from tests.support.stage import a_container, a_pod, a_probe, a_stage, at
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.node.kubelet.container_context import ProbeTimes, predict_probes
from tidegate.sandbox.node.profile import ContainerProfile, Profile


def probe_seconds(
    container: JsonObject, up: int | None
) -> tuple[int | None, int | None, int | None]:
    """Started, ready and killed, in seconds after the beginning."""
    moment = None if up is None else Ms(1_000 * SECOND + up * SECOND)
    result: ProbeTimes = predict_probes(container, Ms(1_000 * SECOND), moment)
    moments = (result.started, result.ready, result.killed)
    started, ready, killed = (
        None if moment is None else moment // SECOND - 1_000 for moment in moments
    )
    return started, ready, killed


@pytest.mark.parametrize(
    ("container", "up", "expected"),
    [
        ({}, 7, (0, 0, None)),
        ({"readinessProbe": a_probe()}, 0, (0, 0, None)),
        ({"readinessProbe": a_probe(periodSeconds=10)}, 7, (0, 10, None)),
        ({"readinessProbe": a_probe(initialDelaySeconds=15)}, 7, (0, 15, None)),
        ({"readinessProbe": a_probe(initialDelaySeconds=3, periodSeconds=5)}, 7, (0, 8, None)),
        ({"readinessProbe": a_probe(periodSeconds=5, successThreshold=3)}, 5, (0, 15, None)),
        ({"readinessProbe": a_probe()}, None, (0, None, None)),
        ({"livenessProbe": a_probe()}, 20, (0, 0, None)),
        ({"livenessProbe": a_probe()}, 21, (0, 0, 20)),
        ({"livenessProbe": a_probe(initialDelaySeconds=30)}, 45, (0, 0, None)),
        ({"startupProbe": a_probe(periodSeconds=2, failureThreshold=30)}, 58, (58, 58, None)),
        ({"startupProbe": a_probe(periodSeconds=2, failureThreshold=30)}, 59, (None, None, 58)),
        (
            {
                "startupProbe": a_probe(periodSeconds=2, failureThreshold=30),
                "livenessProbe": a_probe(),
                "readinessProbe": a_probe(periodSeconds=10),
            },
            33,
            (34, 34, None),
        ),
    ],
)
def test_times_of_probes_are_calculated(
    container: JsonObject, up: int | None, expected: tuple[int | None, int | None, int | None]
) -> None:
    assert probe_seconds(container, up) == expected


async def test_a_container_is_not_ready_before_its_readiness_probe_succeeds() -> None:
    stage = await a_stage(profile=Profile(durations=ContainerProfile(ready=Ms(12 * SECOND))))
    await stage.create(a_pod("web", a_container(readinessProbe=a_probe(periodSeconds=5))))

    running = await (await stage.at(3)).condition("Ready")
    before = await (await stage.at(17)).condition("Ready")
    after = await (await stage.at(18)).condition("Ready")

    assert (running, before, after) == ("False", "False", "True")


@pytest.mark.parametrize("probe", ["livenessProbe", "startupProbe"])
async def test_a_container_whose_probe_fails_too_often_is_killed_and_restarted(probe: str) -> None:
    stage = await a_stage(profile=Profile(durations=ContainerProfile(ready=Ms(60 * SECOND))))
    numbers = a_probe(periodSeconds=5, failureThreshold=2)
    await stage.create(a_pod("web", a_container(**{probe: numbers})))

    alive = await (await stage.at(7)).state()
    killed = await (await stage.at(8)).state()
    again = await (await stage.at(9)).state()

    assert (alive, killed, again) == ("running", "Error", "running")
    assert at(await stage.container(), "lastState", "terminated", "exitCode") == 137
    kind = probe.removesuffix("Probe")
    events = [f"Container app failed {kind} probe, will be restarted"]
    assert await stage.events("Killing") == events


async def test_a_container_that_needs_longer_than_its_probe_allows_is_never_ready() -> None:
    stage = await a_stage(profile=Profile(durations=ContainerProfile(ready=Ms(60 * SECOND))))
    await stage.create(a_pod("web", a_container(livenessProbe=a_probe(periodSeconds=5))))

    await stage.at(900)

    restarts = at(await stage.container(), "restartCount")
    assert isinstance(restarts, int)
    assert restarts > 4
