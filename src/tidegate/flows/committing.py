"""What comes into a repository while it is simulated: whoever tries again with it finds it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec.structs import replace

from tidegate.errors import Place, ScenarioError
from tidegate.files import StrayPathError, follow
from tidegate.flows.pointing import Pointed, Words
from tidegate.model.commit import Commit
from tidegate.model.moment import Ms
from tidegate.model.rendering import NOWHERE

GIT = ".git"


class Commits(msgspec.Struct, frozen=True):
    """A repository and what comes into it. What it is by then is put together in a `folder`."""

    root: Path
    commits: Sequence[Commit]
    folder: Path

    def pointed_at(self, pointed: Pointed, passed: Ms) -> Pointed | None:
        """The same thing in the newest revision; None where nothing has come since the start."""
        come = [one for one in self.commits if one.at <= passed]
        if not come:
            return None
        tree = self.folder / str(len(come)) / self.root.name
        if not tree.exists():
            self._put_together(tree, come)
        inside = Path(pointed.what).resolve().relative_to(self.root)
        return replace(
            pointed, what=str(tree / inside), words=Words({**pointed.words, "root": str(tree)})
        )

    def _put_together(self, tree: Path, come: Sequence[Commit]) -> None:
        def own(folder: str, names: list[str]) -> list[str]:
            return [GIT] if GIT in names and Path(folder) == self.root else []

        shutil.copytree(self.root, tree, symlinks=True, ignore=own)
        if (self.root / GIT).exists():
            (tree / GIT).symlink_to(self.root / GIT)
        for one in come:
            if one.files:
                shutil.copytree(one.files, tree, symlinks=True, dirs_exist_ok=True)
            for name in one.removes:
                _remove(tree, name, one)


def _remove(tree: Path, name: str, commit: Commit) -> None:
    try:
        path = follow(tree / name, tree)
    except StrayPathError:
        path = tree
    if path == tree or not path.exists():
        problem, hint = f"there is no `{name}` to remove", "paths begin at the repository's root"
        raise ScenarioError("scenario.commit", problem, where=Place(commit.where), hint=hint)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


@contextmanager
def committing(root: Path, commits: Sequence[Commit]) -> Iterator[Commits | None]:
    """The commits of a scenario; None where there are none. Raises for what cannot be had."""
    if not commits:
        yield None
        return
    for one in commits:
        if root == NOWHERE:
            problem, hint = "commits need a repository that is here", "point at a directory"
            raise ScenarioError("scenario.commit", problem, where=Place(one.where), hint=hint)
        if one.files and not Path(one.files).is_dir():
            problem = f"`{one.files}` is not a directory"
            hint = "it is looked for beside the scenario"
            raise ScenarioError("scenario.commit", problem, where=Place(one.where), hint=hint)
    with TemporaryDirectory(prefix="tidegate-commits-") as folder:
        yield Commits(root, commits, Path(folder))
