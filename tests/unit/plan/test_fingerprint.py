from __future__ import annotations

from tests.support.cluster_client import ClusterClient, require_body
from tests.support.live_objects import OURS, a_live, an_entry, applied
from tests.support.objects import SECRET, a_config_map, a_namespace, an_object
from tests.support.worlds import sandbox_world
from tidegate.model.k8s.objects import JsonObject
from tidegate.plan.diff.fingerprint import compute_fingerprint, content_digest
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.resilient import ResilientWorld


async def drifted(patch: JsonObject) -> tuple[str, str]:
    """The fingerprint of what we applied, before and after another client patched it."""
    dispatcher = Dispatcher(ResilientWorld(sandbox_world()))
    await ClusterClient(dispatcher).create(a_namespace("shop"))
    client = ClusterClient(dispatcher, namespace="shop")
    before = require_body(await client.apply(a_config_map(color="red"), manager=OURS))
    after = require_body(await client.patch(await client.ref(before), patch, manager="anna"))
    return compute_fingerprint(before, OURS), compute_fingerprint(after, OURS)


async def test_drift_of_our_field_changes_the_fingerprint() -> None:
    before, after = await drifted({"data": {"color": "blue"}})

    assert before != after


async def test_drift_of_other_fields_does_not_change_the_fingerprint() -> None:
    before, after = await drifted({"data": {"size": "m"}, "metadata": {"labels": {"a": "b"}}})

    assert before == after


def test_another_object_of_the_same_content_has_another_seal() -> None:
    body, entry = a_config_map(color="red"), an_entry(OURS, {"f:data": {"f:color": {}}})
    live, other = a_live(body, entry), a_live(body, entry, uid="2")

    assert compute_fingerprint(live, OURS) != compute_fingerprint(other, OURS)


def test_losing_a_field_breaks_the_seal_though_its_value_stays() -> None:
    body = a_config_map(color="red")
    ours = a_live(body, an_entry(OURS, {"f:data": {"f:color": {}}, "f:immutable": {}}))
    less = a_live(body, an_entry(OURS, {"f:data": {"f:color": {}}}))

    assert compute_fingerprint(ours, OURS) != compute_fingerprint(less, OURS)


def test_the_seal_of_a_secret_is_of_its_version_and_not_of_its_values() -> None:
    item = applied(an_object(SECRET, "s", data={"a": "eA=="}))
    other = applied(an_object(SECRET, "s", data={"a": "eQ=="}))
    newer = a_live(other, resourceVersion="8")

    assert compute_fingerprint(item, OURS) == compute_fingerprint(other, OURS)
    assert compute_fingerprint(other, OURS) != compute_fingerprint(newer, OURS)


def test_desired_objects_have_a_digest_and_secrets_have_none() -> None:
    assert content_digest(a_config_map(color="red")) == content_digest(a_config_map(color="red"))
    assert content_digest(a_config_map(color="red")) != content_digest(a_config_map(color="blue"))
    assert content_digest(an_object(SECRET, "s", data={"a": "eA=="})) == ""
