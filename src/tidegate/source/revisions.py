"""Revisions of the repository on this machine: found by name, and written to a directory.

A revision is written from the objects of the repository into a clone that shares them. The user's
working tree, index and refs are only read, submodules stay empty, and no filter runs, so that files
of Git LFS stay pointers.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from msgspec import structs

from tidegate.errors import Location, ProcessError, SourceError, sanitize
from tidegate.source.git.fetch import check_sizes, init_repository
from tidegate.source.git.program import Git, git_error, open_git
from tidegate.source.git.refs import HEADS
from tidegate.source.local import ORIGIN_HEAD, local_url
from tidegate.source.options import FetchOptions

DEFAULT_BRANCHES = ("main", "master")
SHALLOW_HINT = (
    "fetch the history with `git fetch --unshallow`; in GitHub Actions set `fetch-depth: 0` of"
    " actions/checkout, in GitLab `GIT_DEPTH: 0`"
)
SHA256_LENGTH = 64


class Commit(msgspec.Struct, frozen=True):
    """A commit of the repository, and the name by which it was found."""

    hash: str
    name: str
    """What the user calls it: a revision, or the branch whose merge base it is."""


class WrittenRevision(msgspec.Struct, frozen=True):
    """A commit that was written to a directory."""

    root: Path
    files: tuple[str, ...]


class LocalRepository:
    """The repository that contains a path."""

    def __init__(self, root: Path, git: Git) -> None:
        self.root = root
        self._git = git

    async def find_commit(self, revision: str) -> Commit:
        """Return the commit of a revision. Raises SourceError if there is none."""
        commit = None if revision.startswith("-") else await self._resolve(revision)
        if commit is None:
            problem = f"revision `{sanitize(revision)}` not found"
            if await self._has_no_commits():
                problem = "the repository has no commits"
            hint = "set another revision" if not await self._is_shallow() else SHALLOW_HINT
            raise SourceError(
                "source.git.revision", problem, location=Location(str(self.root)), hint=hint
            )
        return Commit(commit, revision)

    async def find_merge_base(self, head: str, revision: str = "") -> Commit:
        """Return the merge base of a revision with another one.

        Without another one: with its upstream branch, else with the default branch.
        """
        head_commit = await self.find_commit(head)
        branch = revision or await self._upstream(head) or await self._default_branch()
        if not branch:
            raise SourceError(
                "source.git.base",
                "no upstream branch and no default branch to compare with",
                location=Location(str(self.root)),
                hint=SHALLOW_HINT if await self._is_shallow() else "set a revision with `--base`",
            )
        target = await self.find_commit(branch)
        result = await self._git.try_run("merge-base", head_commit.hash, target.hash, cwd=self.root)
        merge_base = result.stdout.decode().split()
        if result.exit_code or not merge_base:
            is_shallow = await self._is_shallow()
            reason = "the clone is shallow" if is_shallow else "they have no common commit"
            raise SourceError(
                "source.git.base",
                f"no merge base of `{sanitize(head)}` and `{sanitize(branch)}`: {reason}",
                location=Location(str(self.root)),
                hint=SHALLOW_HINT if is_shallow else "set a revision with `--base`",
            )
        return Commit(merge_base[0], branch)

    async def write_commit(
        self, commit: Commit, directory: Path, options: FetchOptions
    ) -> WrittenRevision:
        """Write a commit into a new directory, as a clone with the branches and remotes of this
        repository.
        """
        algorithm = "sha256" if len(commit.hash) == SHA256_LENGTH else "sha1"
        init_repository(directory, algorithm)
        await self._share_objects(directory)
        await self._copy_refs(commit, directory)
        isolated = structs.replace(options, use_user_git_config=False)
        async with open_git(local_url(directory), isolated) as git:
            tree = await self._read(
                git, "ls-tree", "-r", "-l", "-z", "--full-tree", commit.hash, cwd=directory
            )
            check_sizes(tree, options.limits, git.url)
            await self._copy_remotes(git, directory)
            await self._read(git, "read-tree", commit.hash, cwd=directory)
            await self._read(git, "checkout-index", "--all", "--force", "--quiet", cwd=directory)
        lines = (line.partition("\t") for line in os.fsdecode(tree).split("\0"))
        return WrittenRevision(directory, tuple(path for _, _, path in lines if path))

    async def _resolve(self, revision: str) -> str | None:
        result = await self._git.try_run(
            *("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"),
            cwd=self.root,
        )
        return None if result.exit_code else result.stdout.decode().strip() or None

    async def _has_no_commits(self) -> bool:
        result = await self._git.try_run("rev-list", "--all", "--max-count=1", cwd=self.root)
        return not result.stdout.strip() and await self._resolve("HEAD") is None

    async def _is_shallow(self) -> bool:
        result = await self._git.try_run("rev-parse", "--is-shallow-repository", cwd=self.root)
        return result.stdout.strip() == b"true"

    async def _upstream(self, head: str) -> str:
        """Return the branch that a branch follows; empty without one.

        A branch that was pushed under its own name follows only itself.
        """
        name = "@{upstream}" if head == "HEAD" else f"{head}@{{upstream}}"
        upstream = await self._abbreviate(name)
        local = await self._abbreviate(head)
        return "" if upstream.partition("/")[2] == local else upstream

    async def _default_branch(self) -> str:
        """Return the default branch of the remote, else the branch with a usual name."""
        names = [
            *(f"refs/remotes/origin/{name}" for name in DEFAULT_BRANCHES),
            *(f"{HEADS}{name}" for name in DEFAULT_BRANCHES),
        ]
        for name in (ORIGIN_HEAD, *names):
            if await self._resolve(name) is not None:
                return await self._abbreviate(name)
        return ""

    async def _abbreviate(self, name: str) -> str:
        result = await self._git.try_run(
            "rev-parse", "--abbrev-ref", "--end-of-options", name, cwd=self.root
        )
        lines = result.stdout.decode(errors="replace").splitlines()
        names = [line for line in lines if line != "--end-of-options"]
        return "" if result.exit_code or not names else names[-1]

    async def _share_objects(self, directory: Path) -> None:
        """Let a clone read the objects of this repository."""
        path = await self._read(self._git, "rev-parse", "--git-path", "objects", cwd=self.root)
        objects = (self.root / os.fsdecode(path.removesuffix(b"\n"))).resolve()
        alternates = directory / ".git" / "objects" / "info" / "alternates"
        alternates.parent.mkdir()
        alternates.write_bytes(os.fsencode(objects) + b"\n")

    async def _copy_refs(self, commit: Commit, directory: Path) -> None:
        """Give a clone the branches of this repository; the current one is at the commit."""
        command = ("for-each-ref", "--format=%(objectname) %(refname)")
        refs = os.fsdecode(await self._read(self._git, *command, cwd=self.root)).splitlines()
        head = await self._git.try_run("symbolic-ref", "--quiet", "HEAD", cwd=self.root)
        branch = os.fsdecode(head.stdout).strip()
        others = [line for line in refs if line.partition(" ")[2] not in {branch, ORIGIN_HEAD}]
        current = [f"{commit.hash} {branch}"] if branch else []
        git_directory = directory / ".git"
        (git_directory / "packed-refs").write_text(
            "".join(f"{line}\n" for line in (*others, *current))
        )
        (git_directory / "HEAD").write_text(f"ref: {branch}\n" if branch else f"{commit.hash}\n")
        default = await self._git.try_run("symbolic-ref", "--quiet", ORIGIN_HEAD, cwd=self.root)
        if default.stdout:
            (git_directory / ORIGIN_HEAD).parent.mkdir(parents=True)
            (git_directory / ORIGIN_HEAD).write_text(f"ref: {os.fsdecode(default.stdout)}")

    async def _copy_remotes(self, git: Git, directory: Path) -> None:
        """Give a clone the addresses of this repository, by which its units name it."""
        pattern = r"^remote\..*\.url$"
        remotes = await self._git.try_run("config", "-z", "--get-regexp", pattern, cwd=self.root)
        for line in os.fsdecode(remotes.stdout).split("\0"):
            key, _, url = line.partition("\n")
            if key:
                await self._read(git, "config", "--local", key, url, cwd=directory)

    async def _read(self, git: Git, *arguments: str, cwd: Path) -> bytes:
        """Return the output of git; in errors, the address is this repository."""
        result = await git.try_run(*arguments, cwd=cwd)
        if result.exit_code:
            raise git_error(result, self._git.url)
        return result.stdout


@asynccontextmanager
async def open_repository(path: Path, options: FetchOptions) -> AsyncIterator[LocalRepository]:
    """Open the repository of a path. Raises SourceError if there is none."""
    async with open_git(local_url(path), options) as git:
        try:
            result = await git.try_run("rev-parse", "--show-toplevel", cwd=path)
        except ProcessError as error:
            if error.code != "external.missing":
                raise
            raise SourceError("source.git.none", "git is not installed") from None
        top = os.fsdecode(result.stdout.removesuffix(b"\n"))
        if b"dubious ownership" in result.stderr:
            raise git_error(result, git.url)
        if result.exit_code or not top:
            raise SourceError(
                "source.git.none",
                "not in the working tree of a Git repository, so there is nothing to compare with",
                location=Location(str(path)),
            )
        yield LocalRepository(Path(top), git)
