"""Waves: what is written before what, and what each of them waits for."""

from __future__ import annotations

from tests.conformance.argocd.objects import (
    a_balancer,
    a_hook,
    a_lease,
    a_pod,
    a_pod_template,
    a_server_pod,
    a_service,
    a_volume,
    failed,
    in_wave,
    running,
    succeeded,
)
from tests.conformance.argocd.stage import ArgoStage, case, failure, named, open_stage
from tests.support.builders import make_config_map, make_deployment, make_job, make_object
from tests.support.objects import a_definition
from tests.support.rollout_objects import a_gate
from tests.support.rollout_runs import Run
from tests.support.rollout_statuses import addressed, complete, ready, stuck
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import MINUTE, Ms
from tidegate.model.units.semantics import ARGOCD
from tidegate.sandbox.faults import CallFault, FaultSelector, StreamSilence
from tidegate.sandbox.world import Sandbox


@case(1)
async def test_a_service_is_written_before_a_pod_of_its_wave(stage: ArgoStage) -> None:
    run = await stage.sync(a_pod(), a_service())

    assert run.result == "passed"
    assert await stage.changes() == ["create services/web", "create pods/web"]


@case(2)
async def test_objects_are_ordered_by_phase_wave_kind_and_name(each_stage: ArgoStage) -> None:
    stage = each_stage
    volume = a_volume(stage.namespace)
    before, after = a_hook("PreSync", a_pod("before")), a_hook("PostSync", a_pod("after"))
    rescue = a_hook("SyncFail", a_pod("rescue"))
    web = a_server_pod("web")
    early, later = in_wave(-1, make_config_map("early")), in_wave(1, make_config_map("late"))
    unranked = (a_lease("b"), a_pod_template("a"))

    syncing = await stage.begin_sync(
        rescue, after, later, *unranked, web, a_service(), volume, make_config_map(), early, before
    )
    await stage.becomes(before, succeeded())
    await stage.becomes(web, running())
    await stage.becomes(after, failed())
    await stage.becomes(rescue, succeeded())

    assert (await syncing.ends()).result == "failed"
    assert await stage.changes("create") == [
        "create pods/before",
        "create configmaps/early",
        "create configmaps/settings",
        f"create persistentvolumes/{stage.namespace}",
        "create services/web",
        "create pods/web",
        "create podtemplates/a",
        "create leases/b",
        "create configmaps/late",
        "create pods/after",
        "create pods/rescue",
    ]


@case(3)
async def test_a_namespace_is_written_before_kinds_without_a_rank(stage: ArgoStage) -> None:
    place = make_object("v1 Namespace", "zoo", namespace="")

    run = await stage.sync(a_lease("a"), place)

    assert run.result == "passed"
    assert await stage.changes() == ["create namespaces/zoo", "create leases/a"]


@case(4)
async def test_namespaces_move_before_the_hooks_that_need_them(stage: ArgoStage) -> None:
    places = [
        in_wave(at, make_object("v1 Namespace", f"place-{at}", namespace="")) for at in (1, 2)
    ]
    hooks = [
        a_hook(
            "PreSync", {**make_job(), "metadata": {"name": f"job-{at}", "namespace": f"place-{at}"}}
        )
        for at in (1, 2)
    ]

    syncing = await stage.begin_sync(*places, *hooks)
    for hook in hooks:
        await stage.becomes(hook, complete())

    run = await syncing.ends()
    assert run.result == "passed"
    assert list(run.states) == [f"{stage.namespace}/presync/0"]
    assert await stage.changes("create") == [
        "create namespaces/place-1",
        "create jobs/job-1",
        "create namespaces/place-2",
        "create jobs/job-2",
    ]


@case(5)
async def test_a_crd_moves_before_the_hook_of_its_kind(each_stage: ArgoStage) -> None:
    stage = each_stage
    group = f"{stage.namespace}.example.org"
    hook = a_hook("PreSync", a_gate(group))

    run = await stage.sync(a_definition(group), hook, make_config_map())

    assert run.result == "passed"
    assert list(run.states) == [f"{stage.namespace}/presync/0", f"{stage.namespace}/sync/0"]
    assert await stage.changes("create") == [
        f"create customresourcedefinitions/gates.{group}",
        "create gates/north",
        "create configmaps/settings",
    ]


@case(6)
async def test_a_wave_waits_for_the_previous_one_and_the_last_wave_is_not_awaited(
    each_stage: ArgoStage,
) -> None:
    stage = each_stage
    first, last = a_balancer("first"), in_wave(5, a_balancer("last"))

    syncing = await stage.begin_sync(first, last)
    waiting = await syncing.waits_for("first")
    before = await stage.changes()
    await stage.says(first, addressed())
    run = await syncing.ends()

    assert waiting.step == f"{stage.namespace}/sync/0"
    assert before == ["create services/first"]
    assert run.result == "passed"
    assert named(run, EventType.GATE_WAITING) == ["first"]
    assert await stage.changes("create") == ["create services/first", "create services/last"]


@case(7)
async def test_there_is_a_delay_between_waves_and_none_after_the_last(stage: ArgoStage) -> None:
    early, main = in_wave(-1, make_config_map("early")), make_config_map("main")
    hook = a_hook("PostSync", make_config_map("hook"))

    run = await stage.sync(early, main, hook)

    wrote = {
        event.ref.name: event.at for event in run.events_of(EventType.OBJECT_WRITTEN) if event.ref
    }
    assert wrote["main"] >= wrote["early"] + ARGOCD.pause
    assert wrote["hook"] >= wrote["main"] + ARGOCD.pause
    assert run.events[-1].at < wrote["hook"] + ARGOCD.pause


@case(9)
async def test_a_degraded_wave_prevents_the_next_one(stage: ArgoStage) -> None:
    first, second = in_wave(1, make_deployment("first")), in_wave(2, make_deployment("second"))
    syncing = await stage.begin_sync(first, second)
    await stage.becomes(first, stuck(1))

    run = await syncing.ends()

    assert run.result == "failed"
    assert "Deployment" in failure(run)
    assert await stage.changes("create") == ["create deployments/first"]


@case(9)
async def test_a_fixed_wave_is_synced_after_a_failure(stage: ArgoStage) -> None:
    first, second = in_wave(1, make_deployment("first")), in_wave(2, make_deployment("second"))
    failing = await stage.begin_sync(first, second)
    await stage.becomes(first, stuck(1))
    await failing.ends()

    fixed = in_wave(1, make_deployment("first", image="app:2"))
    syncing = await stage.begin_sync(fixed, second)
    await syncing.waits_for("first")
    await stage.says(first, ready(2))

    assert (await syncing.ends()).result == "passed"
    assert await stage.exists(second)


@case(10)
async def test_a_single_wave_is_not_awaited(stage: ArgoStage) -> None:
    web = make_deployment()

    first = await stage.sync(web)
    await stage.says(web, stuck(1))
    second = await stage.sync(web)

    assert (first.result, second.result) == ("passed", "passed")
    assert _waited(first, second) == []
    assert await stage.changes("create", "change") == ["create deployments/web"]


@case(11)
async def test_an_object_that_disappears_while_awaited_fails_the_sync(stage: ArgoStage) -> None:
    web, following = in_wave(1, a_server_pod()), in_wave(2, make_config_map("following"))
    syncing = await stage.begin_sync(web, following)
    await syncing.waits_for("web")

    await stage.client.delete(await stage.ref(web))
    run = await syncing.ends()

    assert run.result == "failed"
    assert [event.reason for event in run.events_of(EventType.STEP_FAILED)] == ["Missing"]
    assert not await stage.exists(following)


@case(12)
async def test_an_object_that_no_watch_has_reported_is_awaited_and_not_missing() -> None:
    silent = CallFault(StreamSilence(MINUTE), FaultSelector(verbs=("watch",), kind="Pod"))
    stage = await open_stage(Sandbox(faults=(silent,)))
    web, following = in_wave(1, a_server_pod()), in_wave(2, make_config_map("following"))

    syncing = await stage.begin_sync(web, following)
    await stage.passes(Ms(MINUTE // 2))
    before = list(syncing.run.events)
    await stage.becomes(web, running())
    run = await syncing.ends()

    assert not any(event.type is EventType.STEP_FAILED for event in before)
    assert run.result == "passed"
    assert await stage.changes("create") == ["create pods/web", "create configmaps/following"]


def _waited(*runs: Run) -> list[str]:
    return [name for run in runs for name in named(run, EventType.GATE_WAITING)]
