"""Which references kustomize would fetch from the network."""

from __future__ import annotations

import pytest

from tidegate.render.kustomize.kustomization import is_remote, is_remote_directory


@pytest.mark.parametrize(
    "text",
    [
        "https://example.com/base.yaml",
        "HTTPS://example.com/base.yaml",
        "http://example.com/a/b?ref=v1",
        "https://github.com/org/repo//path?ref=v1.0",
        "github.com/org/repo/path",
        "GitHub.com/org/repo",
        "github.com:org/repo.git",
        "git@github.com:org/repo.git/path",
        "git::https://example.com/org/repo",
        "ssh://git@example.com/org/repo.git",
        "ssh://git@example.com:22/org/repo",
        "user@host:path/to/repo.git",
        "org-1@host:path/repo",
        "https://user@dev.example/org/project/_git/repo/path",
        "file:///home/ann/repo",
        "FILE://etc",
    ],
)
def test_a_url_is_remote(text: str) -> None:
    assert is_remote(text)


@pytest.mark.parametrize(
    "text",
    [
        "base",
        "../base",
        "./github.com/org/repo",
        "web.yaml",
        "github.com",
        "github.com/org",
        "gitlab.com/org/repo",
        "git@host",
        "1user@host:repo/x",
        "https",
        "http/file.yaml",
        "ssh:/a/b",
        "a?ref=b",
    ],
)
def test_a_path_is_not_remote(text: str) -> None:
    assert not is_remote(text)


def test_a_web_address_is_a_file_before_it_is_a_repository() -> None:
    assert not is_remote_directory("https://example.com/base.yaml")
    assert is_remote_directory("https://example.com/org/repo")
