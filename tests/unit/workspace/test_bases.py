"""What kustomize's remote references mean."""

from __future__ import annotations

import pytest

from tidegate.model.units.source import GitRef, GitRefKind, GitSource
from tidegate.workspace.rendering.sources import RemoteBase, parse_base


def at(text: str, kind: GitRefKind = GitRefKind.ANY) -> GitRef:
    return GitRef(kind, text)


@pytest.mark.parametrize(
    ("reference", "url", "path", "ref"),
    [
        ("https://github.com/org/repo", "https://github.com/org/repo", ".", GitRef()),
        ("https://github.com/org/repo/a/b", "https://github.com/org/repo", "a/b", GitRef()),
        ("https://host/x/y/z//a?ref=v1", "https://host/x/y/z", "a", at("v1")),
        ("https://host/x/y/z.git/a?version=v2", "https://host/x/y/z.git", "a", at("v2")),
        ("http://127.0.0.1:80/o/r.git//a/", "http://127.0.0.1:80/o/r.git", "a", GitRef()),
        ("github.com/org/repo/a?ref=main", "https://github.com/org/repo", "a", at("main")),
        ("github.com:org/repo.git", "https://github.com/org/repo.git", ".", GitRef()),
        ("git@host:org/repo.git/a", "git@host:org/repo.git", "a", GitRef()),
        ("git::https://host/org/repo", "https://host/org/repo", ".", GitRef()),
        ("ssh://git@host:22/org/repo//a", "ssh://git@host:22/org/repo", "a", GitRef()),
        ("https://u@dev/o/p/_git/r/a/b", "https://u@dev/o/p/_git/r", "a/b", GitRef()),
        ("file:///srv/repo", "file:///srv/repo", ".", GitRef()),
        ("https://host/o/r?ref=1.x", "https://host/o/r", ".", at("1.x", GitRefKind.BRANCH)),
    ],
)
def test_a_reference_is_a_repository_a_directory_and_a_ref(
    reference: str, url: str, path: str, ref: GitRef
) -> None:
    assert parse_base(reference) == RemoteBase(GitSource(url, ref=ref, submodules=True), path)


def test_submodules_can_be_left_out() -> None:
    base = parse_base("https://host/o/r?submodules=false")

    assert base is not None
    assert not base.source.submodules


@pytest.mark.parametrize("text", ["base", "../base", "https://host/only", "a.yaml", ""])
def test_other_texts_are_not_bases(text: str) -> None:
    assert parse_base(text) is None
