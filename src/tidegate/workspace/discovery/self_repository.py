"""URLs of this repository: by its remotes, by mapped checkouts, else by the paths units refer to.

A repository without its remote, or a fork, is still the one that its units refer to: a URL is
assumed to be this repository if the paths that units expect in it exist here. That is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from posixpath import join, normpath
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tidegate.dialect.argo.appset.reader import referenced_paths
from tidegate.errors import Location
from tidegate.model.finding import Finding, Severity
from tidegate.model.units.source import (
    ArtifactDiscovery,
    DeclaredSource,
    GitSource,
    SourceObject,
    SourceRef,
)
from tidegate.model.units.unit import Unit
from tidegate.source import Checkout
from tidegate.source.urls import is_local_path, is_same_repository, redact_password
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.discovery.scan import RepositoryScan, parent_directories
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.request import register_display_root

MIN_PATHS_OF_RENAMED_FORK = 2


class RepositoryAliases(msgspec.Struct, frozen=True):
    """Render settings with this repository in place of its URLs."""

    settings: RenderSettings
    scan: RepositoryScan
    """Scan of the directory that is the repository by its paths; it may be inside another one."""
    findings: tuple[Finding, ...] = ()
    candidates: tuple[str, ...] = ()
    """Several directories that may be the repository: the user must choose one."""


class _PathRequest(NamedTuple):
    """A path that a unit expects in a repository, and the file of that unit."""

    url: str
    path: str
    file: str

    def exists_at(self, start: str, folders: Collection[str]) -> bool:
        return normpath(join(start, self.path)) in folders


async def find_repository_aliases(
    scan: RepositoryScan, settings: RenderSettings, created: Collection[Unit] = ()
) -> RepositoryAliases:
    """Return the URLs of this repository, by units in files and by units that others create."""
    requests = list(_path_requests(scan, [*scan.candidates, *created]))
    repository = scan.root if scan.files else None
    if not requests:
        return RepositoryAliases(replace(settings, repository=repository), scan)
    async with RenderContext(settings) as context:
        checkouts = (await context.fetch_options(repository)).checkouts
    settings = replace(settings, checkouts=checkouts)
    own_checkouts = [
        checkout for checkout in checkouts if checkout.path.resolve() == scan.root.resolve()
    ]
    if any(
        is_same_repository(checkout.url, request.url)
        for checkout in own_checkouts
        for request in requests
    ):
        return RepositoryAliases(settings, scan)
    unresolved = [
        request
        for request in requests
        if not any(is_same_repository(checkout.url, request.url) for checkout in checkouts)
    ]
    folders = {".", *_all_directories(scan.files)}
    foreign = _other_repositories(unresolved, own_checkouts, folders)
    starts = [*reversed([scan.search_path, *parent_directories(scan.search_path)])]
    best = _best_match(
        unresolved, [start for start in dict.fromkeys(starts) if start in folders], folders, foreign
    )
    nested = (
        []
        if scan.is_bootstrap_repository
        else _nested_repositories(unresolved, scan, folders, foreign)
    )
    if len(nested) > (best[0] if best else 0):
        candidates = tuple(sorted(set(nested)))
        if len(candidates) > 1 or not all(
            _is_covered(scan, candidates, file) for file in scan.declared
        ):
            return RepositoryAliases(settings, scan, candidates=candidates)
        best = _best_match(unresolved, candidates, folders)
    return (
        RepositoryAliases(settings, scan)
        if best is None
        else _assume_repository(best, unresolved, settings, scan)
    )


def _other_repositories(
    requests: Collection[_PathRequest],
    own_checkouts: Collection[Checkout],
    folders: Collection[str],
) -> set[str]:
    """Return the URLs that are not another address of the whole checkout.

    A fork usually has the name of the original. Under another name, a URL is this checkout only
    if each of at least two paths exists here. A remote that is a local path is no name.
    """
    names = {
        _repository_name(checkout.url)
        for checkout in own_checkouts
        if not is_local_path(checkout.url)
    }
    paths: dict[str, set[str]] = {}
    for request in requests:
        if names and _repository_name(request.url) not in names:
            paths.setdefault(request.url, set()).add(normpath(request.path))
    return {
        url
        for url, expected in paths.items()
        if len(expected - {"."}) < MIN_PATHS_OF_RENAMED_FORK or not expected <= {*folders}
    }


def _repository_name(url: str) -> str:
    return url.rstrip("/").removesuffix(".git").replace(":", "/").rpartition("/")[2].casefold()


def _best_match(
    requests: Collection[_PathRequest],
    starts: Iterable[str],
    folders: Collection[str],
    foreign: Collection[str] = (),
) -> tuple[int, str, str] | None:
    """Return the URL with most paths here, their number, and the directory; None without one."""
    matches = [
        (
            sum(request.exists_at(start, folders) for request in requests if request.url == url),
            start,
            url,
        )
        for url in dict.fromkeys(request.url for request in requests)
        for start in starts
        if start != "." or url not in foreign
    ]
    best = max(matches, key=lambda match: match[0], default=(0, ".", ""))
    return best if best[0] else None


def _assume_repository(
    match: tuple[int, str, str],
    requests: Collection[_PathRequest],
    settings: RenderSettings,
    scan: RepositoryScan,
) -> RepositoryAliases:
    hits, start, url = match
    repository_scan, total = (
        scan.relative_to(start),
        sum(request.url == url for request in requests),
    )
    finding = Finding(
        code="units.repository-assumed",
        severity=Severity.NOTE,
        message=f"`{redact_password(url)}` is assumed to be this directory",
        location=Location("."),
        reason=f"{hits} of {total} paths of its units found in this directory",
        fix="set another directory with `--repo-map URL=PATH`",
    )
    register_display_root(repository_scan.root)
    checkout = Checkout(url, repository_scan.root, is_override=True)
    return RepositoryAliases(
        replace(settings, checkouts=(*settings.checkouts, checkout)), repository_scan, (finding,)
    )


def _nested_repositories(
    requests: Collection[_PathRequest],
    scan: RepositoryScan,
    folders: Collection[str],
    foreign: Collection[str],
) -> list[str]:
    """Return the directory below which each path exists; none if most do not exist."""
    starts: list[str] = []
    for request in requests:
        parents = [
            start
            for start in parent_directories(request.file)
            if scan.is_searched(start) and (start != "." or request.url not in foreign)
        ]
        starts += [
            start for start in parents if request.path != "." and request.exists_at(start, folders)
        ][-1:]
    return starts if 2 * len(starts) >= len(requests) else []


def _is_covered(scan: RepositoryScan, starts: Collection[str], name: str) -> bool:
    return not scan.is_searched(name) or any(name.startswith(f"{start}/") for start in starts)


def _path_requests(scan: RepositoryScan, units: Iterable[Unit]) -> Iterator[_PathRequest]:
    for unit in units:
        file = unit.location.name if unit.location else ""
        for unit_source in unit.sources:
            source: SourceRef | SourceObject | None = unit_source.source
            if isinstance(source, SourceObject):
                match = scan.sources.find(source, file)
                source = match[1].source if match else None
                yield from _copy_requests(match[1], scan, file) if match else ()
            if isinstance(source, GitSource):
                yield _PathRequest(source.url, unit_source.path, file)
    for file, declared in scan.searched_declarations:
        for appset in declared.application_sets:
            yield from (
                _PathRequest(url, path, appset.location.name)
                for url, path in referenced_paths(appset)
            )
        for declared_source in declared.sources:
            yield from (
                _discovery_requests(declared_source.discovery, scan, file)
                if declared_source.discovery
                else ()
            )


def _copy_requests(
    declared_source: DeclaredSource, scan: RepositoryScan, file: str
) -> Iterator[_PathRequest]:
    """Yield the directories of repositories that an artifact is made of."""
    for copy in declared_source.copies if declared_source.source is None else ():
        match = scan.sources.find(copy.source, file)
        if match and isinstance(match[1].source, GitSource):
            yield _PathRequest(match[1].source.url, copy.base_directory, file)


def _discovery_requests(
    discovery: ArtifactDiscovery, scan: RepositoryScan, file: str
) -> Iterator[_PathRequest]:
    """Yield the directory before the first braces, below which directories are discovered."""
    match = scan.sources.find(discovery.source, file)
    if match and isinstance(match[1].source, GitSource):
        directory = discovery.pattern.partition("{")[0].rpartition("/")[0]
        yield _PathRequest(match[1].source.url, directory or ".", file)


def _all_directories(files: Iterable[str]) -> set[str]:
    folders = set[str]()
    for file in files:
        for folder in parent_directories(file):
            if folder in folders:
                break
            folders.add(folder)
    return folders
