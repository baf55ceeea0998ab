"""Paths in jq's language against jq itself: what is ignored is what jq's `del` takes away."""

from __future__ import annotations

import jq  # type: ignore[import-not-found]
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.model.ignoring import Ignored
from tidegate.model.objects import Json
from tidegate.plan.diff.ignoring import keep_living
from tidegate.plan.diff.owned import Body

EXAMPLES = 300
NAMES = ("a", "b", "c.d")
WORDS = ("", "x", "xy", "yx")
SCALARS = st.one_of(st.booleans(), st.integers(-2, 2), st.just(1.5), st.sampled_from(WORDS))


def _holding(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.one_of(st.lists(inner, max_size=3), _mappings(inner))


def _mappings(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[dict[str, Json]]:
    return st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)


VALUES: st.SearchStrategy[Json] = st.recursive(SCALARS, _holding, max_leaves=8)
"""A field that is null is left out: Kubernetes takes both for the same, and jq does not."""
BODIES = _mappings(VALUES)


def _joined(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map("".join)


LOOSE = st.sampled_from(["", "", "?"])
FIELD = _joined(st.sampled_from([".a", ".b", '."c.d"', '.["a"]']), LOOSE)
INDEX = _joined(st.sampled_from(['["b"]', "[0]", "[1]", "[-1]", "[-7]"]), LOOSE)
EACH = _joined(st.just("[]"), LOOSE)
CHAIN = _joined(FIELD, st.lists(st.one_of(FIELD, INDEX), max_size=2).map("".join))
PLACES = _joined(FIELD, st.lists(st.one_of(FIELD, INDEX, EACH), max_size=3).map("".join))
LITERALS = st.sampled_from(["null", "true", "false", "0", "1", "1.0", "1.5", '"x"', '""'])
VALUE = st.one_of(CHAIN, st.just("."), LITERALS)
CLAIM = st.one_of(
    CHAIN,
    _joined(VALUE, st.sampled_from([" == ", "!="]), VALUE),
    _joined(CHAIN, st.sampled_from([' | startswith("x")', '|endswith("y")'])),
)


def _either(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    inner = inner.map("({})".format)
    return _joined(inner, st.sampled_from([" and ", " or "]), inner)


SELECT = st.recursive(CLAIM, _either, max_leaves=3).map("select({})".format)
TAILS = st.lists(st.one_of(SELECT, PLACES, st.just(".[]?")), max_size=2)
EXPRESSIONS = st.builds(lambda head, tail: " | ".join([head, *tail]), PLACES, TAILS)


def left_by_jq(expression: str, body: Body) -> Json:
    """What is left of a body; all of it where jq ends with an error."""
    try:
        left: Json = jq.compile(f"del({expression})").input_value(body).first()
    except ValueError:
        return body
    return left


@given(expression=EXPRESSIONS, body=BODIES)
@example(expression=".a[] | select(.b)", body={"a": [{"b": 0}, {"b": False}]})
@example(expression=".a[] | select(.a == .b)", body={"a": [{"a": [True], "b": [1]}]})
@example(expression=".a[] | select(.a[0]? == .b.a)", body={"a": [{"a": "x", "b": "y"}]})
@example(expression=".a[] | select(.b.a == .a[0]?)", body={"a": [{"a": "x", "b": "y"}, {}]})
@settings(max_examples=EXAMPLES, deadline=None)
def test_what_is_ignored_is_what_jq_deletes(expression: str, body: Body) -> None:
    ours = keep_living(body, {}, (Ignored(kind="*", expressions=(expression,)),))

    theirs = left_by_jq(expression, body)

    assert ours == theirs
