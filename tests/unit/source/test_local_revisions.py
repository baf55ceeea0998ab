"""The revision of a local directory: a commit, or a digest of its content."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tidegate.source import Cache, FetchOptions, read_local_revision


@pytest.fixture
def access(tmp_path: Path) -> FetchOptions:
    return FetchOptions(cache=Cache(tmp_path / "cache"))


def git(root: Path, *args: str) -> str:
    who = ("git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.org")
    completed = subprocess.run([*who, *args], check=True, capture_output=True, text=True)
    return completed.stdout.strip()


def a_checkout(root: Path) -> str:
    """A repository with one commit; which one that is."""
    (root / "apps").mkdir(parents=True)
    (root / "apps" / "web.yaml").write_text("a: 1\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    return git(root, "rev-parse", "HEAD")


async def test_a_clean_tree_has_the_revision_of_its_branch_and_commit(
    tmp_path: Path, access: FetchOptions
) -> None:
    root = tmp_path / "platform"
    commit = a_checkout(root)

    assert str(await read_local_revision(root, access)) == f"main@sha1:{commit}"
    git(root, "checkout", "-q", "--detach")
    assert str(await read_local_revision(root, access)) == f"sha1:{commit}"


@pytest.mark.parametrize("file", ["apps/web.yaml", "apps/new.yaml"])
async def test_a_changed_tree_has_a_revision_of_its_content(
    tmp_path: Path, access: FetchOptions, file: str
) -> None:
    root = tmp_path / "platform"
    a_checkout(root)
    (root / file).write_text("a: 2\n")

    first = await read_local_revision(root, access)

    assert str(first).startswith("working-tree@sha256:")
    assert await read_local_revision(root, access) == first
    (root / file).write_text("a: 3\n")
    assert await read_local_revision(root, access) != first


async def test_a_directory_without_a_repository_is_known_by_its_content(
    tmp_path: Path, access: FetchOptions
) -> None:
    root = tmp_path / "plain"
    root.mkdir()
    (root / "web.yaml").write_text("a: 1\n")

    assert str(await read_local_revision(root, access)).startswith("working-tree@sha256:")
