"""Anchors, aliases and limits: what a hostile or a clever file cannot do."""

from __future__ import annotations

import pytest

from tidegate.documents import read_documents
from tidegate.documents.build import DEPTH_LIMIT
from tidegate.errors import DocumentError, Location


def refusal(source: str) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        read_documents(source, "some.yaml")
    return caught.value


def a_bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        aliases = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} [{aliases}]")
    return "\n".join(lines) + "\n"


def test_aliases_that_multiply_are_refused_where_they_explode() -> None:
    error = refusal(a_bomb(9))

    assert error.code == "documents.alias.excess"
    assert error.location is not None
    assert error.location.line > 1


def test_a_few_aliases_of_large_values_are_read() -> None:
    (document,) = read_documents(a_bomb(3), "some.yaml")

    assert len(str(document.body["a2"])) > 1000


def test_an_aliased_value_is_shared_and_not_copied() -> None:
    (document,) = read_documents("a: &x {b: [1]}\nc: *x\n", "some.yaml")

    assert document.body["c"] is document.body["a"]


def test_an_unknown_alias_is_refused_with_its_place() -> None:
    error = refusal("a: 1\nb: *nobody\n")

    assert (error.code, error.location) == ("documents.alias.unknown", Location("some.yaml", 2, 4))


def test_an_anchor_does_not_reach_into_the_next_document() -> None:
    assert refusal("a: &x 1\n---\nb: *x\n").code == "documents.alias.unknown"


@pytest.mark.parametrize("source", ["a: &x [*x]\n", "a: &x {b: *x}\n", "a: &x {<<: *x}\n"])
def test_an_anchor_that_contains_itself_is_refused(source: str) -> None:
    assert refusal(source).code == "documents.alias.loop"


def test_values_may_be_nested_to_the_limit() -> None:
    inner = DEPTH_LIMIT - 1

    assert len(read_documents("a: " + "[" * inner + "]" * inner, "some.yaml")) == 1


@pytest.mark.parametrize(
    "source",
    [
        "a: " + "[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT,
        "a: " + "{a: " * 100_000,
        "a:\n" + "".join(" " * depth + "a:\n" for depth in range(1, 400)),
        '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
        "- " * 20_000,
    ],
)
def test_values_nested_deeper_than_the_limit_are_refused(source: str) -> None:
    assert refusal(source).code == "documents.depth"


def test_aliases_do_not_help_to_nest_deeper() -> None:
    lines = ["a0: &a0 " + "[" * 100 + "]" * 100]
    lines += [f"a{n}: &a{n} " + "[" * 100 + f"*a{n - 1}" + "]" * 100 for n in range(1, 4)]

    error = refusal("\n".join(lines))

    assert (error.code, error.location and error.location.line) == ("documents.depth", 3)


def test_a_shallow_anchor_does_not_hide_a_deep_neighbour() -> None:
    deep = "[" * 200 + "]" * 200

    error = refusal(f"a: &a [{deep}, &b [1]]\nb: {'[' * 100}*a{']' * 100}\n")

    assert (error.code, error.location and error.location.line) == ("documents.depth", 2)


def test_an_anchor_can_precede_a_key() -> None:
    assert read_documents("&k a: 1\nb: *k\n", "some.yaml")[0].body == {"a": 1, "b": "a"}


@pytest.mark.parametrize(
    ("source", "code", "column"),
    [
        ("~: 1\n", "documents.key", 1),
        ("a: {null: 1}\n", "documents.key", 5),
        ("a: {18446744073709551615: 1}\n", "documents.key", 5),
        ("a: {[b]: 1}\n", "documents.key", 5),
        ("? {b: 1}\n: 1\n", "documents.key", 3),
        ("a: .inf\n", "documents.number", 4),
        ("a: [1, .nan]\n", "documents.number", 8),
        ("a: !!int x\n", "documents.tag", 4),
        ("a: !!binary x\n", "documents.tag", 4),
        ("<<: 1\n", "documents.merge", 5),
    ],
)
def test_input_that_kubernetes_rejects_is_rejected_with_its_location(
    source: str, code: str, column: int
) -> None:
    error = refusal(source)

    assert (error.code, error.location) == (code, Location("some.yaml", 1, column))
