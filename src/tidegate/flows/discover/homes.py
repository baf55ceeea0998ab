"""Which addresses are this very repository: by its remotes, by maps, else by what is asked of them.

Somebody's repository that lies here without its remote, or as a fork, is still what its units speak
of: an address is taken for it if the paths that units ask of it are there. That is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tidegate.flows.discover.scan import Scan
from tidegate.flows.rendering import Setting, Workshop
from tidegate.model.finding import Finding, Severity
from tidegate.model.source import GitSource, SourceObject, SourceRef
from tidegate.source import Checkout
from tidegate.source.urls import same_repository, without_password


@dataclass(frozen=True, slots=True)
class Homes:
    """How things may be had, with this repository standing for its addresses."""

    setting: Setting
    findings: tuple[Finding, ...] = ()


async def find_homes(scan: Scan, setting: Setting) -> Homes:
    async with Workshop(setting) as workshop:
        access = await workshop.access(scan.root)
    known = access.checkouts
    asked: dict[str, list[str]] = {}
    for url, path in _asked(scan):
        asked.setdefault(url, []).append(path)
    homes = [url for url in asked if any(same_repository(one.url, url) for one in known)]
    setting = replace(setting, maps=known)
    if homes:
        return Homes(setting)
    folders = {"."} | {_above for one in scan.files for _above in _folders(one)}
    hits = {url: sum(path in folders for path in paths) for url, paths in asked.items()}
    best = max(hits, key=lambda url: hits[url], default="")
    if not best or not hits[best]:
        return Homes(setting)
    finding = Finding(
        code="units.home",
        severity=Severity.NOTE,
        sentence=f"`{without_password(best)}` is taken for this directory",
        why=f"{hits[best]} of {len(asked[best])} paths that units ask of it are here",
        fix="`--repo-map URL=PATH` says otherwise",
    )
    home = Checkout(best, scan.root, always=True)
    return Homes(replace(setting, maps=(*known, home)), (finding,))


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


def _folders(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name
