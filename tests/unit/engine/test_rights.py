"""Whether we may write and delete what a plan says, asked before the first write."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tidegate.engine.reach.checking import Examined
from tidegate.engine.reach.outlook import Outlook
from tidegate.engine.reach.rights import REVIEW, Leave, ask_leave
from tidegate.engine.vocabulary import Stand, Standing
from tidegate.model.objects import Json, Kind, Live, Ref, Served, Spot
from tidegate.model.plan import Deed, PlannedUnit
from tidegate.model.policy import Policy
from tidegate.model.reading import text
from tidegate.testing import Body
from tidegate.testing.builders import a_config_map, a_deployment, a_name, a_plan
from tidegate.world.calls import Write
from tidegate.world.facts import Done, Failed, Outcome

CONFIG_MAP, DEPLOYMENT = Kind("", "v1", "ConfigMap"), Kind("apps", "v1", "Deployment")
PLURALS = {CONFIG_MAP: "configmaps", DEPLOYMENT: "deployments", REVIEW: "selfsubjectaccessreviews"}
Answer = Callable[[str, str], bool]


def a_cluster(*kinds: Kind) -> Outlook:
    served = {kind: Served(kind, PLURALS[kind], kind != REVIEW, ("create",), ()) for kind in kinds}
    return Outlook(served={"": served})


def standing(stand: Stand, *bodies: Body) -> list[Examined]:
    """Objects of a plan that all stand alike."""
    return [
        (step, item, Standing(Spot("", item.ref), stand))
        for step in a_plan(bodies).steps
        for batch in step.batches
        for item in batch
    ]


def leaving(stand: Stand, *names: str, asks: bool = False) -> list[Examined]:
    """ConfigMaps that a plan deletes."""
    return [
        (step, msgspec.structs.replace(item, deed=Deed.DELETE, asks=asks), how)
        for step, item, how in standing(stand, *map(a_config_map, names))
    ]


def asked_of(request: object) -> tuple[str, str]:
    assert isinstance(request, Write)
    assert request.dry_run
    spec: Json = msgspec.json.decode(request.body)
    place = ("spec", "resourceAttributes")
    whose, name = text(spec, *place, "resource"), text(spec, *place, "name")
    return text(spec, *place, "verb"), f"{whose}/{name}" if name else whose


def play(
    examined: list[Examined],
    allows: Answer,
    *,
    cluster: Outlook | None = None,
    consents: bool = False,
) -> tuple[Leave, list[tuple[str, str]]]:
    """Answer each question; what came of it, and what was asked."""
    unit = PlannedUnit(id=a_name("shop"), policy=Policy(consents=consents))
    errand = ask_leave(examined, cluster or ALL, {unit.id: unit})
    answers: tuple[Outcome, ...] | None = None
    asked: list[tuple[str, str]] = []
    while True:
        try:
            wishes = next(errand) if answers is None else errand.send(answers)
        except StopIteration as end:
            leave: Leave = end.value
            return leave, asked
        assert isinstance(wishes, tuple)
        questions = [asked_of(wish.request) for wish in wishes]
        answers = tuple(a_verdict(allowed=allows(*question)) for question in questions)
        asked += questions


def a_verdict(*, allowed: bool) -> Outcome:
    body = msgspec.json.encode({"status": {"allowed": allowed}})
    return Done(Live(Ref(REVIEW, "", ""), "", 0, "", body))


ALL = a_cluster(CONFIG_MAP, DEPLOYMENT, REVIEW)


def test_each_kind_is_asked_about_once_however_many_objects_there_are() -> None:
    bodies = [*map(a_config_map, "abc"), *map(a_deployment, "de")]
    examined = standing(Stand.ABSENT, *bodies)

    leave, asked = play(examined, lambda *_: True)

    assert leave == ([], examined)
    assert sorted(asked) == [
        ("create", "configmaps"),
        ("create", "deployments"),
        ("patch", "configmaps"),
        ("patch", "deployments"),
    ]


def test_a_missing_right_is_told_of_the_first_object_and_bars_the_others() -> None:
    examined = standing(Stand.ABSENT, *map(a_config_map, "ab"), a_deployment("web"))

    neither, _ = play(examined, lambda verb, _: verb != "create")
    one, _ = play(examined, lambda _, what: not what.startswith("configmaps"))

    assert [fault[1].kind for fault in neither.faults] == [CONFIG_MAP, DEPLOYMENT]
    ((_, ref, trouble),) = one.faults
    assert ref.name == "a"
    assert (trouble.reason, trouble.final) == ("Forbidden", True)
    assert "this user may not create or patch `configmaps` in namespace" in trouble.sentence
    assert one.allowed == examined[2:]


def test_a_role_that_names_objects_is_enough_for_these() -> None:
    examined = [
        *standing(Stand.DIFFERENT, *map(a_config_map, "ab")),
        *standing(Stand.ABSENT, a_config_map("c")),
    ]
    named = {"configmaps/a", "configmaps/c"}

    leave, asked = play(examined, lambda verb, what: what in named or verb == "create")

    assert [ref.name for _, ref, _ in leave.faults] == ["b"]
    assert [item.ref.name for _, item, _ in leave.allowed] == ["a", "c"]
    assert asked[2:] == [("patch", f"configmaps/{name}") for name in "abc"]


def test_what_lives_and_differs_is_only_patched() -> None:
    examined = standing(Stand.DIFFERENT, a_config_map())

    _, asked = play(examined, lambda *_: True)

    assert asked == [("patch", "configmaps")]


@pytest.mark.parametrize("cluster", [a_cluster(CONFIG_MAP), a_cluster(REVIEW)])
def test_where_nobody_can_be_asked_nothing_is_missing(cluster: Outlook) -> None:
    examined = standing(Stand.ABSENT, a_config_map())

    leave, asked = play(examined, lambda *_: False, cluster=cluster)

    assert (leave, asked) == (([], examined), [])


def test_what_is_as_wanted_needs_no_right() -> None:
    examined = standing(Stand.SAME, a_config_map())

    leave, asked = play(examined, lambda *_: False)

    assert (leave, asked) == (([], examined), [])


def test_a_cluster_that_does_not_answer_denies_nothing() -> None:
    examined = standing(Stand.DIFFERENT, a_config_map())
    errand = ask_leave(examined, ALL, {a_name("shop"): PlannedUnit(id=a_name("shop"))})
    next(errand)

    named = errand.send((Failed(500, "InternalError", "busy"),))
    with pytest.raises(StopIteration) as end:
        errand.send(())

    assert named == ()
    assert end.value.value == ([], examined)


def test_what_goes_is_asked_about_and_does_not_bar_what_comes() -> None:
    coming = standing(Stand.DIFFERENT, a_config_map("new"))
    going = leaving(Stand.SAME, "old", "older")

    leave, asked = play([*going, *coming], lambda verb, _: verb != "delete")

    assert asked[:2] == [("delete", "configmaps"), ("patch", "configmaps")]
    ((_, ref, trouble),) = leave.faults
    assert ref.name == "old"
    assert "this user may not delete `configmaps` in namespace" in trouble.sentence
    assert leave.allowed == coming


def test_what_may_be_neither_made_nor_deleted_is_told_of_both() -> None:
    examined = [*leaving(Stand.SAME, "old"), *standing(Stand.ABSENT, a_config_map("new"))]

    leave, _ = play(examined, lambda *_: False)

    assert [ref.name for _, ref, _ in leave.faults] == ["old", "new"]


def test_what_makes_room_for_itself_is_deleted_and_made_again() -> None:
    _, asked = play(standing(Stand.OBSOLETE, a_config_map()), lambda *_: True)

    assert asked == [(verb, "configmaps") for verb in ("delete", "create", "patch")]


def test_what_is_gone_already_needs_no_right() -> None:
    examined = leaving(Stand.ABSENT, "old")

    leave, asked = play(examined, lambda *_: False)

    assert (leave, asked) == (([], examined), [])


@pytest.mark.parametrize("consents", [True, False])
def test_what_waits_for_consent_is_asked_about_when_it_is_given(*, consents: bool) -> None:
    examined = leaving(Stand.SAME, "precious", asks=True)

    _, asked = play(examined, lambda *_: True, consents=consents)

    assert asked == [("delete", "configmaps")] * consents
