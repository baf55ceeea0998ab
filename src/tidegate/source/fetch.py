"""Fetching of any source: the fetcher of its kind, or a directory in its place."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tidegate.errors import Location, SourceError, sanitize
from tidegate.files import PathEscapeError, normalize_path
from tidegate.model.units.source import (
    BucketSource,
    ChartSource,
    GitRef,
    GitRefKind,
    GitSource,
    LocalSource,
    OciSource,
    Snapshot,
    SourceRef,
)
from tidegate.source.git.refs import branch_name, is_pinned, is_range
from tidegate.source.ignore import filter_files
from tidegate.source.local import fetch_local, fetch_local_chart
from tidegate.source.options import Checkout, FetchOptions
from tidegate.source.semver import is_in_range
from tidegate.source.tree import digest_entries, read_entries
from tidegate.source.urls import is_same_repository, redact_password
from tidegate.source.vendored import pick_vendored
from tidegate.source.web import redact_url


async def fetch(source: SourceRef, options: FetchOptions) -> Snapshot:
    """Return the tree of files that a source refers to now."""
    checkout = next(
        (checkout for checkout in options.checkouts if _replaces(checkout, source)), None
    )
    if checkout is not None:
        return await _fetch_mapped(source, checkout, options)
    match source:
        case LocalSource():
            return await fetch_local(source, options)
        case GitSource():
            return await _fetch_repository(source, options)
        case ChartSource():
            return await _fetch_chart(source, options)
        case OciSource():
            from tidegate.source.oci.artifacts import fetch_oci

            return await fetch_oci(source, options)
        case BucketSource():
            from tidegate.source.bucket.fetch import fetch_bucket

            return await fetch_bucket(source, options)


async def apply_ignore_rules(snapshot: Snapshot, extra: str, options: FetchOptions) -> Snapshot:
    """Return the tree without the files that `.sourceignore` files and the `extra` rules exclude.

    Links are excluded as well. The result is a tree in the cache.
    """
    files = await asyncio.to_thread(filter_files, snapshot.root, snapshot.files, extra)
    return await select_files(snapshot, files, options)


async def select_files(
    snapshot: Snapshot, files: tuple[str, ...], options: FetchOptions
) -> Snapshot:
    """Return the tree with these files only."""
    if files == snapshot.files and not snapshot.escaping_links:
        return snapshot
    with_known_digest = await with_digest(snapshot)
    listing = hashlib.sha256("\0".join(files).encode(errors="surrogateescape")).hexdigest()

    async def fill(directory: Path) -> None:
        await asyncio.to_thread(copy_files, snapshot.root, files, directory)

    name = f"part {with_known_digest.digest} {listing}"
    tree = await options.cache.find_or_store(name, fill, source_name=str(snapshot.source))
    return msgspec.structs.replace(
        with_known_digest,
        root=tree.root,
        files=tree.files,
        escaping_links=(),
        digest=tree.digest,
        original_root=snapshot.original_root or snapshot.root,
    )


async def with_digest(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its digest; a working tree is read for it."""
    if snapshot.digest:
        return snapshot
    paths = (*snapshot.files, *snapshot.escaping_links)
    entries = await asyncio.to_thread(read_entries, snapshot.root, paths)
    digest = await asyncio.to_thread(digest_entries, snapshot.root, entries)
    return msgspec.structs.replace(snapshot, digest=digest)


def _replaces(checkout: Checkout, source: SourceRef) -> bool:
    """Return whether the user mapped this repository, chart, artifact or bucket to a directory."""
    url, chart = checkout.url.rstrip("/"), checkout.chart
    match source:
        case BucketSource():
            return checkout.is_override and source.url == url
        case ChartSource(repository=address, version=version_range):
            is_same = address.rstrip("/") == url and chart in {"", source.chart}
        case OciSource(url=address, range=version_range):
            is_same = address.rstrip("/") == (f"{url}/{chart}" if chart else url)
            version_range = version_range or source.tag.replace("_", "+")
        case _:
            return False
    is_in_version_range = not checkout.version or is_in_range(checkout.version, version_range)
    return checkout.is_override and is_same and is_in_version_range


async def _fetch_mapped(source: SourceRef, checkout: Checkout, options: FetchOptions) -> Snapshot:
    """Fetch from a mapped directory. A directory for a repository has one directory per chart."""
    if checkout.chart:
        local = await fetch_local_chart(checkout.path, options)
    else:
        chart_path = source.chart if isinstance(source, ChartSource) else "."
        try:
            directory = checkout.path / normalize_path(chart_path)
        except PathEscapeError:
            problem, location = (
                f"chart `{sanitize(chart_path)}` not found",
                Location(redact_url(checkout.url)),
            )
            raise SourceError("source.chart.missing", problem, location=location) from None
        local = await fetch_local(LocalSource(str(directory)), options)
        if isinstance(source, BucketSource):
            from tidegate.source.bucket.fetch import filter_bucket_files

            files = await asyncio.to_thread(filter_bucket_files, source, local.root, local.files)
            local = await select_files(local, files, options)
    return msgspec.structs.replace(local, source=source)


async def _fetch_chart(source: ChartSource, options: FetchOptions) -> Snapshot:
    """Fetch a chart from its repository; if that fails, use the chart in the user's repository."""
    from tidegate.source.helm_repository import fetch_chart
    from tidegate.source.oci.artifacts import fetch_oci_chart

    in_registry = source.repository.startswith("oci://")
    try:
        return await (fetch_oci_chart if in_registry else fetch_chart)(source, options)
    except SourceError:
        vendored = pick_vendored(options.vendored_charts.charts, source)
        if vendored is None:
            raise
    local = await fetch_local_chart(vendored.path, options)
    return msgspec.structs.replace(local, source=source)


async def _fetch_repository(source: GitSource, options: FetchOptions) -> Snapshot:
    repositories = (checkout for checkout in options.checkouts if not checkout.chart)
    checkout = next(
        (checkout for checkout in repositories if is_same_repository(checkout.url, source.url)),
        None,
    )
    if checkout is None:
        return await _fetch_git(source, options)
    if uses_working_tree(source, checkout):
        local = await fetch_local(LocalSource(str(checkout.path)), options)
        return msgspec.structs.replace(local, source=source)
    # The remote may have higher tags than the checkout.
    if is_pinned(source.ref) and (options.offline or not is_range(source.ref)):
        try:
            return await _fetch_from_checkout(source, checkout, options)
        except SourceError:
            pass  # a checkout need not have every commit
    try:
        return await _fetch_git(source, options)
    except SourceError as error:
        return await _fetch_tracked(source, checkout, options, error)


async def _fetch_tracked(
    source: GitSource, checkout: Checkout, options: FetchOptions, error: SourceError
) -> Snapshot:
    """Return the branch as the checkout last fetched it, where its repository cannot be read."""
    branch = branch_name(source.ref)
    names = (f"refs/remotes/{checkout.remote}/{branch}", f"refs/heads/{branch}")
    for name in names if checkout.remote and branch and not is_pinned(source.ref) else ():
        tracked = msgspec.structs.replace(source, ref=GitRef(GitRefKind.NAME, name))
        try:
            snapshot = await _fetch_from_checkout(tracked, checkout, options)
        except SourceError:
            continue  # it has no such branch
        revision = msgspec.structs.replace(snapshot.revision, name=branch)
        return msgspec.structs.replace(snapshot, source=source, revision=revision)
    if not branch:
        raise error
    url, command = redact_password(source.url), f"git fetch {checkout.remote} {sanitize(branch)}"
    problem = (
        f"branch `{sanitize(branch)}` is not in this clone; run `{command}`, or set a checkout of"
        f" it with `--repo-map {url}=PATH`"
    )
    raise SourceError(error.code, problem, location=error.location, hint=error.problem) from None


async def _fetch_git(source: GitSource, options: FetchOptions) -> Snapshot:
    from tidegate.source.git.fetch import fetch_git

    return await fetch_git(source, options)


def uses_working_tree(source: GitSource, checkout: Checkout) -> bool:
    """Return whether the directory is used as it is.

    That is so for HEAD, its own branch and the default branch. A detached checkout, as in CI, does
    not know the default branch: then it is used for any branch. Commits, tags and ranges are never
    read from the working tree.
    """
    if checkout.is_override:
        return True
    if is_pinned(source.ref):
        return False
    branch = branch_name(source.ref)
    return branch in ("", checkout.branch, checkout.default_branch) or not checkout.default_branch


async def _fetch_from_checkout(
    source: GitSource, checkout: Checkout, options: FetchOptions
) -> Snapshot:
    local_options = msgspec.structs.replace(
        options, schemes=options.schemes | {"file"}, checkouts=(), offline=False
    )
    local = msgspec.structs.replace(source, url=checkout.path.as_uri())
    snapshot = await _fetch_git(local, local_options)
    return msgspec.structs.replace(snapshot, source=source)


def copy_files(root: Path, files: Iterable[str], directory: Path) -> None:
    """Copy files into a directory. Links stay links."""
    for file in files:
        target = directory / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / file, target, follow_symlinks=False)
