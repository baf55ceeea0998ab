"""Changes of immutable fields, and the messages of a server about them."""

from __future__ import annotations

import pytest

from tests.support.objects import POD, a_claim, a_container, a_definition, a_job, an_object
from tidegate.model.k8s.objects import JsonObject, Kind
from tidegate.schema.immutable import find_immutable_changes

STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass")
BOUND: JsonObject = {"status": {"phase": "Bound"}}


def a_pod(*containers: JsonObject) -> JsonObject:
    return an_object(POD, "web", spec={"containers": [*containers]})


def a_class(**parts: str) -> JsonObject:
    return an_object(STORAGE_CLASS, "fast", provisioner="example.org/disk", **parts)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            {**a_claim(size="2Gi"), **BOUND},
            {**a_claim(size="1Gi"), **BOUND},
            "spec.resources.requests.storage: Forbidden: field can not be less",
        ),
        (a_claim(), a_claim(size="2Gi"), "spec: Forbidden: spec is immutable after creation"),
        (
            a_class(),
            a_class(reclaimPolicy="Retain"),
            "reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.",
        ),
        (
            a_class(),
            a_class(volumeBindingMode="WaitForFirstConsumer"),
            "volumeBindingMode: Invalid value: field is immutable",
        ),
        (
            a_job(completionMode="Indexed", completions=2, parallelism=2),
            a_job(completionMode="Indexed", completions=3, parallelism=2),
            "spec.completions: Invalid value: can only be modified in tandem",
        ),
    ],
)
def test_a_change_is_refused_with_the_message_of_a_server(
    before: JsonObject, after: JsonObject, expected: str
) -> None:
    (cause,) = find_immutable_changes(before, after)

    assert f"{cause.field}: {cause.message}".startswith(expected)


def test_a_pod_keeps_its_containers() -> None:
    causes = find_immutable_changes(
        a_pod(a_container("a")), a_pod(a_container("a"), a_container("b"))
    )

    assert [cause.field for cause in causes] == ["spec.containers", "spec"]
    assert causes[0].message == "Forbidden: pod updates may not add or remove containers"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({**a_claim(), **BOUND}, {**a_claim(size="2Gi"), **BOUND}),
        (a_class(), a_class(reclaimPolicy="Delete", volumeBindingMode="Immediate")),
        (a_job(), a_job(completions=1, completionMode="NonIndexed")),
        (a_pod(a_container("a", "app:1")), a_pod(a_container("a", "app:2"))),
        (an_object(POD, "web", spec={}), an_object(POD, "web", spec={"nodeName": "n1"})),
        (a_definition("example.org"), a_definition("example.org", scope="Cluster")),
    ],
)
def test_a_change_of_a_mutable_field_or_to_the_default_is_accepted(
    before: JsonObject, after: JsonObject
) -> None:
    assert find_immutable_changes(before, after) == ()
