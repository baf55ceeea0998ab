"""Statuses that are written after a delay: addresses, availability, scaling, budgets."""

from __future__ import annotations

from tests.support.small_cluster import SmallCluster, an_object
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.kinds import API_SERVICE, POD, SERVICE
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.external_status import (
    AUTOSCALER,
    EXTERNAL_STATUS_CONTROLLERS,
    INGRESS,
)
from tidegate.sandbox.controllers.selectors import DISRUPTION_BUDGET, DISRUPTION_BUDGETS, ENDPOINTS


async def a_cluster() -> SmallCluster:
    return await SmallCluster(ENDPOINTS, DISRUPTION_BUDGETS, *EXTERNAL_STATUS_CONTROLLERS).open()


def a_service(**spec: Json) -> JsonObject:
    ports: list[Json] = [{"port": 443}]
    return an_object(
        "v1", "Service", "web", spec={"ports": ports, "selector": {"app": "web"}, **spec}
    )


async def a_pod(cluster: SmallCluster, name: str, **metadata: Json) -> Ref:
    container: Json = {"name": "app", "image": "registry.example/app:1"}
    labels: Json = {"app": "web"}
    body = an_object("v1", "Pod", name, spec={"containers": [container]})
    return await cluster.create({**body, "metadata": {"name": name, "labels": labels, **metadata}})


def an_api_service(**spec: Json) -> JsonObject:
    expected: Json = {
        "group": "metrics.example.com",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        **spec,
    }
    return an_object(
        "apiregistration.k8s.io/v1", "APIService", "v1.metrics.example.com", spec=expected
    )


def conditions(status: JsonObject) -> list[str]:
    return [
        " ".join(get_text(condition, key) for key in ("type", "status", "reason"))
        for condition in get_mappings(status, "conditions")
    ]


async def test_a_load_balancer_gets_its_address_after_a_while() -> None:
    cluster = await a_cluster()
    await cluster.create(a_service(type="LoadBalancer"))
    await cluster.until(Ms(4 * SECOND))
    before = await cluster.status(SERVICE, "web")

    await cluster.until(Ms(6 * SECOND))

    (ingress,) = get_mappings(await cluster.status(SERVICE, "web"), "loadBalancer", "ingress")
    assert get_mappings(before, "loadBalancer", "ingress") == []
    assert get_text(ingress, "ip").startswith("198.18.")


async def test_other_services_get_no_address() -> None:
    cluster = await a_cluster()

    await cluster.create(a_service())
    await cluster.until(Ms(60 * SECOND))

    assert get_mappings(await cluster.status(SERVICE, "web"), "loadBalancer", "ingress") == []


async def test_an_ingress_gets_an_address() -> None:
    cluster = await a_cluster()
    backend: Json = {"service": {"name": "web", "port": {"number": 80}}}

    await cluster.create(
        an_object("networking.k8s.io/v1", "Ingress", "web", spec={"defaultBackend": backend})
    )
    await cluster.until(Ms(6 * SECOND))

    (ingress,) = get_mappings(await cluster.status(INGRESS, "web"), "loadBalancer", "ingress")
    assert get_text(ingress, "ip")


async def test_a_local_api_service_is_available() -> None:
    cluster = await a_cluster()

    await cluster.create(an_api_service())
    await cluster.until(Ms(3 * SECOND))

    assert conditions(await cluster.status(API_SERVICE, "v1.metrics.example.com")) == [
        "Available True Local"
    ]


async def test_an_api_service_is_available_when_its_service_has_endpoints() -> None:
    cluster = await a_cluster()
    name = "v1.metrics.example.com"
    service: Json = {"name": "web", "namespace": "shop"}
    await cluster.create(an_api_service(service=service, insecureSkipTLSVerify=True))
    await cluster.until(Ms(3 * SECOND))
    without_service = conditions(await cluster.status(API_SERVICE, name))

    await cluster.create(a_service())
    await cluster.until(Ms(6 * SECOND))
    without_pods = conditions(await cluster.status(API_SERVICE, name))
    pod = await a_pod(cluster, "web")
    await cluster.until(Ms(7 * SECOND))
    await cluster.client.patch(pod, {"status": {"podIP": "10.0.0.1"}}, subresource="status")
    await cluster.until(Ms(10 * SECOND))

    assert without_service == ["Available False ServiceNotFound"]
    assert without_pods == ["Available False MissingEndpoints"]
    assert conditions(await cluster.status(API_SERVICE, name)) == ["Available True Passed"]


def an_autoscaler() -> JsonObject:
    target: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return an_object(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "web",
        spec={"scaleTargetRef": target, "maxReplicas": 3},
    )


def a_deployment() -> JsonObject:
    container: Json = {"name": "app", "image": "registry.example/app:1"}
    template: Json = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [container]},
    }
    return an_object(
        "apps/v1",
        "Deployment",
        "web",
        spec={"selector": {"matchLabels": {"app": "web"}}, "template": template},
    )


async def test_an_autoscaler_without_metrics_is_able_to_scale_and_not_active() -> None:
    cluster = await a_cluster()
    await cluster.create(a_deployment())

    await cluster.create(an_autoscaler())
    await cluster.until(Ms(16 * SECOND))

    status = await cluster.status(AUTOSCALER, "web")
    assert conditions(status) == [
        "AbleToScale True SucceededGetScale",
        "ScalingActive False FailedGetResourceMetric",
    ]


async def test_an_autoscaler_finds_its_target_when_it_is_created() -> None:
    cluster = await a_cluster()
    await cluster.create(an_autoscaler())
    await cluster.until(Ms(16 * SECOND))
    before = conditions(await cluster.status(AUTOSCALER, "web"))

    await cluster.create(a_deployment())
    await cluster.until(Ms(32 * SECOND))

    after = conditions(await cluster.status(AUTOSCALER, "web"))
    assert before == ["AbleToScale False FailedGetScale"]
    assert after[0] == "AbleToScale True SucceededGetScale"


def a_budget(**spec: Json) -> JsonObject:
    return an_object(
        "policy/v1",
        "PodDisruptionBudget",
        "spare",
        spec={"selector": {"matchLabels": {"app": "web"}}, **spec},
    )


async def test_a_budget_counts_healthy_pods() -> None:
    cluster = await a_cluster()
    await cluster.create(a_budget(minAvailable=1))
    await cluster.until(Ms(SECOND))
    before = await cluster.status(DISRUPTION_BUDGET, "spare")

    for name in ("a", "b", "c"):
        await a_pod(cluster, name)
    await cluster.until(Ms(2 * SECOND))

    after = await cluster.status(DISRUPTION_BUDGET, "spare")
    assert conditions(before) == ["DisruptionAllowed False InsufficientPods"]
    assert conditions(after) == ["DisruptionAllowed True SufficientPods"]
    assert (after["expectedPods"], after["currentHealthy"]) == (3, 3)
    assert after["disruptionsAllowed"] == 2


async def test_a_budget_notices_a_deleted_pod() -> None:
    cluster = await a_cluster()
    await cluster.create(a_budget(minAvailable=1))
    pod = await a_pod(cluster, "a")
    await cluster.until(Ms(SECOND))

    await cluster.remove(pod)
    await cluster.until(Ms(2 * SECOND))

    assert await cluster.body(POD, "a") is None
    assert (await cluster.status(DISRUPTION_BUDGET, "spare"))["currentHealthy"] == 0
