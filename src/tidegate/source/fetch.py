"""Choose the fetcher for a source and hand back its snapshot."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tidegate.errors import Place, SourceError, TidegateError, foreign
from tidegate.files import StrayPathError, tidy
from tidegate.model.source import (
    ChartSource,
    GitSource,
    LocalSource,
    OciSource,
    Snapshot,
    SourceRef,
)
from tidegate.source.access import Access, Checkout
from tidegate.source.git.fetching import fetch_git
from tidegate.source.git.refs import branch_of, is_pinned, is_range
from tidegate.source.helm_repository import fetch_chart
from tidegate.source.ignore import kept_files
from tidegate.source.local import fetch_local
from tidegate.source.oci.artifacts import fetch_oci, fetch_oci_chart
from tidegate.source.tree import digest_entries, look_at
from tidegate.source.urls import same_repository
from tidegate.source.web import shown

AT_ONCE = 8


async def fetch(source: SourceRef, access: Access) -> Snapshot:
    """Get the tree of files that a source means now."""
    mapped = _mapped(source, access)
    if mapped is not None:
        local = await fetch_local(mapped, access)
        return msgspec.structs.replace(local, source=source)
    match source:
        case LocalSource():
            return await fetch_local(source, access)
        case GitSource():
            return await _fetch_repository(source, access)
        case ChartSource(repository=repository) if repository.startswith("oci://"):
            return await fetch_oci_chart(source, access)
        case ChartSource():
            return await fetch_chart(source, access)
        case OciSource():
            return await fetch_oci(source, access)


async def fetch_all(
    sources: Iterable[SourceRef], access: Access
) -> dict[SourceRef, Snapshot | TidegateError]:
    """Get many, several at once, each only once; what could not be had is told beside the rest."""
    found: dict[SourceRef, Snapshot | TidegateError] = {}
    room = asyncio.Semaphore(AT_ONCE)

    async def one(source: SourceRef) -> None:
        async with room:
            try:
                found[source] = await fetch(source, access)
            except TidegateError as error:
                found[source] = error

    wanted = tuple(dict.fromkeys(sources))
    async with asyncio.TaskGroup() as group:
        for source in wanted:
            group.create_task(one(source), name=f"fetch {source}")
    return {source: found[source] for source in wanted}


async def leave_out(snapshot: Snapshot, extra: str, access: Access) -> Snapshot:
    """The tree without what its `.sourceignore` files and the `extra` rules leave out.

    Links are left out as well. The rest is a tree of its own, in the cache.
    """
    files = await asyncio.to_thread(kept_files, snapshot.root, snapshot.files, extra)
    whole = await with_digest(snapshot)
    if files == snapshot.files and not snapshot.escaping:
        return whole
    listing = hashlib.sha256("\0".join(files).encode(errors="surrogateescape")).hexdigest()

    async def fill(place: Path) -> None:
        await asyncio.to_thread(_copy, snapshot.root, files, place)

    name = f"part {whole.digest} {listing}"
    tree = await access.cache.find_or_keep(name, fill, shown=str(snapshot.source))
    return msgspec.structs.replace(
        whole, root=tree.root, files=tree.files, escaping=(), digest=tree.digest
    )


async def with_digest(snapshot: Snapshot) -> Snapshot:
    """The same snapshot with its digest; a working tree is read for it."""
    if snapshot.digest:
        return snapshot
    paths = (*snapshot.files, *snapshot.escaping)
    entries = await asyncio.to_thread(look_at, snapshot.root, paths)
    digest = await asyncio.to_thread(digest_entries, snapshot.root, entries)
    return msgspec.structs.replace(snapshot, digest=digest)


def _mapped(source: SourceRef, access: Access) -> LocalSource | None:
    """The directory that a user put in the place of a Helm repository or an artifact.

    Below the directory for a repository lies one for each chart.
    """
    match source:
        case ChartSource(repository=address, chart=inside):
            pass
        case OciSource(url=address):
            inside = "."
        case _:
            return None
    for checkout in access.checkouts:
        if checkout.always and checkout.url.rstrip("/") == address.rstrip("/"):
            try:
                return LocalSource(str(checkout.path / tidy(inside)))
            except StrayPathError:
                problem = f"there is no chart `{foreign(inside)}`"
                where = Place(shown(address))
                raise SourceError("source.chart.missing", problem, where=where) from None
    return None


async def _fetch_repository(source: GitSource, access: Access) -> Snapshot:
    checkout = next((c for c in access.checkouts if same_repository(c.url, source.url)), None)
    if checkout is None:
        return await fetch_git(source, access)
    if uses_working_tree(source, checkout):
        local = await fetch_local(LocalSource(str(checkout.path)), access)
        return msgspec.structs.replace(local, source=source)
    # Tags that are not here yet may be higher than those that are.
    if is_pinned(source.at) and (access.offline or not is_range(source.at)):
        try:
            return await _fetch_from_checkout(source, checkout, access)
        except SourceError:
            pass  # a checkout need not have every commit
    return await fetch_git(source, access)


def uses_working_tree(source: GitSource, checkout: Checkout) -> bool:
    """Whether the directory counts as it is: for HEAD, its own branch and the default branch.

    A detached checkout, as build servers make, does not know the default branch: then any branch
    will do. Commits, tags and ranges mean something else than what lies in the directory.
    """
    if checkout.always:
        return True
    if is_pinned(source.at):
        return False
    branch = branch_of(source.at)
    return branch in ("", checkout.branch, checkout.default) or not checkout.default


async def _fetch_from_checkout(source: GitSource, checkout: Checkout, access: Access) -> Snapshot:
    inside = msgspec.structs.replace(
        access, schemes=access.schemes | {"file"}, checkouts=(), offline=False
    )
    local = msgspec.structs.replace(source, url=checkout.path.as_uri())
    found = await fetch_git(local, inside)
    return msgspec.structs.replace(found, source=source)


def _copy(root: Path, files: Iterable[str], place: Path) -> None:
    for file in files:
        target = place / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / file, target, follow_symlinks=False)
