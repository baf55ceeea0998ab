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
REMOTES = "refs/remotes/"
REF_FORMAT = "%00".join(
    f"%({field})" for field in ("objectname", "refname", "upstream", "HEAD", "symref")
)


class Commit(msgspec.Struct, frozen=True):
    """A commit of the repository, and the name by which it was found."""

    hash: str
    name: str
    """What the user calls it: a revision, or the branch whose merge base it is."""


class _Refs(msgspec.Struct, frozen=True):
    """The refs of a repository, by their full names."""

    hashes: dict[str, str] = {}
    upstreams: dict[str, str] = {}
    """The ref that a branch follows."""
    current: str = ""
    """The branch that is checked out; empty with a detached head, or before the first commit."""
    default: str = ""
    """The default branch of the remote."""


class WrittenRevision(msgspec.Struct, frozen=True):
    """A commit that was written to a directory."""

    root: Path
    files: tuple[str, ...]


class LocalRepository:
    """The repository that contains a path."""

    def __init__(self, root: Path, objects: Path, refs: _Refs, git: Git) -> None:
        self.root = root
        self._objects = objects
        self._refs = refs
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
        ref = "" if revision else self._upstream(head) or self._default_branch()
        if not revision and not ref:
            raise SourceError(
                "source.git.base",
                "no upstream branch and no default branch to compare with",
                location=Location(str(self.root)),
                hint=SHALLOW_HINT if await self._is_shallow() else "set a revision with `--base`",
            )
        branch = revision or _short_name(ref)
        target = Commit(self._refs.hashes[ref], branch) if ref else await self.find_commit(revision)
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
        self._share_objects(directory)
        self._copy_refs(commit, directory)
        await self._copy_remotes(directory)
        isolated = structs.replace(options, use_user_git_config=False)
        async with open_git(local_url(directory), isolated) as git:
            tree = await self._read(
                git, "ls-tree", "-r", "-l", "-z", "--full-tree", commit.hash, cwd=directory
            )
            check_sizes(tree, options.limits, git.url)
            await self._read(git, "read-tree", "--reset", "-u", commit.hash, cwd=directory)
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

    def _upstream(self, head: str) -> str:
        """Return the ref that a branch follows; empty without one.

        A branch that was pushed under its own name follows only itself.
        """
        local = self._refs.current if head == "HEAD" else f"{HEADS}{head}"
        upstream = self._refs.upstreams.get(local, "")
        is_own = _short_name(upstream).partition("/")[2] == local.removeprefix(HEADS)
        return "" if is_own or upstream not in self._refs.hashes else upstream

    def _default_branch(self) -> str:
        """Return the default branch of the remote, else the branch with a usual name."""
        names = [
            self._refs.default,
            *(f"{REMOTES}origin/{name}" for name in DEFAULT_BRANCHES),
            *(f"{HEADS}{name}" for name in DEFAULT_BRANCHES),
        ]
        return next((name for name in names if name in self._refs.hashes), "")

    def _share_objects(self, directory: Path) -> None:
        """Let a clone read the objects of this repository."""
        alternates = directory / ".git" / "objects" / "info" / "alternates"
        alternates.parent.mkdir()
        alternates.write_bytes(os.fsencode(self._objects) + b"\n")

    def _copy_refs(self, commit: Commit, directory: Path) -> None:
        """Give a clone the branches of this repository; the current one is at the commit."""
        refs, git_directory = self._refs, directory / ".git"
        hashes = {name: value for name, value in refs.hashes.items() if name != ORIGIN_HEAD}
        hashes |= {refs.current: commit.hash} if refs.current else {}
        (git_directory / "packed-refs").write_bytes(
            b"".join(os.fsencode(f"{value} {name}\n") for name, value in hashes.items())
        )
        head = f"ref: {refs.current}" if refs.current else commit.hash
        (git_directory / "HEAD").write_bytes(os.fsencode(f"{head}\n"))
        if refs.default:
            (git_directory / ORIGIN_HEAD).parent.mkdir(parents=True)
            (git_directory / ORIGIN_HEAD).write_bytes(os.fsencode(f"ref: {refs.default}\n"))

    async def _copy_remotes(self, directory: Path) -> None:
        """Give a clone the addresses of this repository, by which its units name it."""
        pattern = r"^remote\..*\.url$"
        remotes = await self._git.try_run("config", "-z", "--get-regexp", pattern, cwd=self.root)
        with (directory / ".git" / "config").open("ab") as config:
            for line in os.fsdecode(remotes.stdout).split("\0"):
                key, _, url = line.partition("\n")
                name = key.removeprefix("remote.").removesuffix(".url")
                if name:
                    section = f"[remote {_quoted(name)}]\n\turl = {_quoted(url)}\n"
                    config.write(os.fsencode(section))

    async def _read(self, git: Git, *arguments: str, cwd: Path) -> bytes:
        """Return the output of git; in errors, the address is this repository."""
        result = await git.try_run(*arguments, cwd=cwd)
        if result.exit_code:
            raise git_error(result, self._git.url)
        return result.stdout


def _short_name(ref: str) -> str:
    return ref.removeprefix(HEADS).removeprefix(REMOTES)


def _quoted(text: str) -> str:
    """Return a text as Git's configuration files have it in quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


async def _read_refs(root: Path, git: Git) -> _Refs:
    """Read all refs at once."""
    result = await git.try_run("for-each-ref", f"--format={REF_FORMAT}", cwd=root)
    refs = _Refs({}, {})
    current = default = ""
    for line in os.fsdecode(result.stdout).splitlines():
        value, name, upstream, mark, target = line.split("\0")
        refs.hashes[name] = value
        if upstream:
            refs.upstreams[name] = upstream
        current = name if mark == "*" else current
        default = target if name == ORIGIN_HEAD else default
    return structs.replace(refs, current=current, default=default)


@asynccontextmanager
async def open_repository(path: Path, options: FetchOptions) -> AsyncIterator[LocalRepository]:
    """Open the repository of a path. Raises SourceError if there is none."""
    async with open_git(local_url(path), options) as git:
        try:
            places = ("--show-toplevel", "--git-path", "objects")
            result = await git.try_run("rev-parse", *places, cwd=path)
        except ProcessError as error:
            if error.code != "external.missing":
                raise
            raise SourceError("source.git.none", "git is not installed") from None
        top, _, objects = os.fsdecode(result.stdout.removesuffix(b"\n")).partition("\n")
        if b"dubious ownership" in result.stderr:
            raise git_error(result, git.url)
        if result.exit_code or not top:
            raise SourceError(
                "source.git.none",
                "not in the working tree of a Git repository, so there is nothing to compare with",
                location=Location(str(path)),
            )
        root = Path(top)
        yield LocalRepository(root, (path / objects).resolve(), await _read_refs(root, git), git)
