"""Directories and archives on this machine, and which repositories they are checkouts of."""

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
"""The name of what no commit has."""
ARCHIVES = (".tgz", ".tar.gz", ".tar", ".zip")
ORIGIN_HEAD = "refs/remotes/origin/HEAD"


async def fetch_local(source: LocalSource, access: FetchOptions, *, strip: int = 0) -> Snapshot:
    """A directory as it lies there, or what is in an archive, below `strip` directories of it.

    In a checkout only those files count that Git knows or would add.
    """
    path = _place(source.path)
    if path.is_file() and path.name.endswith(ARCHIVES):
        return await _unpacked(source, path, access, strip)
    if not path.is_dir():
        reason = "is not a directory or an archive" if path.exists() else "is not there"
        problem = f"`{sanitize(source.path)}` {reason}"
        raise SourceError("source.local", problem, location=Location(sanitize(str(path))))
    if access.here is not None and access.here.root == path:
        return msgspec.structs.replace(access.here, source=source)
    entries = await list_entries(path, access)
    files, escaping = split_escaping_links(path, entries)
    return Snapshot(source, WORKING_TREE, path, files, escaping)


async def fetch_local_chart(path: Path, access: FetchOptions) -> Snapshot:
    """A chart on this machine, as its own directory: packed ones have one more above it."""
    found = await fetch_local(LocalSource(str(path)), access, strip=1)
    check_chart(found.root, str(path))
    return found


async def list_entries(path: Path, access: FetchOptions) -> list[TreeEntry]:
    """What belongs to a directory; all of it where Git has no say."""
    listed = b""
    if _is_checkout(path):
        async with open_git(_local_url(path), access) as git:
            asked = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
            listed = await _said(git, *asked, cwd=path)
    paths = [name for name in os.fsdecode(listed).split("\0") if name]
    try:
        if paths:
            return await asyncio.to_thread(read_entries, path, sorted(set(paths)))
        return await asyncio.to_thread(walk_tree, path)
    except OSError as error:
        problem = f"the directory cannot be read: {sanitize(error.strerror or '')}"
        where = Location(sanitize(str(error.filename or path)))
        raise SourceError("source.local", problem, location=where) from error


async def find_checkouts(path: Path, access: FetchOptions) -> tuple[Checkout, ...]:
    """The repositories that the directory is a checkout of: one for each remote's address."""
    if not _is_checkout(path):
        return ()
    async with open_git(_local_url(path), access) as git:
        pattern = r"^remote\..*\.url$"
        remotes = await _said(git, "config", "-z", "--get-regexp", pattern, cwd=path)
        urls = [line.partition(b"\n")[2].decode() for line in remotes.split(b"\0") if line]
        if not urls:
            return ()
        symbol = ("symbolic-ref", "--quiet", "--short")
        questions = (("rev-parse", "--show-toplevel"), (*symbol, "HEAD"), (*symbol, ORIGIN_HEAD))
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(_said(git, *one, cwd=path)) for one in questions]
    top, branch, default = (one.result() for one in asked)
    if not top:
        return ()
    root = Path(os.fsdecode(top.removesuffix(b"\n")))
    here, shown = branch.decode().strip(), default.decode().strip().removeprefix("origin/")
    return tuple(Checkout(url, root, branch=here, default=shown) for url in urls)


async def read_local_revision(path: Path, access: FetchOptions) -> Revision:
    """What a directory is at: its commit, if that is all of it; else a name for its content."""
    if _is_checkout(path):
        async with open_git(_local_url(path), access) as git:
            commit = await _said(git, "rev-parse", "--verify", "HEAD", cwd=path)
            branch = await _said(git, "symbolic-ref", "--quiet", "--short", "HEAD", cwd=path)
            changes = await _said(git, "status", "--porcelain", "-z", "--", ".", cwd=path)
        if commit and not changes:
            return Revision(branch.decode().strip(), commit_digest(commit.decode().strip()))
    entries = await list_entries(path, access)
    return Revision(UNCOMMITTED, await asyncio.to_thread(digest_entries, path, entries))


def read_repository_map(text: str) -> Checkout:
    """A map that a user gave: `URL=PATH`."""
    url, split, path = text.rpartition("=")
    if not split or not url or not path:
        problem = f"`{sanitize(text)}` does not map an address to a directory"
        raise SourceError("source.map", problem, hint="write `URL=PATH`")
    return Checkout(url, _place(path), always=True)


def _is_checkout(path: Path) -> bool:
    """Whether it is worth asking git."""
    real = path.resolve()
    return any((one / ".git").exists() for one in (real, *real.parents))


def _place(path: str) -> Path:
    return Path(path).expanduser().absolute()


async def _said(git: Git, *arguments: str, cwd: Path) -> bytes:
    """git's answer; nothing where it has none, or is not installed."""
    try:
        ran = await git.attempt(*arguments, cwd=cwd)
    except ProcessError as error:
        if error.code != "external.missing":
            raise
        return b""
    return b"" if ran.exit_code else ran.stdout


def _local_url(path: Path) -> GitUrl:
    return GitUrl("file", "", 0, str(path), "", f"file://{path}")


async def _unpacked(source: LocalSource, path: Path, access: FetchOptions, strip: int) -> Snapshot:
    from tidegate.source.archive import unpack  # noqa: PLC0415 - few sources are archives

    with path.open("rb") as file:
        packed = await asyncio.to_thread(hashlib.file_digest, file, "sha256")
    digest = f"sha256:{packed.hexdigest()}"

    async def fill(place: Path) -> None:
        limits = access.limits
        await asyncio.to_thread(unpack, path, place, name=str(path), limits=limits, strip=strip)

    name = f"archive {digest}" + (f" without {strip}" if strip else "")
    tree = await access.cache.find_or_keep(name, fill, shown=str(path))
    return Snapshot(source, Revision("", digest), tree.root, tree.files, digest=tree.digest)
