"""Git commits, fetched as trees: shallow, without history and without `.git`."""

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

ALL_REFS = ("+refs/heads/*:refs/remotes/all/*", "+refs/tags/*:refs/tags/*")
SHA256_LENGTH = 64
_TREE_LINE = lazy_regex(rb"(\d+) (\w+) ([0-9a-f]+) +(\d+|-)\t(.*)", re.DOTALL)


async def fetch_git(source: GitSource, options: FetchOptions) -> Snapshot:
    """Return the tree of the commit that a ref means, from the cache if possible."""
    url = read_git_url(source.url, schemes=options.schemes)
    check_ref(source.ref)
    async with (
        options.cache.lock(f"git {url.text} {source.ref}"),
        open_git(url, options, submodules=source.submodules) as git,
    ):
        revision = await _resolve(source.ref, git, options)
        tree = await _cached_tree(source, revision, git, options)
    return Snapshot(source, revision, tree.root, tree.files, digest=tree.digest)


async def _resolve(ref: GitRef, git: Git, options: FetchOptions) -> Revision:
    commit = full_commit(ref)
    if commit is not None:
        return commit
    refs = await _list_refs(git, options)
    revision = choose_commit(ref, refs)
    if revision is None and is_short_commit(ref):
        revision = await _resolve_short_commit(ref, refs, git, options)
    if revision is None:
        raise missing_ref_error(ref, git.url.text)
    return revision


async def _list_refs(git: Git, options: FetchOptions) -> RemoteRefs:
    cache_name = f"refs {git.url.text}"
    cached = options.read_cached_text(cache_name, git.url.text)
    if cached is not None:
        return msgspec.json.decode(cached, type=RemoteRefs)
    with tempfile.TemporaryDirectory(prefix="tidegate-git-") as scratch:
        output = await git.run("ls-remote", "--symref", "--", git.url.text, cwd=Path(scratch))
    refs = read_remote_refs(output)
    options.cache.write_text(cache_name, msgspec.json.encode(refs))
    return refs


async def _resolve_short_commit(
    ref: GitRef, refs: RemoteRefs, git: Git, options: FetchOptions
) -> Revision | None:
    """Resolve an abbreviated commit; None if there is none.

    Fetches the history without files: no server finds a commit by its beginning.
    """
    cache_name = f"short {git.url.text} {ref.text}"
    cached = options.cache.read_text(cache_name)
    if cached:
        return Revision("", cached.decode())
    if options.offline:
        raise offline_error(f"{git.url.text} at {ref}")
    with tempfile.TemporaryDirectory(prefix="tidegate-git-") as scratch:
        cwd = Path(scratch)
        uses_sha256 = any(len(commit) == SHA256_LENGTH for commit in refs.commits.values())
        init_repository(cwd, "sha256" if uses_sha256 else "sha1")
        history = ("fetch", "--quiet", "--filter=tree:0", "--no-tags", "--", git.url.text)
        await git.run(*history, *ALL_REFS, cwd=cwd)
        result = await git.try_run("rev-parse", "--disambiguate=" + ref.text.lower(), cwd=cwd)
        objects = result.stdout.split()
        commits = [name.decode() for name in objects if await _is_commit(name.decode(), git, cwd)]
    if len(commits) > 1:
        location = Location(redact_password(git.url.text))
        problem = f"`{sanitize(ref.text)}` is an ambiguous commit prefix"
        raise SourceError("source.git.ref.ambiguous", problem, location=location)
    if not commits:
        return None
    revision = Revision("", commit_digest(commits[0]))
    options.cache.write_text(cache_name, revision.digest.encode())
    return revision


async def _is_commit(name: str, git: Git, cwd: Path) -> bool:
    result = await git.try_run("cat-file", "-t", name, cwd=cwd)
    return result.stdout.strip() == b"commit"


async def _cached_tree(
    source: GitSource, revision: Revision, git: Git, options: FetchOptions
) -> CachedTree:
    async def fill(directory: Path) -> None:
        await _check_out(source, revision, git, directory, options.limits)

    url = git.url.text
    name = f"git {url} {revision.digest} {source.submodules}"
    display_name = f"{url} at {source.ref}"
    return await options.find_or_fetch_tree(
        name, fill, display_name=display_name, source_name=redact_password(url)
    )


async def _check_out(
    source: GitSource, revision: Revision, git: Git, directory: Path, limits: TreeLimits
) -> None:
    init_repository(directory, revision.digest.partition(":")[0])
    await _fetch_commit(revision, source.ref, git, directory)
    output = await git.run("ls-tree", "-r", "-l", "-z", "--full-tree", revision.hex, cwd=directory)
    check_sizes(output, limits, git.url)
    await git.run("checkout", "--quiet", "--force", "--detach", revision.hex, cwd=directory)
    if source.submodules:
        # Submodules may have an address relative to this repository.
        await git.run("config", "remote.origin.url", git.url.text, cwd=directory)
        update = ("submodule", "--quiet", "update", "--init", "--recursive", "--depth=1")
        await git.run(*update, cwd=directory)
    await asyncio.to_thread(_remove_git_directories, directory)


def init_repository(directory: Path, algorithm: str) -> None:
    """Create an empty repository, as `git init` does, without starting a process."""
    git_directory = directory / ".git"
    for subdirectory in ("objects", "refs"):
        (git_directory / subdirectory).mkdir(parents=True)
    (git_directory / "HEAD").write_text("ref: refs/heads/main\n")
    extension = "[extensions]\n\tobjectFormat = sha256\n" if algorithm == "sha256" else ""
    version = 1 if extension else 0
    (git_directory / "config").write_text(
        f"[core]\n\trepositoryformatversion = {version}\n{extension}"
    )


async def _fetch_commit(revision: Revision, ref: GitRef, git: Git, directory: Path) -> None:
    """Fetch the commit alone; from a server that does not allow that, fetch everything."""
    shallow = ("fetch", "--quiet", "--depth=1", "--no-tags", "--", git.url.text, revision.hex)
    result = await git.try_run(*shallow, cwd=directory)
    if result.exit_code == 0:
        return
    error = git_error(result, git.url)
    if error.code not in ("source.git.failed", "source.git.missing"):
        raise error
    await git.run("fetch", "--quiet", "--no-tags", "--", git.url.text, *ALL_REFS, cwd=directory)
    lookup = await git.try_run("cat-file", "-e", revision.hex + "^{commit}", cwd=directory)
    if lookup.exit_code:
        missing = (
            ref if ref.kind is not GitRefKind.HEAD else GitRef(GitRefKind.COMMIT, revision.hex)
        )
        raise missing_ref_error(missing, git.url.text)


def check_sizes(output: bytes, limits: TreeLimits, url: GitUrl) -> None:
    """Raise SourceError if a tree is too large, before it is written."""
    total = count = 0
    for size, path in _file_sizes(output):
        total, count = total + size, count + 1
        if size > limits.file_size or total > limits.tree_size or count > limits.files:
            problem = (
                f"the tree is too large: `{sanitize(path)}` exceeds {limits.files} files,"
                f" {limits.file_size // MIB} MiB for one or {limits.tree_size // MIB} MiB for all"
            )
            raise SourceError("source.size", problem, location=Location(redact_password(url.text)))


def _file_sizes(output: bytes) -> Iterator[tuple[int, str]]:
    for line in output.split(b"\0"):
        match = _TREE_LINE.fullmatch(line)
        if match is not None:
            size = 0 if match[4] == b"-" else int(match[4])
            yield size, match[5].decode(errors="replace")


def _remove_git_directories(directory: Path) -> None:
    """Remove `.git` from the tree and from submodules.

    Links are not followed: one may lead to a repository of the user.
    """
    for parent, directories, files in os.walk(directory):
        if ".git" in directories:
            directories.remove(".git")
            shutil.rmtree(Path(parent) / ".git")
        if ".git" in files:
            (Path(parent) / ".git").unlink()
