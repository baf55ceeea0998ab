"""EndpointSlices follow the pods of a Service."""

from __future__ import annotations

from tests.support.small_cluster import SHOP, SmallCluster, an_object, notes
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.kinds import ENDPOINT_SLICE, POD
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.times import Ms
from tidegate.sandbox.controllers.selectors import ENDPOINTS, HEADLESS, MANAGED_BY
from tidegate.sandbox.kinds import SERVICE_NAME_LABEL

PORTS: list[Json] = [{"port": 80, "targetPort": 8080}]


async def a_cluster() -> SmallCluster:
    return await SmallCluster(ENDPOINTS).open()


def a_service(**spec: Json) -> JsonObject:
    return an_object(
        "v1", "Service", "web", spec={"selector": {"app": "web"}, "ports": PORTS, **spec}
    )


async def a_pod(
    cluster: SmallCluster, name: str, address: str, *, app: str = "web", never: bool = False
) -> Ref:
    """A pod with an address, ready unless it never becomes so."""
    port: Json = {"name": "http", "containerPort": 8000 + len(name)}
    container: Json = {"name": "app", "image": "registry.example/app:1", "ports": [port]}
    metadata: Json = {
        "name": name,
        "labels": {"app": app},
        "annotations": notes(outcome="never") if never else {},
    }
    body = an_object("v1", "Pod", name, spec={"containers": [container]})
    ref = await cluster.create({**body, "metadata": metadata})
    await cluster.until(Ms(cluster.elapsed + 200))
    await cluster.client.patch(ref, {"status": {"podIP": address}}, subresource="status")
    return ref


async def the_slice(cluster: SmallCluster) -> JsonObject:
    await cluster.until(Ms(cluster.elapsed + 500))
    (slice_,) = await cluster.all_of(ENDPOINT_SLICE)
    return slice_


def readiness(slice_: JsonObject) -> dict[str, bool]:
    """By pod, whether it is ready."""
    return {
        get_text(endpoint, "targetRef", "name"): get_value(endpoint, "conditions", "ready") is True
        for endpoint in get_mappings(slice_, "endpoints")
    }


async def test_a_service_without_pods_has_an_empty_slice() -> None:
    cluster = await a_cluster()

    await cluster.create(a_service())

    slice_ = await the_slice(cluster)
    assert get_mappings(slice_, "endpoints") == []
    assert get_mapping(slice_, "metadata", "labels") == {
        SERVICE_NAME_LABEL: "web",
        MANAGED_BY: "endpointslice-controller.k8s.io",
    }
    assert get_text(get_mappings(slice_, "metadata", "ownerReferences")[0], "name") == "web"


async def test_pods_that_are_ready_are_ready_endpoints() -> None:
    cluster = await a_cluster()
    await cluster.create(a_service())

    await a_pod(cluster, "a", "10.0.0.1")
    await a_pod(cluster, "b", "10.0.0.2")
    await a_pod(cluster, "other", "10.0.0.3", app="db")

    slice_ = await the_slice(cluster)
    assert readiness(slice_) == {"a": True, "b": True}
    assert slice_["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    assert [endpoint["addresses"] for endpoint in get_mappings(slice_, "endpoints")] == [
        ["10.0.0.1"],
        ["10.0.0.2"],
    ]


async def test_a_pod_that_is_not_ready_is_an_endpoint_that_is_not() -> None:
    cluster = await a_cluster()
    await cluster.create(a_service())

    await a_pod(cluster, "a", "10.0.0.1", never=True)

    assert readiness(await the_slice(cluster)) == {"a": False}


async def test_a_service_may_publish_pods_before_they_are_ready() -> None:
    cluster = await a_cluster()
    await cluster.create(a_service(publishNotReadyAddresses=True))

    await a_pod(cluster, "a", "10.0.0.1", never=True)

    assert readiness(await the_slice(cluster)) == {"a": True}


async def test_a_pod_without_an_address_is_no_endpoint() -> None:
    cluster = await a_cluster()
    await cluster.create(a_service())

    await a_pod(cluster, "a", "")

    assert readiness(await the_slice(cluster)) == {}


async def test_a_deleted_pod_is_no_endpoint_any_more() -> None:
    cluster = await a_cluster()
    await cluster.create(a_service())
    pod = await a_pod(cluster, "a", "10.0.0.1")
    before = readiness(await the_slice(cluster))

    await cluster.remove(pod)

    assert before == {"a": True}
    assert readiness(await the_slice(cluster)) == {}


async def test_a_named_port_is_resolved_in_each_pod() -> None:
    cluster = await a_cluster()
    await cluster.create(a_service(ports=[{"port": 80, "targetPort": "http"}]))

    await a_pod(cluster, "a", "10.0.0.1")
    await a_pod(cluster, "bb", "10.0.0.2")
    await cluster.until(Ms(cluster.elapsed + 500))

    ports = [
        get_mappings(item, "ports")[0]["port"] for item in await cluster.all_of(ENDPOINT_SLICE)
    ]
    assert sorted(str(port) for port in ports) == ["8001", "8002"]


async def test_a_headless_service_has_endpoints_and_a_label() -> None:
    cluster = await a_cluster()
    await cluster.create(a_service(clusterIP="None"))

    await a_pod(cluster, "a", "10.0.0.1")

    slice_ = await the_slice(cluster)
    assert readiness(slice_) == {"a": True}
    assert HEADLESS in get_mapping(slice_, "metadata", "labels")


async def test_services_without_a_selector_or_of_an_external_name_have_no_slices() -> None:
    cluster = await a_cluster()

    await cluster.create(an_object("v1", "Service", "bare", spec={"ports": PORTS}))
    external: Json = {"type": "ExternalName", "externalName": "db.example.com"}
    await cluster.create(an_object("v1", "Service", "db", spec=external))
    await cluster.until(Ms(cluster.elapsed + 1_000))

    assert await cluster.all_of(ENDPOINT_SLICE) == []


async def test_endpoint_slices_have_the_labels_of_their_service() -> None:
    cluster = await a_cluster()
    service = await cluster.create(a_service())
    await cluster.client.patch(service, {"metadata": {"labels": {"team": "a", "tier": "1"}}})
    before = await the_slice(cluster)

    await cluster.client.patch(service, {"metadata": {"labels": {"team": "b", "tier": None}}})

    after = await the_slice(cluster)
    assert get_text(before, "metadata", "labels", "team") == "a"
    assert get_text(after, "metadata", "labels", "team") == "b"
    assert "tier" not in get_mapping(after, "metadata", "labels")


async def test_the_slices_of_a_deleted_service_are_deleted() -> None:
    cluster = await a_cluster()
    service = await cluster.create(a_service())
    await the_slice(cluster)

    await cluster.client.delete(service)
    await cluster.until(Ms(cluster.elapsed + 500))

    assert await cluster.all_of(ENDPOINT_SLICE) == []


async def test_a_pod_that_ends_is_no_endpoint() -> None:
    cluster = await a_cluster()
    await cluster.create(a_service())
    pod = await a_pod(cluster, "a", "10.0.0.1")
    assert pod == Ref(POD, SHOP, "a")

    await cluster.client.patch(pod, {"status": {"phase": "Failed"}}, subresource="status")

    assert readiness(await the_slice(cluster)) == {}
