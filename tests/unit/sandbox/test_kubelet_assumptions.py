"""Every assumption of the kubelet is recorded in an annotation of the pods that depend on it."""

from __future__ import annotations

import pytest

from tests.support.cluster_client import require_live
from tests.support.objects import a_service
from tests.support.recorded_wording import RecordedWording
from tests.support.stage import POD, SIMPLE, Stage, a_container, a_pod, a_probe, a_stage, at
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.selectors import ENDPOINTS
from tidegate.sandbox.node.kubelet import states
from tidegate.sandbox.node.kubelet.states import ASSUMED_ANNOTATION
from tidegate.sandbox.node.profile import ContainerRule, ContainerSelector
from tidegate.sandbox.node.profile_file import default_profile

DIALS: Json = [{"name": "DB_HOST", "value": "db"}]
DB = a_service("db", selector={"app": "db"})
ENDED = "ended-by-signal"


async def assumptions_of(stage: Stage, name: str = "web") -> list[str]:
    result = at(await stage.pod(name), "metadata", "annotations", ASSUMED_ANNOTATION)
    assert isinstance(result, str)
    return result.split(",")


def a_task(*command: str, **parts: Json) -> JsonObject:
    args: Json = [*command]
    return a_pod("web", a_container(command=args, **parts), restartPolicy="Never")


def test_the_assumptions_equal_those_of_the_default_profile() -> None:
    known = {
        states.DURATIONS,
        states.PROBES_FOLLOW,
        states.DIAL_FAILS,
        states.DIAL_POLLS,
        states.HOSTS,
        states.SERVERS_WAIT,
        states.KUBECTL,
        states.KILLED_BY_PROBE,
        states.ENDED_BY_SIGNAL,
    }

    # How far durations vary is about none of its pods.
    assert {*known, "spread"} == {assumption.name for assumption in default_profile().assumptions}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(a_pod(), ["durations"], id="runs"),
        pytest.param(
            a_pod("web", a_container(readinessProbe=a_probe())),
            ["durations", "probes-follow-ready"],
            id="is-probed",
        ),
        pytest.param(
            a_task("psql", env=DIALS), ["dial-fails", "durations", "hosts"], id="dials-and-ends"
        ),
        pytest.param(
            a_task("sh", "-c", "until nc -z db 5432; do sleep 1; done"),
            ["dial-polls", "durations", "hosts"],
            id="dials-and-waits",
        ),
        pytest.param(
            a_task("kubectl", "wait", "pod/other", "--for=create"),
            ["durations", "kubectl-waits"],
            id="waits-for-objects",
        ),
        pytest.param(
            a_pod("web", a_container(env=DIALS)),
            ["durations", "hosts", "servers-wait"],
            id="serves-and-goes-on",
        ),
        pytest.param(
            a_pod("web", a_container(), restartPolicy="Never", activeDeadlineSeconds=5),
            ["durations", ENDED],
            id="is-overdue",
        ),
    ],
)
async def test_a_pod_names_the_assumptions_that_it_depends_on(
    pod: JsonObject, expected: list[str]
) -> None:
    stage = await a_stage(ENDPOINTS)
    await stage.create(DB, pod)

    await stage.at(30)

    assert await assumptions_of(stage) == expected


async def test_a_container_that_a_probe_kills_has_a_message(wording: RecordedWording) -> None:
    slow = ContainerRule(ContainerSelector(name="web"), {"ready": Ms(600 * SECOND)})
    stage = await a_stage(profile=SIMPLE.with_rules([slow]))
    probe = a_probe(periodSeconds=5, failureThreshold=2)
    await stage.create(a_pod("web", a_container(livenessProbe=probe)))

    await stage.at(9)

    (message,) = await stage.events("Assumed")
    ended = at(await stage.container(), "lastState", "terminated", "message")
    now = at(await stage.container(), "state", "terminated", "message")
    assert message in (ended, now)
    wording(message)
    assert await assumptions_of(stage) == ["durations", "killed-by-probe", "probes-follow-ready"]


async def test_a_server_that_runs_without_a_service_has_one_event(
    wording: RecordedWording,
) -> None:
    stage = await a_stage(ENDPOINTS)
    await stage.create(DB, a_pod("web", a_container(env=DIALS)))

    await stage.at(60)

    (event,) = await stage.events("Assumed")
    assert "DB_HOST" in event
    assert "servers-wait" in event
    wording(event)


async def test_a_ready_service_causes_no_assumption() -> None:
    stage = await a_stage(ENDPOINTS)
    await stage.create(DB, a_pod("db"))
    await stage.at(10)

    await stage.create(a_pod("web", a_container(env=DIALS)))
    await stage.at(30)

    assert await stage.events("Assumed") == []
    assert await assumptions_of(stage) == ["durations"]


async def test_a_pod_that_has_not_started_has_no_assumptions() -> None:
    stage = await a_stage(behaviours="effect: unpullable")
    await stage.create(a_pod())

    await stage.at(60)

    assert at(await stage.pod(), "metadata", "annotations") is None


async def test_other_annotations_are_not_changed() -> None:
    stage = await a_stage()
    pod = a_pod()
    pod["metadata"] = {"name": "web", "annotations": {"team": "shop"}}

    await stage.create(pod)
    await stage.at(10)

    notes = at(await stage.pod(), "metadata", "annotations")
    assert notes == {"team": "shop", ASSUMED_ANNOTATION: "durations"}


async def test_a_deleted_pod_with_a_finalizer_names_the_assumption_about_its_end() -> None:
    stage = await a_stage()
    pod = a_pod()
    pod["metadata"] = {"name": "web", "finalizers": ["example.org/hold"]}
    await stage.create(pod)
    await stage.at(10)

    require_live(await stage.client.delete(Ref(POD, "shop", "web")))
    await stage.at(20)

    assert await assumptions_of(stage) == ["durations", ENDED]
