"""Promises about what a server gives a Job, and about what can be changed of one."""

from __future__ import annotations

import pytest

from tests.support.cluster_client import ClusterClient, require_body, require_live
from tests.support.objects import a_container, a_job, at, labelled
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.world.messages import Invalid, Success

UID, NAME = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"


def a_template(*, image: str = "registry.example/app:1", **labels: Json) -> JsonObject:
    pod: JsonObject = {"restartPolicy": "Never", "containers": [a_container("run", image)]}
    return {"metadata": {"labels": {**labels}}, "spec": pod}


def template_labels(job: JsonObject) -> Json:
    return at(job, "spec", "template", "metadata", "labels")


async def test_a_new_job_gets_a_selector_and_labels_of_its_own(client: ClusterClient) -> None:
    job = require_body(await client.create(a_job(template=a_template(app="shop"))))

    uid = at(job, "metadata", "uid")
    unit_resource = {UID: uid, NAME: "migrate", "controller-uid": uid, "job-name": "migrate"}
    assert at(job, "spec", "selector") == {"matchLabels": {UID: uid}}
    assert template_labels(job) == {"app": "shop", **unit_resource}


async def test_a_job_in_a_dry_run_gets_them_too(client: ClusterClient) -> None:
    job = require_body(await client.apply(a_job(), dry_run=True))

    uid = at(job, "metadata", "uid")
    assert at(job, "spec", "selector", "matchLabels", UID) == uid
    assert at(template_labels(job), NAME) == "migrate"


async def test_a_job_that_chooses_its_selector_gets_nothing(client: ClusterClient) -> None:
    chosen: JsonObject = {"matchLabels": {"app": "shop"}}
    desired_job = a_job(manualSelector=True, selector=chosen, template=a_template(app="shop"))

    job = require_body(await client.create(desired_job))

    assert at(job, "spec", "selector") == chosen
    assert template_labels(job) == {"app": "shop"}


async def test_the_same_job_applied_twice_is_unchanged(client: ClusterClient) -> None:
    desired_job = a_job(template=a_template(app="shop"))
    first = require_live(await client.apply(desired_job))
    # The controller may have written the status already.
    spec = at(require_body(Success(first)), "spec")

    again = require_live(await client.apply(desired_job))

    assert (again.uid, again.generation) == (first.uid, 1)
    assert at(require_body(Success(again)), "spec") == spec


async def test_a_dry_run_of_the_same_job_changes_nothing(client: ClusterClient) -> None:
    live = require_live(await client.apply(a_job(suspend=True)))

    dry = require_body(await client.apply(a_job(suspend=True), dry_run=True))

    assert at(dry, "spec") == at(require_body(Success(live)), "spec")
    assert at(dry, "metadata", "generation") == 1


async def test_generated_fields_have_no_manager(client: ClusterClient) -> None:
    job = require_body(await client.apply(a_job(template=a_template(app="shop"))))

    owners = [
        str(item)
        for item in _listed(at(job, "metadata", "managedFields"))
        if at(item, "subresource") is None
    ]
    assert any("f:app" in owner for owner in owners)
    assert not any("f:selector" in owner or "job-name" in owner for owner in owners)


async def test_labels_of_another_job_are_refused(client: ClusterClient) -> None:
    copied = a_template(**{NAME: "other", "controller-uid": "1d8c2e5e-0000-4000-8000-000000000000"})

    outcome = await client.create(a_job(template=copied))

    assert isinstance(outcome, Invalid)
    assert {
        f"spec.template.metadata.labels[{NAME}]",
        "spec.template.metadata.labels[controller-uid]",
    } == {cause.field for cause in outcome.causes}


async def test_a_selector_that_was_copied_is_refused(client: ClusterClient) -> None:
    copied: JsonObject = {"matchLabels": {UID: "1d8c2e5e-0000-4000-8000-000000000000"}}

    outcome = await client.create(a_job(selector=copied))

    assert isinstance(outcome, Invalid)
    assert {"spec.selector", "spec.template.metadata.labels"} == {
        cause.field for cause in outcome.causes
    }


async def test_a_chosen_selector_must_be_there(client: ClusterClient) -> None:
    outcome = await client.create(a_job(manualSelector=True))

    assert isinstance(outcome, Invalid)
    assert "spec.selector" in {cause.field for cause in outcome.causes}


async def test_replacing_a_job_without_its_selector_is_refused(client: ClusterClient) -> None:
    require_live(await client.create(a_job()))

    outcome = await client.replace(a_job())

    assert isinstance(outcome, Invalid)
    assert "spec.selector" in {cause.field for cause in outcome.causes}


async def test_a_job_that_was_read_can_be_replaced(client: ClusterClient) -> None:
    job = require_body(await client.create(a_job()))
    job["metadata"] = {"name": "migrate", "labels": {"app": "shop"}}

    outcome = await client.replace(job)

    assert isinstance(outcome, Success)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"completions": 1}, id="completions"),
        pytest.param({"completionMode": "NonIndexed"}, id="completionMode"),
    ],
)
async def test_applying_a_default_value_is_no_change(
    client: ClusterClient, spec: JsonObject
) -> None:
    require_live(await client.apply(a_job()))

    outcome = await client.apply(a_job("migrate", **spec))

    assert isinstance(outcome, Success)


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        pytest.param(
            "backoffLimitPerIndex", {"backoffLimitPerIndex": 2}, id="backoffLimitPerIndex"
        ),
        pytest.param(
            "successPolicy",
            {"successPolicy": {"rules": [{"succeededCount": 1}]}},
            id="successPolicy",
        ),
        pytest.param("managedBy", {"managedBy": "example.org/queue"}, id="managedBy"),
        pytest.param("completions", {"completions": 3}, id="completions-alone"),
    ],
)
async def test_fields_of_an_indexed_job_are_immutable(
    client: ClusterClient, field: str, spec: JsonObject
) -> None:
    indexed: JsonObject = {"completionMode": "Indexed", "completions": 2, "parallelism": 2}
    require_live(await client.apply(a_job("migrate", **indexed)))

    outcome = await client.apply(a_job("migrate", **{**indexed, **spec}))

    assert isinstance(outcome, Invalid)
    assert {f"spec.{field}"} == {cause.field for cause in outcome.causes}


async def test_an_indexed_job_grows_in_both_numbers_at_once(client: ClusterClient) -> None:
    job = a_job(completionMode="Indexed", completions=2, parallelism=2)
    ref = require_live(await client.apply(job)).ref

    outcome = await client.apply(a_job(completionMode="Indexed", completions=3, parallelism=3))

    assert isinstance(outcome, Success)
    assert await _completions(client, ref) == 3


async def test_labels_of_the_job_itself_can_be_changed(client: ClusterClient) -> None:
    require_live(await client.apply(a_job()))

    outcome = await client.apply(labelled(a_job(), app="shop"))

    assert isinstance(outcome, Success)


async def _completions(client: ClusterClient, ref: Ref) -> Json:
    return at(require_body(await client.get(ref)), "spec", "completions")


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
