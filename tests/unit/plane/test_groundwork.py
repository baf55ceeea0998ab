"""When a node takes pods."""

from __future__ import annotations

import pytest

from plane.groundwork import is_open
from tidegate.model.k8s.objects import Json

READY: Json = {"conditions": [{"type": "Ready", "status": "True"}]}


def test_a_ready_node_without_taints_is_open() -> None:
    assert is_open({"spec": {}, "status": READY})


@pytest.mark.parametrize(
    "node",
    [
        None,
        {"spec": {}, "status": {}},
        {"spec": {}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        {"spec": {"taints": [{"key": "node.kubernetes.io/not-ready"}]}, "status": READY},
    ],
    ids=["absent", "silent", "not ready", "tainted"],
)
def test_other_nodes_are_not(node: Json) -> None:
    assert not is_open(node)
