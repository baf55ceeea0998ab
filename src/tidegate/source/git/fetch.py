"""Fetch one commit of a Git repository into a tree: shallow, without history, without `.git`."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tidegate.errors import Location, SourceError, sanitize
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.source import GitRef, GitRefKind, GitSource, Revision, Snapshot
from tidegate.source.cache import CachedTree
from tidegate.source.git.program import Git, git_error, open_git
from tidegate.source.git.refs import (
    RemoteRefs,
    check_ref,
    choose_commit,
    commit_digest,
    full_commit,
    is_short_commit,
    missing_ref_error,
    read_remote_refs,
)
from tidegate.source.options import FetchOptions, offline_error
from tidegate.source.tree import MIB, TreeLimits
from tidegate.source.urls import GitUrl, read_git_url, redact_password

EVERYTHING = ("+refs/heads/*:refs/remotes/all/*", "+refs/tags/*:refs/tags/*")
LONG_NAME = 64
_LISTED = lazy_regex(rb"(\d+) (\w+) ([0-9a-f]+) +(\d+|-)\t(.*)", re.DOTALL)


async def fetch_git(source: GitSource, access: FetchOptions) -> Snapshot:
    """The tree of the commit that a ref means, from the cache where it is known."""
    url = read_git_url(source.url, schemes=access.schemes)
    check_ref(source.ref)
    async with (
        access.cache.turn(f"git {url.text} {source.ref}"),
        open_git(url, access, submodules=source.submodules) as git,
    ):
        revision = await _resolve(source.ref, git, access)
        tree = await _tree(source, revision, git, access)
    return Snapshot(source, revision, tree.root, tree.files, digest=tree.digest)


async def _resolve(at: GitRef, git: Git, access: FetchOptions) -> Revision:
    whole = full_commit(at)
    if whole is not None:
        return whole
    refs = await _list_refs(git, access)
    found = choose_commit(at, refs)
    if found is None and is_short_commit(at):
        found = await _find_short(at, refs, git, access)
    if found is None:
        raise missing_ref_error(at, git.url.text)
    return found


async def _list_refs(git: Git, access: FetchOptions) -> RemoteRefs:
    note = f"refs {git.url.text}"
    known = access.recall(note, git.url.text)
    if known is not None:
        return msgspec.json.decode(known, type=RemoteRefs)
    with tempfile.TemporaryDirectory(prefix="tidegate-git-") as nowhere:
        listed = await git.run("ls-remote", "--symref", "--", git.url.text, cwd=Path(nowhere))
    refs = read_remote_refs(listed)
    access.cache.note(note, msgspec.json.encode(refs))
    return refs


async def _find_short(
    at: GitRef, refs: RemoteRefs, git: Git, access: FetchOptions
) -> Revision | None:
    """The history, without its files: no server finds a commit by its beginning."""
    note = f"short {git.url.text} {at.text}"
    known = access.cache.recall(note)
    if known:
        return Revision("", known.decode())
    if access.offline:
        raise offline_error(f"{git.url.text} at {at}")
    with tempfile.TemporaryDirectory(prefix="tidegate-git-") as place:
        cwd = Path(place)
        is_long = any(len(commit) == LONG_NAME for commit in refs.commits.values())
        _make_repository(cwd, "sha256" if is_long else "sha1")
        history = ("fetch", "--quiet", "--filter=tree:0", "--no-tags", "--", git.url.text)
        await git.run(*history, *EVERYTHING, cwd=cwd)
        asked = await git.attempt("rev-parse", "--disambiguate=" + at.text.lower(), cwd=cwd)
        objects = asked.stdout.split()
        commits = [name.decode() for name in objects if await _is_commit(name.decode(), git, cwd)]
    if len(commits) > 1:
        where = Location(redact_password(git.url.text))
        problem = f"`{sanitize(at.text)}` is the beginning of more than one commit"
        raise SourceError("source.git.ref.ambiguous", problem, location=where)
    if not commits:
        return None
    revision = Revision("", commit_digest(commits[0]))
    access.cache.note(note, revision.digest.encode())
    return revision


async def _is_commit(name: str, git: Git, cwd: Path) -> bool:
    asked = await git.attempt("cat-file", "-t", name, cwd=cwd)
    return asked.stdout.strip() == b"commit"


async def _tree(
    source: GitSource, revision: Revision, git: Git, access: FetchOptions
) -> CachedTree:
    async def fill(place: Path) -> None:
        await _check_out(source, revision, git, place, access.limits)

    url = git.url.text
    name = f"git {url} {revision.digest} {source.submodules}"
    what = f"{url} at {source.ref}"
    return await access.tree(name, fill, what=what, shown=redact_password(url))


async def _check_out(
    source: GitSource, revision: Revision, git: Git, place: Path, limits: TreeLimits
) -> None:
    _make_repository(place, revision.digest.partition(":")[0])
    await _get_commit(revision, source.ref, git, place)
    listed = await git.run("ls-tree", "-r", "-l", "-z", "--full-tree", revision.hex, cwd=place)
    check_sizes(listed, limits, git.url)
    await git.run("checkout", "--quiet", "--force", "--detach", revision.hex, cwd=place)
    if source.submodules:
        # Submodules may be written relative to the repository around them.
        await git.run("config", "remote.origin.url", git.url.text, cwd=place)
        deep = ("submodule", "--quiet", "update", "--init", "--recursive", "--depth=1")
        await git.run(*deep, cwd=place)
    await asyncio.to_thread(_drop_git, place)


def _make_repository(place: Path, algorithm: str) -> None:
    """An empty repository, as `git init` makes it; a program less to start for each fetch."""
    own = place / ".git"
    for part in ("objects", "refs"):
        (own / part).mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    extension = "[extensions]\n\tobjectFormat = sha256\n" if algorithm == "sha256" else ""
    version = 1 if extension else 0
    (own / "config").write_text(f"[core]\n\trepositoryformatversion = {version}\n{extension}")


async def _get_commit(revision: Revision, at: GitRef, git: Git, place: Path) -> None:
    """The commit alone, or, from a server that does not give single commits, everything."""
    shallow = ("fetch", "--quiet", "--depth=1", "--no-tags", "--", git.url.text, revision.hex)
    first = await git.attempt(*shallow, cwd=place)
    if first.exit_code == 0:
        return
    trouble = git_error(first, git.url)
    if trouble.code not in ("source.git.failed", "source.git.missing"):
        raise trouble
    await git.run("fetch", "--quiet", "--no-tags", "--", git.url.text, *EVERYTHING, cwd=place)
    found = await git.attempt("cat-file", "-e", revision.hex + "^{commit}", cwd=place)
    if found.exit_code:
        wanted = at if at.kind is not GitRefKind.HEAD else GitRef(GitRefKind.COMMIT, revision.hex)
        raise missing_ref_error(wanted, git.url.text)


def check_sizes(listed: bytes, limits: TreeLimits, url: GitUrl) -> None:
    """Refuse a tree that is too large, before it is written out."""
    total = count = 0
    for size, path in _sizes(listed):
        total, count = total + size, count + 1
        if size > limits.file_size or total > limits.tree_size or count > limits.files:
            problem = (
                f"the tree is too large: `{sanitize(path)}` is beyond {limits.files} files,"
                f" {limits.file_size // MIB} MiB for one or {limits.tree_size // MIB} MiB for all"
            )
            raise SourceError("source.size", problem, location=Location(redact_password(url.text)))


def _sizes(listed: bytes) -> Iterator[tuple[int, str]]:
    for line in listed.split(b"\0"):
        found = _LISTED.fullmatch(line)
        if found is not None:
            size = 0 if found[4] == b"-" else int(found[4])
            yield size, found[5].decode(errors="replace")


def _drop_git(place: Path) -> None:
    """Git's own directories, also those of submodules, are no part of the tree.

    Links are never followed: one may lead to somebody's own repository.
    """
    for folder, directories, files in os.walk(place):
        if ".git" in directories:
            directories.remove(".git")
            shutil.rmtree(Path(folder) / ".git")
        if ".git" in files:
            (Path(folder) / ".git").unlink()
