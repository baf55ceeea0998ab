"""Which addresses are this very repository: by its remotes, by maps, else by what is asked of them.

Somebody's repository that lies here without its remote, or as a fork, is still what its units speak
of: an address is taken for it if the paths that units ask of it are there. That is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from posixpath import join, normpath
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tidegate.dialect.argo.sets.reading import asked_paths
from tidegate.errors import Place
from tidegate.flows.discover.scan import Scan, folders_of
from tidegate.flows.nearness import stand_before
from tidegate.flows.rendering import Setting, Workshop
from tidegate.model.finding import Finding, Severity
from tidegate.model.source import DeclaredSource, Discovery, GitSource, SourceObject, SourceRef
from tidegate.model.unit import Unit
from tidegate.source import Checkout
from tidegate.source.urls import same_repository, without_password


class Homes(msgspec.Struct, frozen=True):
    """How things may be had, with this repository standing for its addresses.

    The `scan` starts at the directory that is the repository by what is asked of it: one that lies
    inside of another counts by itself. Of several that lie `apart`, one is to be pointed at.
    """

    setting: Setting
    scan: Scan
    findings: tuple[Finding, ...] = ()
    apart: tuple[str, ...] = ()


class _Wish(NamedTuple):
    """A path that a unit asks of a repository, and the file of that unit."""

    url: str
    path: str
    file: str

    def is_at(self, start: str, folders: Collection[str]) -> bool:
        return normpath(join(start, self.path)) in folders


async def find_homes(scan: Scan, setting: Setting, brought: Collection[Unit] = ()) -> Homes:
    """Units ask where they stand as text, and where others bring them."""
    wishes = list(_asked(scan, [*scan.candidates, *brought]))
    home = scan.root if scan.files else None
    if not wishes:
        return Homes(replace(setting, home=home), scan)
    async with Workshop(setting) as workshop:
        known = (await workshop.access(home)).checkouts
    setting = replace(setting, maps=known)
    here = [one for one in known if one.path.resolve() == scan.root.resolve()]
    if any(same_repository(one.url, wish.url) for one in here for wish in wishes):
        return Homes(setting, scan)
    asked = [
        wish for wish in wishes if not any(same_repository(one.url, wish.url) for one in known)
    ]
    folders = {".", *_folders(scan.files)}
    starts = [*reversed([scan.below, *folders_of(scan.below)])]
    found = _best(asked, [one for one in dict.fromkeys(starts) if one in folders], folders)
    below = _below(asked, scan, folders)
    if len(below) > (found[0] if found else 0):
        apart = tuple(sorted(set(below)))
        if len(apart) > 1 or not all(_is_in(scan, apart, one) for one in scan.declared):
            return Homes(setting, scan, apart=apart)
        found = _best(asked, apart, folders)
    return Homes(setting, scan) if found is None else _at(found, asked, setting, scan)


def _best(
    asked: Collection[_Wish], starts: Iterable[str], folders: Collection[str]
) -> tuple[int, str, str] | None:
    """The address of which most is here, with how much that is and where."""
    found = [
        (sum(one.is_at(start, folders) for one in asked if one.url == url), start, url)
        for url in dict.fromkeys(one.url for one in asked)
        for start in starts
    ]
    best = max(found, key=lambda one: one[0], default=(0, ".", ""))
    return best if best[0] else None


def _at(
    found: tuple[int, str, str], asked: Collection[_Wish], setting: Setting, scan: Scan
) -> Homes:
    hits, start, url = found
    place, all_asked = scan.inside(start), sum(one.url == url for one in asked)
    finding = Finding(
        code="units.home",
        severity=Severity.NOTE,
        sentence=f"`{without_password(url)}` is taken for this directory",
        where=Place("."),
        why=f"{hits} of the {all_asked} paths that units ask of it are here",
        fix="`--repo-map URL=PATH` says otherwise",
    )
    stand_before(place.root)
    home = Checkout(url, place.root, always=True)
    return Homes(replace(setting, maps=(*setting.maps, home)), place, (finding,))


def _below(asked: Collection[_Wish], scan: Scan, folders: Collection[str]) -> list[str]:
    """For each path that is asked, the directory below which is the repository by that."""
    found: list[str] = []
    for one in asked:
        inside = [start for start in folders_of(one.file) if scan.is_below(start)]
        found += [start for start in inside if one.path != "." and one.is_at(start, folders)][-1:]
    return found if 2 * len(found) >= len(asked) else []


def _is_in(scan: Scan, starts: Collection[str], name: str) -> bool:
    return not scan.is_below(name) or any(name.startswith(f"{start}/") for start in starts)


def _asked(scan: Scan, units: Iterable[Unit]) -> Iterator[_Wish]:
    for unit in units:
        file = unit.where.name if unit.where else ""
        for one in unit.sources:
            source: SourceRef | SourceObject | None = one.source
            if isinstance(source, SourceObject):
                found = scan.sources.find(source, file)
                source = found[1].source if found else None
                yield from _of_parts(found[1], scan, file) if found else ()
            if isinstance(source, GitSource):
                yield _Wish(source.url, one.path, file)
    for file, declared in scan.declared_below:
        for each in declared.sets:
            yield from (_Wish(url, path, each.where.name) for url, path in asked_paths(each))
        for made in declared.sources:
            yield from _of_discovery(made.discovery, scan, file) if made.discovery else ()


def _of_parts(made: DeclaredSource, scan: Scan, file: str) -> Iterator[_Wish]:
    """An artifact is made of directories of repositories."""
    for one in made.portions if made.source is None else ():
        found = scan.sources.find(one.source, file)
        if found and isinstance(found[1].source, GitSource):
            yield _Wish(found[1].source.url, one.folder, file)


def _of_discovery(discovery: Discovery, scan: Scan, file: str) -> Iterator[_Wish]:
    """Directories are looked for below the one that is named before the first braces."""
    found = scan.sources.find(discovery.source, file)
    if found and isinstance(found[1].source, GitSource):
        above = discovery.pattern.partition("{")[0].rpartition("/")[0]
        yield _Wish(found[1].source.url, above or ".", file)


def _folders(files: Iterable[str]) -> set[str]:
    found = set[str]()
    for file in files:
        for folder in folders_of(file):
            if folder in found:
                break
            found.add(folder)
    return found
