"""Ignored differences: they cause no write, and a write can keep their live values."""

from __future__ import annotations

import msgspec
import pytest

from tests.conformance.argocd.stage import ArgoStage
from tests.support.builders import make_deployment
from tidegate.model.k8s.json_fields import get_mapping, get_value
from tidegate.model.units.ignore_differences import IgnoreDifference

REPLICAS = IgnoreDifference(kind="Deployment", group="apps", pointers=("/spec/replicas",))
BY_PATH = IgnoreDifference(kind="Deployment", group="apps", expressions=(".spec.replicas",))
BY_MANAGER = IgnoreDifference(kind="Deployment", group="apps", managers=("scaler",))
RULES = pytest.mark.parametrize("rule", [REPLICAS, BY_PATH, BY_MANAGER])
RESPECTS = "RespectIgnoreDifferences=true"
OLD, NEW = make_deployment(image="app:1"), make_deployment(image="app:2")


async def scaled(stage: ArgoStage, *options: str) -> None:
    """An object that is synced, and then scaled by another client."""
    await stage.sync(OLD, options=options)
    await stage.client.patch(await stage.ref(OLD), {"spec": {"replicas": 5}}, manager="scaler")
    await stage.record.mark()


async def list_results(stage: ArgoStage) -> tuple[object, bool]:
    """The replicas, and whether it is the new image."""
    body = await stage.body(OLD)
    return get_value(body, "spec", "replicas"), b"app:2" in msgspec.json.encode(
        get_mapping(body, "spec")
    )


@RULES
async def test_an_ignored_difference_causes_no_write(
    each_stage: ArgoStage, rule: IgnoreDifference
) -> None:
    stage = each_stage
    await scaled(stage)

    run = await stage.sync(OLD, ignores=(rule,))

    assert run.result == "passed"
    assert await stage.changes() == []
    assert await list_results(stage) == (5, False)


@RULES
async def test_an_ignored_field_is_written_together_with_other_changes(
    each_stage: ArgoStage, rule: IgnoreDifference
) -> None:
    stage = each_stage
    await scaled(stage)

    await stage.sync(NEW, ignores=(rule,))

    assert await list_results(stage) == (1, True)


@RULES
@pytest.mark.parametrize("how", ["ServerSideApply=true", "Replace=true"])
async def test_respect_ignore_differences_keeps_the_live_value_in_other_writes(
    each_stage: ArgoStage, rule: IgnoreDifference, how: str
) -> None:
    stage, options = each_stage, (how, RESPECTS)
    await scaled(stage, *options)

    await stage.sync(NEW, ignores=(rule,), options=options)
    left = await list_results(stage)
    await stage.record.mark()
    again = await stage.sync(NEW, ignores=(rule,), options=options)

    assert left == (5, True)
    assert again.result == "passed"
    assert await stage.changes() == []


async def test_a_new_object_is_created_with_its_ignored_fields(each_stage: ArgoStage) -> None:
    stage = each_stage

    await stage.sync(NEW, ignores=(REPLICAS,), options=(RESPECTS,))

    assert await list_results(stage) == (1, True)
