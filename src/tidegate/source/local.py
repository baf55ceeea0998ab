"""Directories and archives on this machine, and the repositories that they are checkouts of."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import msgspec

from tidegate.errors import Location, ProcessError, SourceError, sanitize
from tidegate.model.units.source import LocalSource, Revision, Snapshot
from tidegate.source.git.program import Git, open_git
from tidegate.source.git.refs import commit_digest
from tidegate.source.options import Checkout, FetchOptions
from tidegate.source.tree import (
    TreeEntry,
    check_chart,
    digest_entries,
    read_entries,
    split_escaping_links,
    walk_tree,
)
from tidegate.source.urls import GitUrl

WORKING_TREE = Revision("working tree")
UNCOMMITTED = "working-tree"
"""Name of a revision with uncommitted changes."""
ARCHIVES = (".tgz", ".tar.gz", ".tar", ".zip")
ORIGIN_HEAD = "refs/remotes/origin/HEAD"


async def fetch_local(source: LocalSource, options: FetchOptions, *, strip: int = 0) -> Snapshot:
    """Return a directory as it is, or the content of an archive without `strip` leading
    directories.

    Of a checkout, only files that Git tracks or would add.
    """
    path = _absolute_path(source.path)
    if path.is_file() and path.name.endswith(ARCHIVES):
        return await _fetch_archive(source, path, options, strip)
    if not path.is_dir():
        reason = "is not a directory or an archive" if path.exists() else "does not exist"
        problem = f"`{sanitize(source.path)}` {reason}"
        raise SourceError("source.local", problem, location=Location(sanitize(str(path))))
    if options.known_snapshot is not None and options.known_snapshot.root == path:
        return msgspec.structs.replace(options.known_snapshot, source=source)
    entries = await list_entries(path, options)
    files, escaping = split_escaping_links(path, entries)
    return Snapshot(source, WORKING_TREE, path, files, escaping)


async def fetch_local_chart(path: Path, options: FetchOptions) -> Snapshot:
    """Return a chart on this machine, as its own directory. Archives have a directory above it."""
    snapshot = await fetch_local(LocalSource(str(path)), options, strip=1)
    check_chart(snapshot.root, str(path))
    return snapshot


async def list_entries(path: Path, options: FetchOptions) -> list[TreeEntry]:
    """Return the entries of a directory; of a checkout, only those that Git tracks or would add."""
    output = b""
    if _is_checkout(path):
        async with open_git(local_url(path), options) as git:
            arguments = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
            output = await _git_output(git, *arguments, cwd=path)
    paths = [name for name in os.fsdecode(output).split("\0") if name]
    try:
        if paths:
            return await asyncio.to_thread(read_entries, path, sorted(set(paths)))
        return await asyncio.to_thread(walk_tree, path)
    except OSError as error:
        problem = f"cannot read the directory: {sanitize(error.strerror or '')}"
        location = Location(sanitize(str(error.filename or path)))
        raise SourceError("source.local", problem, location=location) from error


async def find_checkouts(path: Path, options: FetchOptions) -> tuple[Checkout, ...]:
    """Return the repositories that a directory is a checkout of: one for each remote."""
    if not _is_checkout(path):
        return ()
    async with open_git(local_url(path), options) as git:
        pattern = r"^remote\..*\.url$"
        remotes = await _git_output(git, "config", "-z", "--get-regexp", pattern, cwd=path)
        urls = dict(_read_remote(line) for line in remotes.split(b"\0") if line)
        if not urls:
            return ()
        symbolic_ref = ("symbolic-ref", "--quiet", "--short")
        commands = (
            ("rev-parse", "--show-toplevel"),
            (*symbolic_ref, "HEAD"),
            (*symbolic_ref, ORIGIN_HEAD),
        )
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_git_output(git, *command, cwd=path)) for command in commands
            ]
    top, branch, default = (task.result() for task in tasks)
    if not top:
        return ()
    root = Path(os.fsdecode(top.removesuffix(b"\n")))
    current, default_branch = (
        branch.decode().strip(),
        default.decode().strip().removeprefix("origin/"),
    )
    return tuple(
        Checkout(url, root, branch=current, default_branch=default_branch, remote=remote)
        for remote, url in urls.items()
    )


def _read_remote(line: bytes) -> tuple[str, str]:
    """Return the name and the address of a remote in the output of `git config`."""
    key, _, url = line.decode(errors="surrogateescape").partition("\n")
    return key.removeprefix("remote.").removesuffix(".url"), url


async def read_local_revision(path: Path, options: FetchOptions) -> Revision:
    """Return the commit of a directory without changes, else a digest of its content."""
    if _is_checkout(path):
        async with open_git(local_url(path), options) as git:
            commit = await _git_output(git, "rev-parse", "--verify", "HEAD", cwd=path)
            branch = await _git_output(git, "symbolic-ref", "--quiet", "--short", "HEAD", cwd=path)
            changes = await _git_output(git, "status", "--porcelain", "-z", "--", ".", cwd=path)
        if commit and not changes:
            return Revision(branch.decode().strip(), commit_digest(commit.decode().strip()))
    entries = await list_entries(path, options)
    return Revision(UNCOMMITTED, await asyncio.to_thread(digest_entries, path, entries))


def read_repository_map(text: str) -> Checkout:
    """Read `URL=PATH`, a repository and the directory that replaces it."""
    url, separator, path = text.rpartition("=")
    if not separator or not url or not path:
        problem = f"`{sanitize(text)}` does not map a URL to a directory"
        raise SourceError("source.map", problem, hint="write `URL=PATH`")
    return Checkout(url, _absolute_path(path), is_override=True)


def _is_checkout(path: Path) -> bool:
    """Return whether a directory is in a Git working tree."""
    resolved = path.resolve()
    return any((directory / ".git").exists() for directory in (resolved, *resolved.parents))


def _absolute_path(path: str) -> Path:
    return Path(path).expanduser().absolute()


async def _git_output(git: Git, *arguments: str, cwd: Path) -> bytes:
    """Return the output of git; empty if git fails or is not installed."""
    try:
        result = await git.try_run(*arguments, cwd=cwd)
    except ProcessError as error:
        if error.code != "external.missing":
            raise
        return b""
    return b"" if result.exit_code else result.stdout


def local_url(path: Path) -> GitUrl:
    """Return a directory as the address of a repository."""
    return GitUrl("file", "", 0, str(path), "", f"file://{path}")


async def _fetch_archive(
    source: LocalSource, path: Path, options: FetchOptions, strip: int
) -> Snapshot:
    from tidegate.source.archive import unpack  # noqa: PLC0415 - few sources are archives

    with path.open("rb") as file:
        file_digest = await asyncio.to_thread(hashlib.file_digest, file, "sha256")
    digest = f"sha256:{file_digest.hexdigest()}"

    async def fill(directory: Path) -> None:
        limits = options.limits
        await asyncio.to_thread(unpack, path, directory, name=str(path), limits=limits, strip=strip)

    name = f"archive {digest}" + (f" without {strip}" if strip else "")
    tree = await options.cache.find_or_store(name, fill, source_name=str(path))
    return Snapshot(source, Revision("", digest), tree.root, tree.files, digest=tree.digest)
