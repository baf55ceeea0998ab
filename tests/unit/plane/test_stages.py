"""The stages for kwok."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from plane.parts.stages import kwok_documents
from tidegate.model.k8s.objects import Json


def a_stage(name: str) -> Mapping[str, Json]:
    return {
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchExpressions": [{"key": ".status.phase", "operator": "Exists"}]},
            "next": {"statusTemplate": "phase: Running"},
        },
    }


def by_name(documents: list[Mapping[str, Json]]) -> dict[str, Json]:
    named: dict[str, Json] = {}
    for document in documents:
        match document:
            case {"metadata": {"name": str(name)}, "spec": spec}:
                named[name] = spec
            case _:
                pass
    return named


@pytest.mark.parametrize(
    ("name", "outcomes", "delay"),
    [
        ("pod-ready", ["never", "crash"], "ready-after"),
        ("pod-complete", ["fail", "hang"], "run-for"),
    ],
)
def test_the_stage_of_kwok_is_disabled_for_requested_outcomes(
    name: str, outcomes: list[str], delay: str
) -> None:
    documents = kwok_documents([a_stage(name)])

    assert by_name(documents)[name] == {
        "selector": {
            "matchExpressions": [
                {"key": ".status.phase", "operator": "Exists"},
                {
                    "key": '.metadata.annotations["test.tidegate.dev/outcome"]',
                    "operator": "NotIn",
                    "values": outcomes,
                },
            ]
        },
        "delay": {
            "durationMilliseconds": 0,
            "durationFrom": {
                "expressionFrom": f'.metadata.annotations["test.tidegate.dev/{delay}"]'
            },
        },
        "next": {"statusTemplate": "phase: Running"},
    }


def test_other_stages_of_kwok_stay_as_they_are() -> None:
    stage = a_stage("node-initialize")

    assert stage in kwok_documents([stage])


def test_kwok_takes_fake_nodes_only() -> None:
    options = kwok_documents([])[0]["options"]

    assert isinstance(options, dict)
    assert options["manageAllNodes"] is False
    assert options["manageNodesWithAnnotationSelector"] == "kwok.x-k8s.io/node=fake"


def test_a_stage_of_an_unknown_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="another way"):
        kwok_documents([{"metadata": {"name": "pod-ready"}, "spec": {}}])
