"""Which addresses are this very repository: by its remotes, by maps, else by what is asked of them.

Somebody's repository that lies here without its remote, or as a fork, is still what its units speak
of: an address is taken for it if the paths that units ask of it are there. That is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from posixpath import join, normpath

from tidegate.dialect.argo.sets.reading import asked_paths
from tidegate.errors import Place
from tidegate.flows.discover.scan import Scan
from tidegate.flows.rendering import Setting, Workshop
from tidegate.model.finding import Finding, Severity
from tidegate.model.source import GitSource, SourceObject, SourceRef
from tidegate.source import Checkout
from tidegate.source.urls import same_repository, without_password


@dataclass(frozen=True, slots=True)
class Homes:
    """How things may be had, with this repository standing for its addresses.

    The `scan` starts at the directory that is the repository by what is asked of it: one that lies
    inside of another counts by itself.
    """

    setting: Setting
    scan: Scan
    findings: tuple[Finding, ...] = ()


async def find_homes(scan: Scan, setting: Setting) -> Homes:
    async with Workshop(setting) as workshop:
        access = await workshop.access(scan.root if scan.files else None)
    known = access.checkouts
    setting = replace(setting, maps=known)
    asked: dict[str, list[str]] = {}
    for url, path in _asked(scan):
        asked.setdefault(url, []).append(path)
    if any(same_repository(one.url, url) for one in known for url in asked):
        return Homes(setting, scan)
    folders = {"."} | {above for one in scan.files for above in _above(one)}
    starts = [".", *reversed([scan.below, *_above(scan.below)])] if scan.below != "." else ["."]
    found = [
        (sum(normpath(join(start, path)) in folders for path in paths), start, url)
        for url, paths in asked.items()
        for start in dict.fromkeys(starts)
        if start in folders
    ]
    hits, start, url = max(found, key=lambda one: one[0], default=(0, ".", ""))
    if not hits:
        return Homes(setting, scan)
    place = scan.inside(start)
    finding = Finding(
        code="units.home",
        severity=Severity.NOTE,
        sentence=f"`{without_password(url)}` is taken for this directory",
        where=Place(str(place.root)),
        why=f"{hits} of the {len(asked[url])} paths that units ask of it are here",
        fix="`--repo-map URL=PATH` says otherwise",
    )
    home = Checkout(url, place.root, always=True)
    return Homes(replace(setting, maps=(*known, home)), place, (finding,))


def _asked(scan: Scan) -> Iterator[tuple[str, str]]:
    """Each address of a repository, with a path that somebody asks of it."""
    named = {one.id: one.source for declared in scan.declared.values() for one in declared.sources}
    for unit in scan.candidates:
        for one in unit.sources:
            source: SourceRef | SourceObject | None = one.source
            if isinstance(source, SourceObject):
                source = named.get(source)
            if isinstance(source, GitSource):
                yield source.url, one.path
    for declared in scan.declared.values():
        for each in declared.sets:
            yield from asked_paths(each)


def _above(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name
