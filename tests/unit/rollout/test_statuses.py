"""The patch that brings a status from what it says to what there is to say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.rollout.status_writer import merge_patch
from tidegate.sandbox.server.patches import apply_merge_patch

KEYS = st.sampled_from("abcd")
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.one_of(st.booleans(), st.integers(0, 3), st.sampled_from("xyz")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)
BODIES: st.SearchStrategy[JsonObject] = st.dictionaries(KEYS, VALUES, max_size=4)


@given(BODIES, BODIES)
def test_a_server_makes_one_of_the_other(before: JsonObject, after: JsonObject) -> None:
    assert apply_merge_patch(before, merge_patch(before, after)) == after


@given(BODIES)
def test_what_is_so_already_is_not_written(body: JsonObject) -> None:
    assert merge_patch(body, body) == {}
