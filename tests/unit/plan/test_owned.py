from __future__ import annotations

import pytest

from tests.promises.objects import a_config_map, a_gate, a_service
from tests.unit.plan.lives import OURS, a_live, an_entry
from tidegate.model.objects import Json
from tidegate.plan.diff.owned import Fields, owned_part, unite
from tidegate.testing import Body

PORTS: list[Json] = [
    {"name": "web", "port": 80, "protocol": "TCP", "targetPort": 80},
    {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
]


def part_of(body: Body, fields: Body, *others: Body) -> Body:
    return owned_part(a_live(body, *others, an_entry(OURS, {**fields})), OURS)


def test_only_fields_that_are_ours_are_in_our_part() -> None:
    body = a_config_map(color="red", size="m")

    assert part_of(body, {"f:data": {".": {}, "f:color": {}}}) == {"data": {"color": "red"}}


def test_a_field_owned_as_a_whole_is_there_as_a_whole() -> None:
    body = a_service(selector={"app": "web", "tier": "front"})

    part = part_of(body, {"f:spec": {"f:selector": {}}})

    assert part == {"spec": {"selector": {"app": "web", "tier": "front"}}}


def test_items_are_found_by_their_keys_and_stay_in_their_order() -> None:
    body = a_service("web", *({**port} for port in PORTS if isinstance(port, dict)))
    keys: Body = {
        'k:{"port":53,"protocol":"UDP"}': {".": {}, "f:port": {}},
        'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}},
    }

    part = part_of(body, {"f:spec": {"f:ports": keys}})

    assert part == {"spec": {"ports": [{"name": "web", "port": 80}, {"port": 53}]}}


def test_values_of_a_set_and_numbered_items_are_found() -> None:
    body = a_gate("example.org", set=["x", "y"], atomic=["p", "q"])

    part = part_of(body, {"f:spec": {"f:set": {'v:"y"': {}}, "f:atomic": {"i:0": {}}}})

    assert part == {"spec": {"set": ["y"], "atomic": ["p"]}}


def test_what_others_put_into_what_we_applied_empty_is_theirs() -> None:
    theirs = an_entry("anna", {"f:data": {"f:color": {}}})

    assert part_of(a_config_map(color="red"), {"f:data": {}}, theirs) == {"data": {}}


@pytest.mark.parametrize(
    "entry",
    [
        an_entry("anna", {"f:data": {}}),
        an_entry(OURS, {"f:data": {}}, operation="Update"),
        an_entry(OURS, {"f:data": {}}, subresource="status"),
    ],
)
def test_what_we_did_not_apply_is_not_ours(entry: Body) -> None:
    assert owned_part(a_live(a_config_map(color="red"), entry), OURS) == {}


def test_a_field_that_is_not_there_is_not_in_our_part() -> None:
    assert part_of(a_config_map(), {"f:spec": {"f:paused": {}}}) == {}


def test_united_sets_have_all_that_was_in_either() -> None:
    one: Fields = {"f:data": {}, "f:spec": {"f:a": {}}}
    other: Fields = {"f:data": {"f:color": {}}, "f:spec": {".": {}, "f:b": {}}}

    assert unite(one, other) == {
        "f:data": {".": {}, "f:color": {}},
        "f:spec": {".": {}, "f:a": {}, "f:b": {}},
    }
    assert unite(one, {}) == one
    assert unite({}, other) == other
