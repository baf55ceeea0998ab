"""The runs of a container: their logs, and a change of the image during a run."""

from __future__ import annotations

import pytest

from tests.support.cluster_client import require_live
from tests.support.stage import POD, SIMPLE, Stage, a_container, a_pod, a_stage, at
from tidegate.model.k8s.objects import Ref
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.node.profile import ContainerFailure, ContainerRule, ContainerSelector
from tidegate.world.messages import Invalid, Outcome, RawResponse
from tidegate.world.requests import Logs, PatchType

WEB = Ref(POD, "shop", "web")


async def logs(stage: Stage, *, previous: bool = False) -> Outcome:
    return (await stage.client.ask(Logs(ref=WEB, previous=previous)))[0]


async def a_stage_with_logs(times: int | None = None) -> Stage:
    """Pods print `hello` when they begin, and crash after five seconds."""
    prints = ContainerRule(ContainerSelector(), {"lines": ("hello",)})
    crashes = ContainerRule(
        ContainerSelector(), {"failure": ContainerFailure(after=Ms(5 * SECOND), times=times)}
    )
    stage = await a_stage(profile=SIMPLE.with_rules([prints, crashes]))
    await stage.create(a_pod())
    return stage


async def change_image(stage: Stage, image: str = "registry.example/app:2") -> None:
    path = "/spec/containers/0/image"
    require_live(
        await stage.client.patch(
            WEB, [{"op": "replace", "path": path, "value": image}], patch_type=PatchType.JSON
        )
    )


async def test_each_run_has_a_log_of_its_own() -> None:
    stage = await a_stage_with_logs(times=1)

    first = await logs(await stage.at(4))
    second = await logs(await stage.at(20))
    before = await logs(stage, previous=True)

    assert (first, second, before) == (RawResponse(b"hello\n"),) * 3


async def test_there_is_no_log_before_the_first_run() -> None:
    stage = await a_stage_with_logs()

    await stage.at(4)

    message = 'previous terminated container "app" in pod "web" not found'
    assert await logs(stage, previous=True) == Invalid(message)


async def test_a_container_that_waits_to_be_started_again_shows_its_last_run() -> None:
    stage = await a_stage_with_logs()

    await stage.at(16)

    assert await stage.state() == "CrashLoopBackOff"
    assert await logs(stage) == await logs(stage, previous=True) == RawResponse(b"hello\n")


async def test_a_container_that_has_not_started_has_no_log() -> None:
    stage = await a_stage(behaviours="effect: unpullable")
    await stage.create(a_pod())

    await stage.at(60)

    message = 'container "app" in pod "web" is waiting to start: trying and failing to pull image'
    assert await logs(stage) == Invalid(message)


async def test_a_pod_of_the_same_name_has_a_new_log() -> None:
    stage = await a_stage_with_logs()
    await stage.at(4)
    await stage.client.delete(WEB)
    await stage.at(40)

    await stage.create(a_pod())
    await stage.at(44)

    assert await logs(stage) == RawResponse(b"hello\n")


async def test_a_changed_image_restarts_the_container() -> None:
    stage = await a_stage()
    await stage.create(a_pod())
    await stage.at(10)

    await change_image(stage)
    between = await (await stage.at(11)).container()
    after = await (await stage.at(20)).container()

    assert at(between, "state", "waiting", "reason") == "ContainerCreating"
    assert (at(between, "ready"), at(between, "restartCount")) == (False, 0)
    assert at(after, "image") == "registry.example/app:2"
    assert (at(after, "ready"), at(after, "restartCount")) == (True, 1)
    assert at(after, "lastState", "terminated", "exitCode") == 143
    events = ["Container app definition changed, will be restarted"]
    assert await stage.events("Killing") == events


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
async def test_a_changed_image_restarts_the_container_for_any_restart_policy(
    policy: str,
) -> None:
    stage = await a_stage(
        profile=SIMPLE.with_rules([ContainerRule(ContainerSelector(), {"run": Ms(600 * SECOND)})])
    )
    await stage.create(a_pod(restartPolicy=policy))
    await stage.at(10)

    await change_image(stage)
    phases = {await (await stage.at(moment)).phase() for moment in (11, 12, 13, 20)}

    assert phases == {"Running"}
    assert at(await stage.container(), "restartCount") == 1


async def test_another_image_ends_the_backoff_between_crashes() -> None:
    bad = ContainerRule(
        ContainerSelector(image="*:1"), {"failure": ContainerFailure(after=Ms(SECOND))}
    )
    stage = await a_stage(profile=SIMPLE.with_rules([bad]))
    await stage.create(a_pod())
    waiting = await (await stage.at(200)).state()

    await change_image(stage)
    await stage.at(205)

    assert waiting == "CrashLoopBackOff"
    assert await stage.state() == "running"


async def test_a_changed_image_replaces_one_that_cannot_be_pulled() -> None:
    bad = ContainerRule(ContainerSelector(image="*:1"), {"unpullable": True})
    stage = await a_stage(profile=SIMPLE.with_rules([bad]))
    await stage.create(a_pod())
    waiting = await (await stage.at(60)).state()

    await change_image(stage)
    await stage.at(65)

    assert waiting == "ImagePullBackOff"
    assert await stage.state() == "running"
    assert at(await stage.container(), "restartCount") == 0


async def test_another_image_that_cannot_be_pulled_stops_a_container_that_ran() -> None:
    bad = ContainerRule(ContainerSelector(image="*:2"), {"unpullable": True})
    stage = await a_stage(profile=SIMPLE.with_rules([bad]))
    await stage.create(a_pod())
    await stage.at(10)

    await change_image(stage)
    await stage.at(60)

    assert await stage.state() == "ImagePullBackOff"
    assert await stage.condition("Ready") == "False"
    assert await stage.phase() == "Running"


async def test_other_containers_of_the_pod_continue() -> None:
    stage = await a_stage()
    await stage.create(a_pod("web", a_container(), a_container("proxy", "registry.example/p:1")))
    await stage.at(10)

    await change_image(stage)
    await stage.at(20)

    assert at(await stage.container("web", "proxy"), "restartCount") == 0
    assert at(await stage.container("web", "app"), "restartCount") == 1
