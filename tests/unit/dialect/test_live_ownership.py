"""The unit of a live object, and its options for deletion."""

from __future__ import annotations

import pytest

from tests.unit.dialect.documents import HOOK, OPTIONS, SHOP, WAVE, noting
from tidegate.dialect.argo.options import with_sync_options
from tidegate.dialect.ownership.live import LiveOwnership, other_owner, read_live_ownership
from tidegate.model.k8s.objects import Json
from tidegate.model.plans.plan import PlannedUnit
from tidegate.model.units.policy import ObjectOptions, Permission, Policy

UNIT = "tidegate.dev/unit"
WEB = PlannedUnit(id=SHOP)


def test_an_object_of_the_unit_has_a_wave_and_options() -> None:
    body = noting({UNIT: "shop/web", WAVE: "3", OPTIONS: "Prune=false"})

    ownership = read_live_ownership(body, WEB)

    assert ownership == LiveOwnership(3, ObjectOptions(prune=Permission.NO), is_hook=False)


def test_the_options_of_the_unit_count_for_live_objects() -> None:
    policy = with_sync_options(Policy(), ("PruneLast=true",))

    ownership = read_live_ownership(noting({UNIT: "shop/web"}), PlannedUnit(id=SHOP, policy=policy))

    assert ownership is not None
    assert ownership.options.prune_last


def test_a_live_hook_is_recognized() -> None:
    ownership = read_live_ownership(noting({UNIT: "shop/web", HOOK: "PreSync"}), WEB)

    assert ownership is not None
    assert ownership.is_hook


@pytest.mark.parametrize(
    ("hook", "outlives"),
    [("PostDelete", True), ("PostDelete,PreSync", False), ("PreDelete", False), ("Sync", False)],
)
def test_only_post_delete_hooks_are_kept_after_their_unit(hook: str, *, outlives: bool) -> None:
    ownership = read_live_ownership(noting({UNIT: "shop/web", HOOK: hook}), WEB)

    assert ownership is not None
    assert ownership.is_post_delete is outlives


def test_an_object_without_tracking_metadata_of_the_unit_is_not_deleted() -> None:
    assert read_live_ownership(noting({}), WEB) is None
    assert read_live_ownership(noting({UNIT: "shop/db"}), WEB) is None


def test_an_object_with_an_owner_is_not_deleted_by_the_unit() -> None:
    owners: list[Json] = [{"kind": "ReplicaSet", "name": "web-1"}]
    metadata: Json = {"annotations": {UNIT: "shop/web"}, "ownerReferences": owners}

    assert read_live_ownership({"metadata": metadata}, WEB) is None


def test_an_object_of_another_unit_is_shared_with_it() -> None:
    assert "shop/db" in other_owner(noting({UNIT: "shop/db"}), WEB)


def test_an_object_of_the_unit_itself_or_without_a_unit_is_not_shared() -> None:
    assert not other_owner(noting({UNIT: "shop/web"}), WEB)
    assert not other_owner(noting({}), WEB)
