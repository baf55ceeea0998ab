"""What is applied of a manifest, and how its annotations change the wait for it."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.ordered_manifests import a_hook, a_nameless_hook, a_thing, no_budget
from tidegate.model.k8s.json_fields import get_list
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.manifest import Manifest, Phase
from tidegate.model.plans.plan import HOOK_FINALIZER, PlanItem
from tidegate.model.times import Ms
from tidegate.plan.build.items import make_item, with_hook_finalizer


def item_of(manifest: Manifest) -> PlanItem:
    return make_item(manifest, manifest.phase, no_budget)


def finalizers_of(item: PlanItem) -> list[Json]:
    body: JsonObject = msgspec.json.decode(item.body)
    return get_list(body, "metadata", "finalizers")


def test_an_ordinary_object_is_applied_as_it_is() -> None:
    thing = a_thing("ConfigMap", "a", data={"size": "1"})

    assert item_of(thing).body == thing.body


def test_blanks_in_the_text_do_not_make_it_another_one() -> None:
    thing = a_thing("ConfigMap", "a", data={"size": "1"})
    airy = msgspec.structs.replace(thing, body=msgspec.json.format(thing.body, indent=2))

    assert item_of(airy) == item_of(thing)


def test_a_hook_is_held_until_it_is_judged() -> None:
    assert finalizers_of(item_of(a_hook("Pod", "a", Phase.SYNC))) == [HOOK_FINALIZER]


def test_a_hook_of_the_end_is_not_held() -> None:
    item = make_item(a_hook("Pod", "a", Phase.SYNC), "predelete", no_budget, with_finalizer=False)

    assert finalizers_of(item) == []


def test_a_hook_keeps_its_own_finalizers() -> None:
    body: JsonObject = {"metadata": {"finalizers": ["mine"]}}

    held = with_hook_finalizer(body)

    assert get_list(held, "metadata", "finalizers") == ["mine", HOOK_FINALIZER]
    assert with_hook_finalizer(held) == held


def test_a_hook_has_another_digest_in_each_of_its_phases() -> None:
    digests = {item_of(a_hook("Pod", "a", phase)).digest for phase in Phase}

    assert len(digests) == len(Phase)


def test_an_ordinary_object_has_one_digest_in_every_phase() -> None:
    digests = {make_item(a_thing("Pod", "a"), phase, no_budget).digest for phase in Phase}

    assert len(digests) == 1


def test_a_secret_is_applied_with_one_map_of_values() -> None:
    secret = a_thing("Secret", "a", stringData={"key": "word"})

    body: JsonObject = msgspec.json.decode(item_of(secret).body)

    assert (body.get("stringData"), body["data"]) == (None, {"key": "d29yZA=="})


def test_null_is_no_text_in_a_secret() -> None:
    secret = a_thing("Secret", "a", stringData={"key": None}, data=None)

    body: JsonObject = msgspec.json.decode(item_of(secret).body)

    assert (body.get("stringData"), body["data"]) == (None, {"key": ""})


@pytest.mark.parametrize("odd", [0, 1, 1.5, True, False, [], [1, "a"], {}, {"a": "b"}])
def test_a_secret_with_a_value_that_is_no_text_is_applied_as_it_is(odd: Json) -> None:
    pairs: tuple[tuple[JsonObject, JsonObject], ...] = (
        ({"a": odd, "b": "c"}, {}),
        ({"a": "b"}, {"c": odd}),
    )
    for texts, values in pairs:
        secret = a_thing("Secret", "a", stringData=texts, data=values)

        assert msgspec.json.decode(item_of(secret).body) == msgspec.json.decode(secret.body)


@pytest.mark.parametrize("odd", ["", "a", 0, 1, True, False, [], ["a"]])
def test_a_secret_with_malformed_values_is_applied_unchanged(odd: Json) -> None:
    pairs: tuple[tuple[Json, Json], ...] = ((odd, {"a": "YQ=="}), ({"a": "b"}, odd))
    for texts, values in pairs:
        secret = a_thing("Secret", "a", stringData=texts, data=values)

        assert msgspec.json.decode(item_of(secret).body) == msgspec.json.decode(secret.body)


def test_only_line_breaks_are_removed_from_encoded_values() -> None:
    secret = a_thing("Secret", "a", data={"broken": "YWJj\r\nZGVm\n", "wrong": "YW Jj"})

    body: JsonObject = msgspec.json.decode(item_of(secret).body)

    assert body["data"] == {"broken": "YWJjZGVm", "wrong": "YW Jj"}


def test_a_hook_without_a_name_is_to_be_named() -> None:
    assert item_of(a_nameless_hook("seed-", Phase.SYNC)).generates_name
    assert not item_of(a_hook("Pod", "seed", Phase.SYNC)).generates_name


@pytest.mark.parametrize(("spec", "expires"), [({"ttlSecondsAfterFinished": 0}, True), ({}, False)])
def test_a_job_with_a_time_to_live_removes_itself(spec: JsonObject, expires: bool) -> None:  # noqa: FBT001
    assert item_of(a_thing("batch/v1 Job", "a", spec=spec)).expires is expires


@pytest.mark.parametrize("field", ["suspend", "paused"])
def test_git_itself_may_ask_for_a_pause(field: str) -> None:
    assert item_of(a_thing("batch/v1 CronJob", "a", spec={field: True})).is_suspended
    assert not item_of(a_thing("batch/v1 CronJob", "a", spec={field: "true"})).is_suspended


def test_the_timeout_of_an_object_is_its_budget() -> None:
    item = make_item(a_thing("Pod", "a"), "sync", lambda _: Ms(7))

    assert item.readiness_timeout == Ms(7)
