"""Promises about what cannot be changed once it is there."""

from __future__ import annotations

import pytest

from tests.promises.objects import (
    a_claim,
    a_config_map,
    a_deployment,
    a_job,
    a_pod_template,
    a_service,
    a_stateful_set,
    at,
)
from tidegate.testing import Body, Desk, body_of, live_of
from tidegate.world.facts import Done, Invalid

OTHER_LABELS: Body = {"matchLabels": {"app": "other"}}
OTHER_IMAGE: Body = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "run", "image": "registry.example/app:2"}],
    }
}


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
    ],
)
async def test_an_immutable_field_is_refused_by_name(
    desk: Desk, before: Body, after: Body, field: str
) -> None:
    live_of(await desk.apply(before))

    outcome = await desk.apply(after, force=True)

    assert isinstance(outcome, Invalid)
    assert field in {cause.field for cause in outcome.causes}


async def test_a_service_keeps_the_address_it_was_given(desk: Desk) -> None:
    given = at(body_of(await desk.apply(a_service())), "spec", "clusterIP")
    assert isinstance(given, str)
    other = given.rsplit(".", 1)[0] + (".250" if not given.endswith(".250") else ".251")

    outcome = await desk.apply(a_service(clusterIP=other), force=True)

    assert isinstance(outcome, Invalid)
    assert "spec.clusterIPs[0]" in {cause.field for cause in outcome.causes}


async def test_what_is_not_immutable_of_the_same_kinds_can_be_changed(desk: Desk) -> None:
    await desk.apply(a_job(parallelism=1))
    await desk.apply(a_stateful_set(replicas=0))

    outcomes = [
        await desk.apply(a_job(parallelism=2)),
        await desk.apply(a_stateful_set(replicas=0, minReadySeconds=3)),
    ]

    assert all(isinstance(outcome, Done) for outcome in outcomes)
