"""Health: what is waited for, how long, and what ends a wait early."""

from __future__ import annotations

from tests.conformance.argocd.stage import named
from tests.conformance.flux.stage import FluxStage, case
from tests.conformance.flux.test_apply import setting
from tests.support.builders import make_deployment, make_job
from tests.support.rollout_statuses import AT
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.rollouts.event import EventType
from tidegate.model.times import SECOND, Ms


def check(stage: FluxStage, kind: str, name: str, api: str = "v1") -> dict[str, Json]:
    return {"apiVersion": api, "kind": kind, "name": name, "namespace": stage.namespace}


def seconds(begun: Ms, ended: Ms) -> int:
    """Whole ones: a request takes milliseconds in a sandbox, too."""
    return (ended - begun) // SECOND


def stuck() -> JsonObject:
    """A Deployment that has given up."""
    overdue: Json = {
        "type": "Progressing",
        "status": "False",
        "reason": "ProgressDeadlineExceeded",
        "lastTransitionTime": AT,
    }
    return {"observedGeneration": 1, "replicas": 1, "conditions": [overdue]}


@case(50)
async def test_a_missing_object_of_a_health_check_is_awaited_until_the_timeout_and_again(
    flux: FluxStage,
) -> None:
    begun = flux.world.now()
    rolling = await flux.begin_reconcile(
        setting("one"), healthChecks=[check(flux, "ConfigMap", "late")], timeout="45s"
    )
    waits = await rolling.waits_for("late")
    again = await rolling.emits(EventType.RETRY_SCHEDULED)
    await flux.client.apply(flux.here(setting("late")))
    run = await rolling.ends()

    assert (waits.reason, again.reason) == ("Missing", "Deadline")
    assert "late" in again.message
    assert seconds(begun, again.at) == 45
    assert seconds(again.at, again.until) == 60, "its `retryInterval`"
    assert run.result == "passed"


@case(49)
async def test_the_timeout_is_at_least_thirty_seconds(flux: FluxStage) -> None:
    begun = flux.world.now()
    rolling = await flux.begin_reconcile(
        healthChecks=[check(flux, "ConfigMap", "nowhere")], timeout="1s"
    )
    again = await rolling.emits(EventType.RETRY_SCHEDULED)
    await rolling.stops()

    assert seconds(begun, again.at) == 30


@case(51)
async def test_a_failed_object_ends_the_wait_at_once(flux: FluxStage) -> None:
    web = make_deployment("web")
    rolling = await flux.begin_reconcile(web, wait=True, timeout="20m")
    begun = flux.world.now()
    await flux.becomes(web, stuck())
    again = await rolling.emits(EventType.RETRY_SCHEDULED)
    await rolling.stops()

    assert "Progress deadline exceeded" in again.message
    assert seconds(begun, again.at) == 5, "one look later"


@case(52)
async def test_a_completed_job_is_healthy_and_a_failed_one_ends_the_wait(
    flux: FluxStage,
) -> None:
    good, bad = make_job("good"), make_job("bad")
    rolling = await flux.begin_reconcile(good, wait=True)
    await flux.becomes(good, {"startTime": AT, "active": 1})
    await rolling.waits_for("good")
    assert not rolling.is_open
    await flux.becomes(good, ended("Complete"))
    assert (await rolling.ends()).result == "passed"

    rolling = await flux.begin_reconcile(good, bad, wait=True)
    await flux.becomes(bad, ended("Failed"))
    again = await rolling.emits(EventType.RETRY_SCHEDULED)
    await rolling.stops()
    assert "bad" in again.message


@case(52)
async def test_a_job_deleted_by_its_ttl_counts_as_complete(flux: FluxStage) -> None:
    job = make_job("once")
    spec: JsonObject = {**get_mapping(job, "spec"), "ttlSecondsAfterFinished": 0}
    job = {**job, "spec": spec}
    rolling = await flux.begin_reconcile(job, wait=True)
    await flux.becomes(job, ended("Complete"))
    await rolling.ends()
    await flux.client.delete(await flux.ref(job))

    run = await flux.reconcile(job, wait=True)

    assert run.result == "passed"


@case(55)
async def test_a_unit_does_not_await_itself(flux: FluxStage) -> None:
    unit_resource: Json = {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "name": flux.namespace,
        "namespace": flux.namespace,
    }

    run = await flux.reconcile(setting("one"), healthChecks=[unit_resource])

    assert run.result == "passed"


async def test_without_wait_and_health_checks_nothing_is_awaited(flux: FluxStage) -> None:
    run = await flux.reconcile(make_deployment("web"))

    assert run.result == "passed"


async def test_only_objects_of_health_checks_are_awaited(flux: FluxStage) -> None:
    web, other = make_deployment("web"), make_deployment("other")
    checks: Json = [check(flux, "Deployment", "other", "apps/v1")]
    rolling = await flux.begin_reconcile(web, other, healthChecks=checks)
    await rolling.waits_for("other")
    await flux.becomes(other, well())
    run = await rolling.ends()

    assert run.result == "passed"
    assert named(run, EventType.GATE_WAITING) == ["other"]


@case(36)
async def test_crds_and_classes_have_one_minute_whatever_the_timeout_is(
    flux: FluxStage,
) -> None:
    """A custom class that is not ready blocks the objects after it."""
    group = flux.group
    definition = a_class_definition(group)
    item: JsonObject = {
        "apiVersion": f"{group}/v1",
        "kind": "DatabaseClass",
        "metadata": {"name": f"one-{flux.namespace}"},
    }
    await flux.reconcile(definition)
    await flux.client.create(item)
    unready: Json = [{"type": "Ready", "status": "False", "lastTransitionTime": AT}]
    await flux.says(item, {"conditions": unready})
    begun = flux.world.now()

    rolling = await flux.begin_reconcile(definition, item, setting("rest"), timeout="20m")
    again = await rolling.emits(EventType.RETRY_SCHEDULED)
    await rolling.stops()

    assert seconds(begun, again.at) == 60
    assert not await flux.exists(setting("rest"))


def a_class_definition(group: str) -> JsonObject:
    schema: Json = {
        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    }
    names: Json = {
        "kind": "DatabaseClass",
        "plural": "databaseclasses",
        "singular": "databaseclass",
    }
    spec: Json = {
        "group": group,
        "scope": "Cluster",
        "names": names,
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": schema,
                "subresources": {"status": {}},
            }
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"databaseclasses.{group}"},
        "spec": spec,
    }


def ended(how: str) -> JsonObject:
    condition: Json = {"type": how, "status": "True", "lastTransitionTime": AT}
    return {"startTime": AT, "conditions": [condition]}


def well() -> JsonObject:
    available: Json = {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": AT,
        "reason": "MinimumReplicasAvailable",
    }
    progressing: Json = {
        "type": "Progressing",
        "status": "True",
        "lastTransitionTime": AT,
        "reason": "NewReplicaSetAvailable",
    }
    counts: dict[str, Json] = dict.fromkeys(
        ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1
    )
    return {"observedGeneration": 1, **counts, "conditions": [available, progressing]}


@case(11, 12)
async def test_a_dependency_is_ready_only_at_the_new_revision(flux: FluxStage) -> None:
    """Earlier health does not count: the second unit waits for the new revision of the first."""
    first, second = make_deployment("first"), setting("second", a="1")
    rolling = flux.start_plan(await flux.chain((first,), (second,)))
    await flux.becomes(first, well())
    assert (await rolling.ends()).result == "passed"

    rolling = flux.start_plan(
        await flux.chain((make_deployment("first", image="app:2"),), (setting("second", a="2"),))
    )
    await rolling.waits_for("first")
    before = get_mapping(await flux.body(second), "data")
    await flux.becomes(first, {**well(), "observedGeneration": 2})
    run = await rolling.ends()

    assert before == {"a": "1"}
    assert run.result == "passed"
    assert get_mapping(await flux.body(second), "data") == {"a": "2"}
