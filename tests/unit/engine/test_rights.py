"""The rights to write and delete the objects of a plan, checked before the first write."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tests.support.builders import make_config_map, make_deployment, make_plan_from, make_unit_id
from tidegate.engine.cluster.access import REVIEW, AccessReview, review_access
from tidegate.engine.cluster.compare import ComparedItem
from tidegate.engine.cluster.live_cache import LiveCache
from tidegate.engine.messages import ComparedObject, CompareResult
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import (
    ClusterRef,
    Json,
    JsonObject,
    Kind,
    LiveObject,
    Ref,
    ServedKind,
)
from tidegate.model.plans.plan import ItemAction, PlannedUnit
from tidegate.model.units.policy import Policy
from tidegate.world.messages import Outcome, ServerError, Success
from tidegate.world.requests import Write

CONFIG_MAP, DEPLOYMENT = Kind("", "v1", "ConfigMap"), Kind("apps", "v1", "Deployment")
PLURALS = {CONFIG_MAP: "configmaps", DEPLOYMENT: "deployments", REVIEW: "selfsubjectaccessreviews"}
Answer = Callable[[str, str], bool]


def a_cluster(*kinds: Kind) -> LiveCache:
    served = {
        kind: ServedKind(kind, PLURALS[kind], kind != REVIEW, ("create",), ()) for kind in kinds
    }
    return LiveCache(served_kinds={"": served})


def compared(stand: CompareResult, *bodies: JsonObject) -> list[ComparedItem]:
    """Objects of a plan that all stand alike."""
    return [
        (step, item, ComparedObject(ClusterRef("", item.ref), stand))
        for step in make_plan_from(bodies).steps
        for batch in step.batches
        for item in batch
    ]


def leaving(stand: CompareResult, *names: str, asks: bool = False) -> list[ComparedItem]:
    """ConfigMaps that a plan deletes."""
    return [
        (
            step,
            msgspec.structs.replace(item, action=ItemAction.DELETE, requires_confirmation=asks),
            how,
        )
        for step, item, how in compared(stand, *map(make_config_map, names))
    ]


def requested_right(request: object) -> tuple[str, str]:
    assert isinstance(request, Write)
    assert request.dry_run
    spec: Json = msgspec.json.decode(request.body)
    place = ("spec", "resourceAttributes")
    whose, name = get_text(spec, *place, "resource"), get_text(spec, *place, "name")
    return get_text(spec, *place, "verb"), f"{whose}/{name}" if name else whose


def play(
    examined: list[ComparedItem],
    allows: Answer,
    *,
    cluster: LiveCache | None = None,
    consents: bool = False,
) -> tuple[AccessReview, list[tuple[str, str]]]:
    """Answer each question; what came of it, and what was asked."""
    unit = PlannedUnit(id=make_unit_id("shop"), policy=Policy(confirmed=consents))
    procedure = review_access(examined, cluster or ALL, {unit.id: unit})
    answers: tuple[Outcome, ...] | None = None
    request: list[tuple[str, str]] = []
    while True:
        try:
            calls = next(procedure) if answers is None else procedure.send(answers)
        except StopIteration as end:
            access: AccessReview = end.value
            return access, request
        assert isinstance(calls, tuple)
        questions = [requested_right(call.request) for call in calls]
        answers = tuple(a_verdict(allowed=allows(*question)) for question in questions)
        request += questions


def a_verdict(*, allowed: bool) -> Outcome:
    body = msgspec.json.encode({"status": {"allowed": allowed}})
    return Success(LiveObject(Ref(REVIEW, "", ""), "", 0, "", body))


ALL = a_cluster(CONFIG_MAP, DEPLOYMENT, REVIEW)


def test_permissions_are_reviewed_once_for_each_kind() -> None:
    bodies = [*map(make_config_map, "abc"), *map(make_deployment, "de")]
    examined = compared(CompareResult.ABSENT, *bodies)

    access, request = play(examined, lambda *_: True)

    assert access == ([], examined)
    assert sorted(request) == [
        ("create", "configmaps"),
        ("create", "deployments"),
        ("patch", "configmaps"),
        ("patch", "deployments"),
    ]


def test_a_missing_permission_is_reported_for_the_first_object() -> None:
    examined = compared(CompareResult.ABSENT, *map(make_config_map, "ab"), make_deployment("web"))

    neither, _ = play(examined, lambda verb, _: verb != "create")
    item, _ = play(examined, lambda _, what: not what.startswith("configmaps"))

    assert [fault[1].kind for fault in neither.failures] == [CONFIG_MAP, DEPLOYMENT]
    ((_, ref, trouble),) = item.failures
    assert ref.name == "a"
    assert (trouble.reason, trouble.final) == ("Forbidden", True)
    assert all(name in trouble.message for name in ("create", "patch", "`configmaps`", "`default`"))
    assert item.allowed == examined[2:]


def test_a_role_that_names_objects_is_enough_for_these() -> None:
    examined = [
        *compared(CompareResult.DIFFERENT, *map(make_config_map, "ab")),
        *compared(CompareResult.ABSENT, make_config_map("c")),
    ]
    named = {"configmaps/a", "configmaps/c"}

    access, request = play(examined, lambda verb, what: what in named or verb == "create")

    assert [ref.name for _, ref, _ in access.failures] == ["b"]
    assert [item.ref.name for _, item, _ in access.allowed] == ["a", "c"]
    assert request[2:] == [("patch", f"configmaps/{name}") for name in "abc"]


def test_a_changed_live_object_needs_only_patch() -> None:
    examined = compared(CompareResult.DIFFERENT, make_config_map())

    _, request = play(examined, lambda *_: True)

    assert request == [("patch", "configmaps")]


@pytest.mark.parametrize("cluster", [a_cluster(CONFIG_MAP), a_cluster(REVIEW)])
def test_without_access_reviews_no_permission_is_missing(cluster: LiveCache) -> None:
    examined = compared(CompareResult.ABSENT, make_config_map())

    access, request = play(examined, lambda *_: False, cluster=cluster)

    assert (access, request) == (([], examined), [])


def test_an_object_that_is_in_sync_needs_no_right() -> None:
    examined = compared(CompareResult.IN_SYNC, make_config_map())

    access, request = play(examined, lambda *_: False)

    assert (access, request) == (([], examined), [])


def test_a_cluster_that_does_not_answer_denies_nothing() -> None:
    examined = compared(CompareResult.DIFFERENT, make_config_map())
    procedure = review_access(
        examined, ALL, {make_unit_id("shop"): PlannedUnit(id=make_unit_id("shop"))}
    )
    next(procedure)

    named = procedure.send((ServerError(500, "InternalError", "busy"),))
    with pytest.raises(StopIteration) as end:
        procedure.send(())

    assert named == ()
    assert end.value.value == ([], examined)


def test_rights_to_delete_are_checked_and_do_not_hold_writes() -> None:
    coming = compared(CompareResult.DIFFERENT, make_config_map("new"))
    going = leaving(CompareResult.IN_SYNC, "old", "older")

    access, request = play([*going, *coming], lambda verb, _: verb != "delete")

    assert request[:2] == [("delete", "configmaps"), ("patch", "configmaps")]
    ((_, ref, trouble),) = access.failures
    assert ref.name == "old"
    assert all(name in trouble.message for name in ("delete", "`configmaps`", "`default`"))
    assert access.allowed == coming


def test_an_object_that_may_be_neither_created_nor_deleted_is_reported_for_both() -> None:
    examined = [
        *leaving(CompareResult.IN_SYNC, "old"),
        *compared(CompareResult.ABSENT, make_config_map("new")),
    ]

    access, _ = play(examined, lambda *_: False)

    assert [ref.name for _, ref, _ in access.failures] == ["old", "new"]


def test_a_recreated_object_needs_delete_and_create() -> None:
    _, request = play(compared(CompareResult.RECREATE, make_config_map()), lambda *_: True)

    assert request == [(verb, "configmaps") for verb in ("delete", "create", "patch")]


def test_a_missing_object_needs_no_delete_permission() -> None:
    examined = leaving(CompareResult.ABSENT, "old")

    access, request = play(examined, lambda *_: False)

    assert (access, request) == (([], examined), [])


@pytest.mark.parametrize("consents", [True, False])
def test_delete_permissions_are_reviewed_after_the_confirmation(*, consents: bool) -> None:
    examined = leaving(CompareResult.IN_SYNC, "precious", asks=True)

    _, request = play(examined, lambda *_: True, consents=consents)

    assert request == [("delete", "configmaps")] * consents
