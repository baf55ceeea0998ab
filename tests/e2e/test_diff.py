"""Comparisons, held against what a real server does with the same objects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plane import ControlPlane
from tests.e2e.conftest import Site
from tests.e2e.diff_bodies import Case, read_cases
from tests.support.cluster_client import ClusterClient, require_body
from tests.support.predicted_changes import (
    changes_between,
    is_touched,
    not_kept_by_seal,
    surprises_of,
)
from tests.support.takeover import OURS, take_over
from tests.support.worlds import real_world
from tests.support.write_sequences import random_sequences
from tidegate.model.k8s.json_fields import get_mapping, get_value
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.plans.change import DiffAction
from tidegate.plan.diff.compare import compare
from tidegate.plan.diff.last_applied import LAST_APPLIED
from tidegate.world.messages import Forbidden, Invalid, Success

pytestmark = pytest.mark.kube

FOLLOWING = {"spec.externalTrafficPolicy", "spec.ports[].nodePort"}
"""What a server sets by itself when a Service becomes another type."""


async def test_an_applied_object_has_no_diff_and_a_change_is_predicted(site: Site) -> None:
    async with site.client(site.kubeconfig()) as client:
        wrong = [
            f"{case.name}: {line}" for case in read_cases() for line in await _tried(client, case)
        ]

    assert wrong == []


async def test_a_diff_predicts_an_apply_with_several_field_managers(
    plane: ControlPlane,
) -> None:
    async with real_world(kubeconfig=plane.kubeconfig("tidegate")) as world:
        surprises = await surprises_of(world, random_sequences(25, seed=3))

    assert surprises == []


async def test_fields_of_client_side_apply_are_removed_on_adoption(site: Site) -> None:
    async with site.client(site.kubeconfig()) as client:
        taken = await take_over(client, from_manager="kubectl-client-side-apply")

    assert [field.path for field in taken.foreseen.fields] == [
        "metadata.labels.team",
        "spec.minReadySeconds",
    ]
    assert get_value(taken.live, "spec", "minReadySeconds") is None
    assert get_value(taken.live, "metadata", "labels") == {"tier": "front"}
    assert LAST_APPLIED not in get_mapping(taken.live, "metadata", "annotations")
    assert taken.after.action is DiffAction.KEEP


async def _tried(client: ClusterClient, case: Case) -> list[str]:
    """What is wrong with the comparisons of one object, before and after its change."""
    live = require_body(await client.apply(case.body, force=True))
    result = compare(case.body, live, manager=OURS)
    wrong = [] if result.action is DiffAction.KEEP else [f"not kept: {result}"]
    wrong += not_kept_by_seal(case.body, live, manager=OURS)
    foreseen = compare(case.changed, live, manager=OURS)
    if foreseen.action is not case.action:
        wrong.append(f"{case.action} was to be foreseen: {foreseen}")
    outcome = await client.apply(case.changed, force=True)
    if isinstance(outcome, Invalid | Forbidden) != (case.action is DiffAction.RECREATE):
        wrong.append(f"foreseen was {foreseen}, and the server says {type(outcome).__name__}")
    if isinstance(outcome, Success):
        paths = [field.path for field in foreseen.fields]
        wrong += _untold(paths, live, require_body(outcome))
    return wrong


def _untold(paths: list[str], before: JsonObject, after: JsonObject) -> Iterator[str]:
    really = [path for path in changes_between(before, after) if path not in FOLLOWING]
    for path in really:
        if not any(is_touched(path, other) for other in paths):
            yield f"`{path}` changed; foreseen were {paths}"
    for path in paths:
        if not any(is_touched(path, other) for other in really):
            yield f"`{path}` did not change; what did: {really}"
