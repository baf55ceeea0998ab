"""Patterns of names, as Argo CD matches them."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.unit.model.invalid_values import invalid_value_error
from tidegate.globs import compile_glob, matches_path


@pytest.mark.parametrize(
    ("pattern", "name", "answer"),
    [
        ("*.yaml", "a.yaml", True),
        ("*.yaml", "sub/a.yaml", True),
        ("*.yaml", "a.yml", False),
        ("**/a.yaml", "x/y/a.yaml", True),
        ("sub/*", "sub/", True),
        ("?.yaml", "a.yaml", True),
        ("?.yaml", "ab.yaml", False),
        ("[abc].yaml", "b.yaml", True),
        ("[!abc].yaml", "b.yaml", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "dx", True),
        ("{a,b}.yaml", "b.yaml", True),
        ("{a,b}.yaml", "c.yaml", False),
        ("{*.yaml,{x,y}/*.json}", "y/deep/z.json", True),
        ("{*.yaml,}", "", True),
        (r"\*.yaml", "*.yaml", True),
        (r"\*.yaml", "a.yaml", False),
        (r"{a\,b,c}", "a,b", True),
        ("a.yaml", "aXyaml", False),
        ("", "a", False),
    ],
)
def test_a_pattern_matches_as_argo_matches(pattern: str, name: str, answer: bool) -> None:  # noqa: FBT001
    assert bool(compile_glob(pattern).fullmatch(name)) is answer


def test_an_invalid_pattern_is_refused(wording: RecordedWording) -> None:
    patterns = ["{a,b", "[abc", "{" + "{a,b}" * 12 + "}"]

    wording(f"`{text}`: {invalid_value_error(compile_glob, text)}" for text in patterns)


def test_a_malicious_pattern_takes_no_longer_than_others() -> None:
    pattern = compile_glob("*a" * 50 + "b")

    assert not pattern.fullmatch("a" * 2_000)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("a/*", "a/b", True),
        ("a/*", "a/b/c", False),
        ("a/**", "a/b/c", True),
        ("**a*b", "a/ab", True),
        ("*/x", "a/b/x", False),
        ("a?c", "a/c", False),
        ("[a-c]/{x,y}", "b/y", True),
        ("[!a-c]/x", "b/x", False),
        (r"a\*", "a*", True),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_a_star_of_a_path_does_not_reach_over_slashes(
    pattern: str, path: str, *, fits: bool
) -> None:
    assert matches_path(pattern, path) is fits


def test_a_pattern_of_a_path_takes_no_longer_for_any_path() -> None:
    assert not matches_path("*a" * 40 + "b", "a" * 2_000)


def test_half_a_bracket_is_no_pattern_of_a_path(wording: RecordedWording) -> None:
    wording(invalid_value_error(lambda pattern: matches_path(pattern, "a/b"), "a/["))
