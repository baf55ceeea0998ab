"""The behaviours of containers in a scenario."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.support.stage import a_container, a_pod, a_probe, a_stage, at
from tidegate.errors import TidegateError
from tidegate.model.times import Ms
from tidegate.sandbox.node.profile import (
    ContainerFailure,
    ContainerIdentity,
    ContainerRule,
    ContainerSelector,
    OwnerName,
    Profile,
)
from tidegate.sandbox.scenario import read_scenario
from tidegate.sandbox.scenario_faults import BehaviourSpec


def rule_of(text: str) -> ContainerRule:
    (rule,) = read_scenario(f"behaviours:\n- {{{text}}}\n".encode(), "s.yaml").behaviours
    return rule


async def test_a_container_fails_as_often_as_configured() -> None:
    stage = await a_stage(behaviours="effect: fails, times: 2, after: 1s")
    await stage.create(a_pod(restartPolicy="OnFailure"))

    await stage.at(60)

    assert await stage.phase() == "Succeeded"
    assert at(await stage.container(), "restartCount") == 2


async def test_a_container_that_is_never_ready_still_runs() -> None:
    stage = await a_stage(behaviours="effect: never-ready")
    await stage.create(a_pod("web", a_container(livenessProbe=a_probe())))

    await stage.at(600)

    assert await stage.state() == "running"
    assert await stage.condition("Ready") == "False"
    assert at(await stage.container(), "restartCount") == 0


async def test_a_container_that_flaps_is_ready_by_turns() -> None:
    stage = await a_stage(behaviours="effect: flaps, every: 10s")
    await stage.create(a_pod())

    ready = [await (await stage.at(moment)).condition("Ready") for moment in (3, 13, 23, 33)]

    assert ready == ["True", "False", "True", "False"]


async def test_a_slow_container_is_ready_later() -> None:
    stage = await a_stage(behaviours="effect: slow, by: 1m")
    await stage.create(a_pod("web", a_container(readinessProbe=a_probe(periodSeconds=1))))

    before = await (await stage.at(63)).condition("Ready")
    after = await (await stage.at(64)).condition("Ready")

    assert (before, after) == ("False", "True")


async def test_an_image_that_cannot_be_pulled_is_backed_off_from() -> None:
    stage = await a_stage(behaviours="effect: unpullable")
    await stage.create(a_pod())

    first = await (await stage.at(2)).state()
    later = await (await stage.at(600)).state()

    assert (first, later) == ("ErrImagePull", "ImagePullBackOff")
    assert await stage.phase() == "Pending"


async def test_an_image_that_is_pushed_later_is_pulled_at_the_next_attempt() -> None:
    stage = await a_stage(behaviours="effect: unpullable, for: 20s")
    await stage.create(a_pod())

    before = await (await stage.at(32)).state()
    after = await (await stage.at(33)).state()

    assert (before, after) == ("ImagePullBackOff", "running")


async def test_an_unschedulable_pod_is_pending() -> None:
    stage = await a_stage(behaviours="effect: unschedulable, message: 1 Insufficient cpu")
    await stage.create(a_pod())

    await stage.at(60)

    assert await stage.condition("PodScheduled") == "False"
    message = "0/1 nodes are available: 1 Insufficient cpu."
    assert await stage.events("FailedScheduling") == [message]


async def test_a_container_prints_the_configured_lines_each_time_it_starts() -> None:
    stage = await a_stage(behaviours="effect: prints, lines: [hello, world]")
    await stage.create(a_pod())

    await stage.at(3)

    assert await stage.printed() == "hello\nworld\n"


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (ContainerSelector(), True),
        (ContainerSelector(kind="Deployment", name="web"), True),
        (ContainerSelector(kind="Pod", name="web-1-*"), True),
        (ContainerSelector(kind="Deployment", name="web-1"), False),
        (ContainerSelector(image="*/app:*"), True),
        (ContainerSelector(image="*postgres*"), False),
        (ContainerSelector(namespace="shop", container="app"), True),
        (ContainerSelector(container="proxy"), False),
    ],
)
def test_a_behaviour_is_for_containers_that_its_selector_matches(
    selector: ContainerSelector, *, matches: bool
) -> None:
    owners = (
        OwnerName("Pod", "web-1-x"),
        OwnerName("ReplicaSet", "web-1"),
        OwnerName("Deployment", "web"),
    )

    identity = ContainerIdentity(owners, "shop", "app", "registry.example/app:1")
    assert selector.matches(identity) is matches


def test_the_last_rule_with_a_key_decides_it() -> None:
    rules = (
        ContainerRule(ContainerSelector(), {"run": Ms(1_000), "ready": Ms(2_000)}),
        ContainerRule(ContainerSelector(), {"run": Ms(3_000)}),
    )

    profile = Profile(rules=rules).container_profile(
        ContainerIdentity((OwnerName("Pod", "a"),), "", "", "")
    )

    assert (profile.run, profile.ready) == (3_000, 2_000)


def test_a_scenario_has_behaviours_in_order() -> None:
    rule = rule_of("effect: crashes, after: 2m, times: 1, exit: 3, when: {kind: Job, name: a*}")

    failure = ContainerFailure(after=Ms(120_000), times=1, code=3)
    assert rule == ContainerRule(ContainerSelector(kind="Job", name="a*"), {"failure": failure})


@pytest.mark.parametrize(
    ("text", "code", "name"),
    [
        ("times: 1", "file.missing", "effect"),
        ("effect: fail", "file.value", "fail"),
        ("effect: fails, every: 2", "file.key", "every"),
        ("effect: fails, exit: 256", "file.value", "255"),
        ("effect: fails, after: 1500ms", "file.value", "after"),
        ("effect: crashes", "file.missing", "after"),
        ("effect: flaps", "file.missing", "every"),
        ("effect: slow", "file.missing", "by"),
        ("effect: prints", "file.missing", "lines"),
        ("effect: fails, when: {verb: get}", "file.key", "verb"),
    ],
)
def test_a_mistake_in_a_behaviour_is_reported_with_its_line(
    text: str, code: str, name: str
) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        rule_of(text)

    (error,) = caught.value.exceptions
    assert isinstance(error, TidegateError)
    assert error.code == code
    assert name in error.problem
    assert error.location is not None
    assert error.location.line == 2
    assert error.hint


def test_every_effect_can_be_read() -> None:
    needed = {"crashes": "after: 1s", "flaps": "every: 1s", "slow": "by: 1s", "prints": "lines: a"}

    names = [arg.__struct_config__.tag for arg in get_args(BehaviourSpec)]
    rules = [rule_of(f"effect: {name}, {needed.get(name, '')}") for name in names]

    assert all(rule.changes for rule in rules)
