from __future__ import annotations

from tidegate.plan.diff.owned_fields import Fields, merge_fields


def test_united_sets_have_all_that_was_in_either() -> None:
    item: Fields = {"f:data": {}, "f:spec": {"f:a": {}}}
    other: Fields = {"f:data": {"f:color": {}}, "f:spec": {".": {}, "f:b": {}}}

    assert merge_fields(item, other) == {
        "f:data": {".": {}, "f:color": {}},
        "f:spec": {".": {}, "f:a": {}, "f:b": {}},
    }
    assert merge_fields(item, {}) == item
    assert merge_fields({}, other) == other
