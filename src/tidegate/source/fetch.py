"""Choose the fetcher for a source and hand back its snapshot."""

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
from tidegate.source.urls import is_same_repository
from tidegate.source.vendored import pick_vendored
from tidegate.source.web import redact_url


async def fetch(source: SourceRef, access: FetchOptions) -> Snapshot:
    """Get the tree of files that a source means now."""
    mapped = next((one for one in access.checkouts if _stands_for(one, source)), None)
    if mapped is not None:
        return await _fetch_mapped(source, mapped, access)
    match source:
        case LocalSource():
            return await fetch_local(source, access)
        case GitSource():
            return await _fetch_repository(source, access)
        case ChartSource():
            return await _fetch_chart(source, access)
        case OciSource():
            from tidegate.source.oci.artifacts import fetch_oci

            return await fetch_oci(source, access)
        case BucketSource():
            from tidegate.source.bucket.fetch import fetch_bucket

            return await fetch_bucket(source, access)


async def apply_ignore_rules(snapshot: Snapshot, extra: str, access: FetchOptions) -> Snapshot:
    """The tree without what its `.sourceignore` files and the `extra` rules leave out.

    Links are left out as well. The rest is a tree of its own, in the cache.
    """
    files = await asyncio.to_thread(filter_files, snapshot.root, snapshot.files, extra)
    return await select_files(snapshot, files, access)


async def select_files(
    snapshot: Snapshot, files: tuple[str, ...], access: FetchOptions
) -> Snapshot:
    """The tree with these of its files alone."""
    if files == snapshot.files and not snapshot.escaping_links:
        return snapshot
    whole = await with_digest(snapshot)
    listing = hashlib.sha256("\0".join(files).encode(errors="surrogateescape")).hexdigest()

    async def fill(place: Path) -> None:
        await asyncio.to_thread(copy_files, snapshot.root, files, place)

    name = f"part {whole.digest} {listing}"
    tree = await access.cache.find_or_keep(name, fill, shown=str(snapshot.source))
    return msgspec.structs.replace(
        whole,
        root=tree.root,
        files=tree.files,
        escaping_links=(),
        digest=tree.digest,
        original_root=snapshot.original_root or snapshot.root,
    )


async def with_digest(snapshot: Snapshot) -> Snapshot:
    """The same snapshot with its digest; a working tree is read for it."""
    if snapshot.digest:
        return snapshot
    paths = (*snapshot.files, *snapshot.escaping_links)
    entries = await asyncio.to_thread(read_entries, snapshot.root, paths)
    digest = await asyncio.to_thread(digest_entries, snapshot.root, entries)
    return msgspec.structs.replace(snapshot, digest=digest)


def _stands_for(checkout: Checkout, source: SourceRef) -> bool:
    """Whether a user put the directory in the place of this Helm repository, chart or artifact."""
    url, chart = checkout.url.rstrip("/"), checkout.chart
    match source:
        case BucketSource():
            return checkout.always and source.url == url
        case ChartSource(repository=address, version=wanted):
            is_same = address.rstrip("/") == url and chart in {"", source.chart}
        case OciSource(url=address, range=wanted):
            is_same = address.rstrip("/") == (f"{url}/{chart}" if chart else url)
            wanted = wanted or source.tag.replace("_", "+")
        case _:
            return False
    fits = not checkout.version or is_in_range(checkout.version, wanted)
    return checkout.always and is_same and fits


async def _fetch_mapped(source: SourceRef, checkout: Checkout, access: FetchOptions) -> Snapshot:
    """Below the directory for a repository lies one for each chart."""
    if checkout.chart:
        local = await fetch_local_chart(checkout.path, access)
    else:
        inside = source.chart if isinstance(source, ChartSource) else "."
        try:
            place = checkout.path / normalize_path(inside)
        except PathEscapeError:
            problem, where = (
                f"there is no chart `{sanitize(inside)}`",
                Location(redact_url(checkout.url)),
            )
            raise SourceError("source.chart.missing", problem, location=where) from None
        local = await fetch_local(LocalSource(str(place)), access)
        if isinstance(source, BucketSource):
            from tidegate.source.bucket.fetch import filter_bucket_files

            kept = await asyncio.to_thread(filter_bucket_files, source, local.root, local.files)
            local = await select_files(local, kept, access)
    return msgspec.structs.replace(local, source=source)


async def _fetch_chart(source: ChartSource, access: FetchOptions) -> Snapshot:
    """From its repository; where that cannot be, the one that the user's own repository has."""
    from tidegate.source.helm_repository import fetch_chart
    from tidegate.source.oci.artifacts import fetch_oci_chart

    in_registry = source.repository.startswith("oci://")
    try:
        return await (fetch_oci_chart if in_registry else fetch_chart)(source, access)
    except SourceError:
        here = pick_vendored(access.vendored.found, source)
        if here is None:
            raise
    local = await fetch_local_chart(here.path, access)
    return msgspec.structs.replace(local, source=source)


async def _fetch_repository(source: GitSource, access: FetchOptions) -> Snapshot:
    whole = (one for one in access.checkouts if not one.chart)
    checkout = next((one for one in whole if is_same_repository(one.url, source.url)), None)
    if checkout is None:
        return await _fetch_git(source, access)
    if uses_working_tree(source, checkout):
        local = await fetch_local(LocalSource(str(checkout.path)), access)
        return msgspec.structs.replace(local, source=source)
    # Tags that are not here yet may be higher than those that are.
    if is_pinned(source.ref) and (access.offline or not is_range(source.ref)):
        try:
            return await _fetch_from_checkout(source, checkout, access)
        except SourceError:
            pass  # a checkout need not have every commit
    return await _fetch_git(source, access)


async def _fetch_git(source: GitSource, access: FetchOptions) -> Snapshot:
    from tidegate.source.git.fetch import fetch_git

    return await fetch_git(source, access)


def uses_working_tree(source: GitSource, checkout: Checkout) -> bool:
    """Whether the directory counts as it is: for HEAD, its own branch and the default branch.

    A detached checkout, as build servers make, does not know the default branch: then any branch
    will do. Commits, tags and ranges mean something else than what lies in the directory.
    """
    if checkout.always:
        return True
    if is_pinned(source.ref):
        return False
    branch = branch_name(source.ref)
    return branch in ("", checkout.branch, checkout.default) or not checkout.default


async def _fetch_from_checkout(
    source: GitSource, checkout: Checkout, access: FetchOptions
) -> Snapshot:
    inside = msgspec.structs.replace(
        access, schemes=access.schemes | {"file"}, checkouts=(), offline=False
    )
    local = msgspec.structs.replace(source, url=checkout.path.as_uri())
    found = await _fetch_git(local, inside)
    return msgspec.structs.replace(found, source=source)


def copy_files(root: Path, files: Iterable[str], place: Path) -> None:
    """Links stay links."""
    for file in files:
        target = place / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / file, target, follow_symlinks=False)
