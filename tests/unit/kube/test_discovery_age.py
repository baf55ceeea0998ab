"""How often API discovery runs: not again for kinds that it has just not found."""

from __future__ import annotations

import msgspec

from tidegate.kube.cluster import KubeCluster
from tidegate.kube.http_requests import HttpRequest
from tidegate.kube.http_responses import DISCOVERY_ROOTS, HttpResponse
from tidegate.kube.transport import InFlightRequest
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.world.messages import NotServed
from tidegate.world.requests import Discover, Get, Verb, Write

CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
UNKNOWN = Ref(Kind("example.org", "v1", "Widget"), "default", "a")
SERVED = {
    "items": [
        {
            "metadata": {"name": "apiextensions.k8s.io"},
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {
                            "resource": "customresourcedefinitions",
                            "responseKind": {"kind": "CustomResourceDefinition"},
                            "scope": "Cluster",
                            "verbs": ["create", "get", "patch"],
                        }
                    ],
                }
            ],
        }
    ]
}


class RecordingTransport:
    """A transport that serves one kind and records the paths of requests."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    @property
    def discoveries(self) -> int:
        return self.paths.count(DISCOVERY_ROOTS[-1])

    async def send(self, request: HttpRequest, _in_flight: InFlightRequest) -> HttpResponse:
        self.paths.append(request.path)
        if request.path == DISCOVERY_ROOTS[-1]:
            return HttpResponse(200, msgspec.json.encode(SERVED))
        if request.path in DISCOVERY_ROOTS:
            return HttpResponse(200, b'{"items": []}')
        body = {"metadata": {"name": "a", "uid": "1", "resourceVersion": "1"}}
        return HttpResponse(200, msgspec.json.encode(body))


def a_cluster() -> tuple[KubeCluster, RecordingTransport]:
    transport = RecordingTransport()
    return KubeCluster(transport, watch_timeout=Ms(300 * SECOND)), transport  # type: ignore[arg-type]


async def test_several_requests_for_unserved_kinds_run_discovery_once() -> None:
    cluster, transport = a_cluster()

    outcomes = [await cluster.perform(Get(UNKNOWN), InFlightRequest()) for _ in range(5)]

    assert all(isinstance(outcome, NotServed) for outcome in outcomes)
    assert transport.discoveries == 1


async def test_a_write_of_a_crd_makes_the_next_unknown_kind_run_discovery_again() -> None:
    cluster, transport = a_cluster()
    await cluster.perform(Get(UNKNOWN), InFlightRequest())

    write = Write(verb=Verb.CREATE, ref=Ref(CRD, "", "widgets.example.org"), body=b"{}")
    await cluster.perform(write, InFlightRequest())
    await cluster.perform(Get(UNKNOWN), InFlightRequest())

    assert transport.discoveries == 2


async def test_discovery_is_fresh_unless_an_age_is_allowed() -> None:
    cluster, transport = a_cluster()

    for _ in range(2):
        await cluster.perform(Discover(), InFlightRequest())
    await cluster.perform(Discover(Ms(60 * SECOND)), InFlightRequest())

    assert transport.discoveries == 2
