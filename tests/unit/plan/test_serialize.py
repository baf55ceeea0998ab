"""Plans as documents: what is in them, what is not, and what is refused."""

from __future__ import annotations

import re

import msgspec
import pytest

from tests.support.ordered_manifests import (
    SHOP,
    a_hook,
    a_nameless_hook,
    a_thing,
    a_unit_of,
    add_prunes,
    no_budget,
    plan_of,
    stale,
)
from tests.support.plan_key import KEY
from tidegate.errors import PlanError
from tidegate.model.k8s.objects import JsonObject, Ref
from tidegate.model.plans.manifest import Phase
from tidegate.model.plans.plan import PLAN_VERSION, Plan, public_digest
from tidegate.plan.changes.delete_unit import build_deletion
from tidegate.plan.serialize import from_json, to_json

SECRET = a_thing("Secret", "login", data={"password": "aHVudGVyMg=="})


def bodies_of(plan: Plan) -> dict[Ref, bytes]:
    items = (item for step in plan.steps for batch in step.batches for item in batch)
    return {item.ref: item.body for item in items}


def read_back(plan: Plan, bodies: dict[Ref, bytes] | None = None) -> Plan:
    known = bodies_of(plan) if bodies is None else bodies
    return from_json(to_json(plan, KEY), name="plan.json", bodies=known, key=KEY)


def refusal(text: bytes, bodies: dict[Ref, bytes] | None = None) -> PlanError:
    with pytest.raises(PlanError) as raised:
        from_json(text, name="plan.json", bodies=bodies or {}, key=KEY)
    assert str(raised.value.location) == "plan.json"
    return raised.value


def changed(plan: Plan, path: str, value: object) -> bytes:
    """The document with another value at a path."""
    document: JsonObject = msgspec.json.decode(to_json(plan, KEY))
    place: object = document
    *steps, last = path.split(".")
    for step in steps:
        place = place[int(step)] if isinstance(place, list) else _inner(place, step)
    assert isinstance(place, dict)
    place[last] = value
    return msgspec.json.encode(document)


def _inner(place: object, name: str) -> object:
    assert isinstance(place, dict)
    return place[name]


def a_whole_plan() -> Plan:
    return plan_of(
        a_unit_of(a_thing("ConfigMap", "a", data={"é": "ü\n"}), SECRET, name="db"),
        a_unit_of(
            a_hook("batch/v1 Job", "migrate", Phase.PRE_SYNC),
            a_hook("Secret", "seed", Phase.PRE_SYNC),
            a_nameless_hook("check-", Phase.POST_SYNC),
            a_thing("Pod", "b", spec={"size": 1.5, "big": 2**53, "none": None}),
            after=("db",),
        ),
    )


def test_a_plan_is_read_back_as_it_was() -> None:
    plan = a_whole_plan()

    assert read_back(plan) == plan


def test_no_value_of_a_secret_is_in_the_document() -> None:
    text = to_json(a_whole_plan(), KEY)

    assert b"aHVudGVyMg" not in text
    assert b"login" in text


def test_no_digest_of_a_secret_alone_is_in_the_document() -> None:
    plan = plan_of(SECRET)
    (item,) = plan.steps[0].batches[0]

    assert item.digest.encode() not in to_json(plan, KEY)


def test_equal_secrets_have_different_digests_in_different_plans() -> None:
    item, other = plan_of(SECRET), plan_of(SECRET, a_thing("ConfigMap", "a"))

    seals = {_seal_of(plan) for plan in (item, other)}

    assert len(seals) == 2


def _seal_of(plan: Plan) -> str:
    text = to_json(plan, KEY).decode()
    return text.partition('"sealed": "')[2].partition('"')[0]


def digests_in(text: bytes) -> set[bytes]:
    return {*re.findall(rb'"([0-9a-f]{32})"', text)}


@pytest.mark.parametrize("hidden", [False, True], ids=["Secret", "hidden field"])
def test_a_short_secret_cannot_be_guessed_without_the_key(*, hidden: bool) -> None:
    """Make the plan with each guess of an unknown value, and compare digests."""

    def guess(value: str, key: bytes) -> bytes:
        thing = a_thing("Secret", "login", data={"pin": value})
        if hidden:
            thing = a_thing("ConfigMap", "login", data={"pin": value})
            thing = msgspec.structs.replace(thing, hidden_fields=(("data", "pin"),))
        return to_json(plan_of(thing, a_thing("ConfigMap", "a")), key)

    digests = digests_in(guess("MQ==", KEY))
    right, wrong = (digests_in(guess(name, b"of somebody else")) for name in ("MQ==", "Mg=="))

    assert b"MQ==" not in guess("MQ==", KEY)
    assert digests & right == digests & wrong, "the right guess fits no better than the wrong one"


def test_hidden_fields_of_any_kind_are_read_back() -> None:
    thing = a_thing("ConfigMap", "login", data={"pin": "MQ=="})
    plan = plan_of(msgspec.structs.replace(thing, hidden_fields=(("data", "pin"),)))

    assert read_back(plan) == plan


def test_without_a_key_a_plan_with_secrets_can_be_read_and_not_run() -> None:
    plan = plan_of(SECRET)
    text = to_json(plan, None)

    assert text == to_json(plan, None)
    assert digests_in(text) & digests_in(to_json(plan, KEY)) == {public_digest(plan).encode()}
    assert refusal(text, bodies_of(plan)).code == "plan.secret"


def test_a_plan_of_another_key_is_refused() -> None:
    plan = plan_of(SECRET)
    with pytest.raises(PlanError) as raised:
        from_json(to_json(plan, KEY), name="a", bodies=bodies_of(plan), key=b"another")

    assert raised.value.code == "plan.secret"


def test_a_plan_with_deletions_alone_is_read_back_as_it_was() -> None:
    candidates = [stale("Secret", "login"), stale("Pod", "a", 1)]
    plan = build_deletion(a_unit_of(), candidates, readiness_timeout=no_budget)

    assert read_back(plan, {}) == plan


def test_a_secret_that_is_another_one_now_is_refused() -> None:
    plan = plan_of(SECRET)
    other = {
        ref: body.replace(b"aHVudGVyMg", b"aHVudGVyMw") for ref, body in bodies_of(plan).items()
    }

    error = refusal(to_json(plan, KEY), other)

    assert error.code == "plan.secret"
    assert "Secret default/login" in error.problem


def test_a_secret_that_is_not_rendered_now_is_refused() -> None:
    assert refusal(to_json(plan_of(SECRET), KEY)).code == "plan.secret"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("steps.0.batches.0.0.object.kind", "Secret"),
        ("steps.0.batches.0.0.item.action", "delete"),
        ("steps.0.batches.0.0.item.hook", []),
        ("steps.0.batches.0.0.item.options", {"force": True}),
        ("steps.0.batches.0.0.item.ref.name", "other"),
        ("steps.0.step.is_last", False),
        ("steps.0.step.only_on_failure", True),
        ("steps.0.step.wave", 7),
        ("units.0.policy.manager", "other-client"),
        ("units.0.cluster", "prod"),
        ("edges", []),
        ("digest", "0"),
    ],
)
def test_a_plan_that_was_changed_is_refused(path: str, value: object) -> None:
    plan = plan_of(
        a_unit_of(a_thing("ConfigMap", "a"), name="db"),
        a_unit_of(a_thing("Pod", "b"), after=("db",)),
    )

    assert refusal(changed(plan, path, value)).code == "plan.changed"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"not json",
        b"\xff\xfe",
        b'{"kind": "\xff"}',
        b'{"kind": "List", "version": 2}',
        b'{"kind": "TidegatePlan", "version": 2}',
        b'{"kind": "TidegatePlan", "version": "2"}',
        b'{"a": ' + b"[" * 100_000,
    ],
    ids=lambda text: str(text[:40]),
)
def test_an_invalid_plan_is_rejected_with_a_short_message(text: bytes) -> None:
    error = refusal(text)

    assert error.code == "plan.document"
    assert len(error.problem) < 300


def test_a_plan_of_another_version_is_refused() -> None:
    error = refusal(changed(a_whole_plan(), "version", PLAN_VERSION + 1))

    assert error.code == "plan.version"


def test_a_plan_of_another_version_need_not_have_our_form() -> None:
    text = b'{"kind": "TidegatePlan", "version": 9, "waves": []}'

    assert refusal(text).code == "plan.version"


def test_live_objects_are_not_part_of_a_saved_plan() -> None:
    plan = plan_of(a_thing("ConfigMap", "a"))
    completed = add_prunes(plan, SHOP, [stale("Pod", "old")])

    assert refusal(to_json(completed, KEY)).code == "plan.changed"
