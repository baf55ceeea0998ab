"""Promises about what containers print."""

from __future__ import annotations

from tests.support.cluster_client import ClusterClient
from tests.support.log_pods import PrintingPod
from tests.support.objects import POD
from tidegate.model.k8s.objects import Ref
from tidegate.world.messages import Invalid, NotFound, RawResponse
from tidegate.world.requests import Logs


async def test_the_log_of_a_container_can_be_read(
    client: ClusterClient, printing: PrintingPod
) -> None:
    pod = await printing(client, {"app": ["one", "two", "three"]})

    (outcome,) = await client.ask(Logs(ref=pod))

    assert outcome == RawResponse(b"one\ntwo\nthree\n")


async def test_tail_lines_limits_the_log(client: ClusterClient, printing: PrintingPod) -> None:
    pod = await printing(client, {"app": ["one", "two", "three"]})

    (outcome,) = await client.ask(Logs(ref=pod, tail=2))

    assert outcome == RawResponse(b"two\nthree\n")


async def test_each_container_prints_for_itself(
    client: ClusterClient, printing: PrintingPod
) -> None:
    pod = await printing(client, {"app": ["hello"], "proxy": ["ready"]})

    (outcome,) = await client.ask(Logs(ref=pod, container="proxy"))

    assert outcome == RawResponse(b"ready\n")


async def test_with_several_containers_one_must_be_named(
    client: ClusterClient, printing: PrintingPod
) -> None:
    pod = await printing(client, {"app": ["hello"], "proxy": ["ready"]})

    (outcome,) = await client.ask(Logs(ref=pod))

    assert isinstance(outcome, Invalid)
    assert "proxy" in outcome.message


async def test_a_pod_that_is_not_there_printed_nothing(client: ClusterClient) -> None:
    (outcome,) = await client.ask(Logs(ref=Ref(POD, client.namespace, "nobody")))

    assert isinstance(outcome, NotFound)


async def test_the_log_of_the_previous_run_can_be_read(
    client: ClusterClient, printing: PrintingPod
) -> None:
    pod = await printing(client, {"app": ["again"]}, before={"app": ["one", "two"]})

    now, before, end = await client.ask(
        Logs(ref=pod), Logs(ref=pod, previous=True), Logs(ref=pod, previous=True, tail=1)
    )

    assert (now, before, end) == (
        RawResponse(b"again\n"),
        RawResponse(b"one\ntwo\n"),
        RawResponse(b"two\n"),
    )


async def test_a_container_that_is_not_there_is_named(
    client: ClusterClient, printing: PrintingPod
) -> None:
    pod = await printing(client, {"app": ["hello"]})

    (outcome,) = await client.ask(Logs(ref=pod, container="proxy"))

    assert isinstance(outcome, Invalid)
    assert outcome.message == "container proxy is not valid for pod web"
