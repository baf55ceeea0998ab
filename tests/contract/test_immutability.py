"""Promises about what cannot be changed once it is there."""

from __future__ import annotations

import pytest

from tests.support.cluster_client import ClusterClient, require_body, require_live
from tests.support.objects import (
    SECRET,
    a_claim,
    a_config_map,
    a_deployment,
    a_job,
    a_pod_template,
    a_service,
    a_stateful_set,
    an_object,
    at,
)
from tidegate.model.k8s.objects import JsonObject, Kind
from tidegate.world.messages import Invalid, Success

OTHER_LABELS: JsonObject = {"matchLabels": {"app": "other"}}
OTHER_IMAGE: JsonObject = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "run", "image": "registry.example/app:2"}],
    }
}
ELSEWHERE: JsonObject = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "run", "image": "registry.example/app:1"}],
        "nodeSelector": {"disk": "fast"},
    }
}


def an_indexed_job(completions: int, *, parallelism: int) -> JsonObject:
    return a_job(completionMode="Indexed", completions=completions, parallelism=parallelism)


def a_slice(address_type: str) -> JsonObject:
    kind = Kind("discovery.k8s.io", "v1", "EndpointSlice")
    return an_object(kind, "web", addressType=address_type, endpoints=[])


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        pytest.param(a_job(), a_job(template=OTHER_IMAGE), "spec.template", id="Job-template"),
        pytest.param(a_job(), a_job(completions=3), "spec.completions", id="Job-completions"),
        pytest.param(
            a_deployment(replicas=0),
            a_deployment(replicas=0, selector=OTHER_LABELS, template=a_pod_template(app="other")),
            "spec.selector",
            id="Deployment-selector",
        ),
        pytest.param(
            a_stateful_set(replicas=0),
            a_stateful_set(replicas=0, serviceName="other"),
            "spec",
            id="StatefulSet-serviceName",
        ),
        pytest.param(
            a_claim(), a_claim(accessModes=["ReadWriteMany"]), "spec", id="PersistentVolumeClaim"
        ),
        pytest.param(
            {**a_config_map(color="blue"), "immutable": True},
            {**a_config_map(color="red"), "immutable": True},
            "data",
            id="ConfigMap-immutable",
        ),
        pytest.param(
            a_job(suspend=True),
            a_job(suspend=True, template=OTHER_IMAGE),
            "spec.template.spec",
            id="Job-suspended-template",
        ),
        pytest.param(
            an_indexed_job(2, parallelism=2),
            an_indexed_job(3, parallelism=2),
            "spec.completions",
            id="Job-indexed-completions",
        ),
        pytest.param(
            an_object(SECRET, "login"),
            an_object(SECRET, "login", type="example.org/login"),
            "type",
            id="Secret-type",
        ),
        pytest.param(a_slice("IPv4"), a_slice("IPv6"), "addressType", id="EndpointSlice"),
    ],
)
async def test_an_immutable_field_is_refused_by_name(
    client: ClusterClient, before: JsonObject, after: JsonObject, field: str
) -> None:
    require_live(await client.apply(before))

    outcome = await client.apply(after, force=True)

    assert isinstance(outcome, Invalid)
    assert field in {cause.field for cause in outcome.causes}


async def test_a_service_keeps_the_address_it_was_given(client: ClusterClient) -> None:
    given = at(require_body(await client.apply(a_service())), "spec", "clusterIP")
    assert isinstance(given, str)
    other = given.rsplit(".", 1)[0] + (".250" if not given.endswith(".250") else ".251")

    outcome = await client.apply(a_service(clusterIP=other), force=True)

    assert isinstance(outcome, Invalid)
    assert "spec.clusterIPs[0]" in {cause.field for cause in outcome.causes}


async def test_mutable_fields_of_the_same_kinds_can_be_changed(
    client: ClusterClient,
) -> None:
    await client.apply(a_job(parallelism=1))
    await client.apply(a_stateful_set(replicas=0))

    outcomes = [
        await client.apply(a_job(parallelism=2)),
        await client.apply(a_stateful_set(replicas=0, minReadySeconds=3)),
    ]

    assert all(isinstance(outcome, Success) for outcome in outcomes)


async def test_a_job_that_has_not_started_can_change_its_scheduling(client: ClusterClient) -> None:
    require_live(await client.apply(a_job(suspend=True)))

    outcome = await client.apply(a_job(suspend=True, template=ELSEWHERE))

    assert isinstance(outcome, Success)


async def test_an_indexed_job_counts_and_runs_in_step(client: ClusterClient) -> None:
    require_live(await client.apply(an_indexed_job(2, parallelism=2)))

    outcome = await client.apply(an_indexed_job(3, parallelism=3))

    assert isinstance(outcome, Success)
