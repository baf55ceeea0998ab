"""Commits of a scenario, which a simulated repository receives over time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec.structs import replace

from tidegate.errors import Location, ScenarioError
from tidegate.files import PathEscapeError, resolve_within
from tidegate.flows.pointing import LoadRequest, RenderFlags
from tidegate.model.commit import Commit
from tidegate.model.moment import Ms
from tidegate.model.rendering import NO_ROOT

GIT_DIRECTORY = ".git"


class ScenarioCommits(msgspec.Struct, frozen=True):
    """A repository and the commits of its scenario."""

    root: Path
    commits: Sequence[Commit]
    folder: Path
    """Directory in which the later revisions are built."""

    def request_at(self, request: LoadRequest, elapsed: Ms) -> LoadRequest | None:
        """Return the request for the newest revision, or None if there was no commit yet."""
        applied = [commit for commit in self.commits if commit.at <= elapsed]
        if not applied:
            return None
        tree = self.folder / str(len(applied)) / self.root.name
        if not tree.exists():
            self._build_tree(tree, applied)
        relative_path = Path(request.path_or_url).resolve().relative_to(self.root)
        return replace(
            request,
            path_or_url=str(tree / relative_path),
            render_flags=RenderFlags({**request.render_flags, "root": str(tree)}),
        )

    def _build_tree(self, tree: Path, applied: Sequence[Commit]) -> None:
        def ignore_git(folder: str, names: list[str]) -> list[str]:
            return [GIT_DIRECTORY] if GIT_DIRECTORY in names and Path(folder) == self.root else []

        shutil.copytree(self.root, tree, symlinks=True, ignore=ignore_git)
        if (self.root / GIT_DIRECTORY).exists():
            (tree / GIT_DIRECTORY).symlink_to(self.root / GIT_DIRECTORY)
        for commit in applied:
            if commit.files_directory:
                shutil.copytree(commit.files_directory, tree, symlinks=True, dirs_exist_ok=True)
            for name in commit.removed_paths:
                _remove(tree, name, commit)


def _remove(tree: Path, name: str, commit: Commit) -> None:
    try:
        path = resolve_within(tree / name, tree)
    except PathEscapeError:
        path = tree
    if path == tree or not path.exists():
        problem, hint = f"there is no `{name}` to remove", "paths begin at the repository's root"
        raise ScenarioError(
            "scenario.commit", problem, location=Location(commit.scenario_file), hint=hint
        )
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


@contextmanager
def open_commits(root: Path, commits: Sequence[Commit]) -> Iterator[ScenarioCommits | None]:
    """Open the commits of a scenario; None if there are none. Raises ScenarioError."""
    if not commits:
        yield None
        return
    for commit in commits:
        if root == NO_ROOT:
            problem, hint = "commits need a repository that is here", "point at a directory"
            raise ScenarioError(
                "scenario.commit", problem, location=Location(commit.scenario_file), hint=hint
            )
        if commit.files_directory and not Path(commit.files_directory).is_dir():
            problem = f"`{commit.files_directory}` is not a directory"
            hint = "it is looked for beside the scenario"
            raise ScenarioError(
                "scenario.commit", problem, location=Location(commit.scenario_file), hint=hint
            )
    with TemporaryDirectory(prefix="tidegate-commits-") as folder:
        yield ScenarioCommits(root, commits, Path(folder))
