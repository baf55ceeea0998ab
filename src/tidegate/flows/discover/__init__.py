"""What the user points at becomes units: PATH → entries → families.

    found = await discover(pointed, asker)
    families = choose(found, pointed)

PATH is a chart, an overlay or an address: one plain unit, and whatever that brings. PATH is a tree:
every unit object in it is a candidate, and the families of those that nobody brings are found. A
tree without unit objects is one plain directory, unless overlays or charts lie in it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.dialect.argo.customizing import read_customs
from tidegate.dialect.flux.access import tell_denied
from tidegate.errors import PlanError
from tidegate.flows.config import checkouts_of, config_at, without_ignored
from tidegate.flows.discover.customs import find_rules, without_excluded
from tidegate.flows.discover.destinations import tell_strange
from tidegate.flows.discover.families import (
    Family,
    Member,
    entries_of,
    family_of,
    folders_over,
    holds_itself,
    is_included,
    overlays_over,
)
from tidegate.flows.discover.findings import findings_of
from tidegate.flows.discover.homes import Homes, find_homes
from tidegate.flows.discover.order import narrowed
from tidegate.flows.discover.projects import Projects
from tidegate.flows.discover.rolling import tell_rolling
from tidegate.flows.discover.scan import MANIFESTS, Scan
from tidegate.flows.discover.sets import (
    AskLives,
    GeneratedSet,
    Generating,
    clusters_brought,
    known_clusters,
    nothing_lives,
)
from tidegate.flows.discover.settings import find_settings, tell_settings
from tidegate.flows.discover.several import (
    refuse_several,
    tell_apart,
    tell_unit_charts,
    tell_unused,
    things_below,
)
from tidegate.flows.discover.ways import AskCluster, Way
from tidegate.flows.field_places import SourceFiles
from tidegate.flows.pointing import Pointed, look_from, point_at
from tidegate.flows.rendering import Setting, Workshop
from tidegate.health.lua import NO_RULES, LuaRules
from tidegate.model.config import Config, Switch
from tidegate.model.finding import Finding, Severity
from tidegate.model.rendering import NOWHERE, Detected, Directory, Tool
from tidegate.model.source import LocalSource
from tidegate.model.unit import Unit, UnitId, UnitSource
from tidegate.render.tool_choice import detected_tool
from tidegate.source import VendoredCharts, fetch

__all__ = ["Discovered", "Family", "Member", "choose", "discover", "find_sets", "is_called"]

NO_CONFIG = Config()


class Discovered(msgspec.Struct, frozen=True):
    """The families of what was pointed at, and what is to be said besides."""

    families: tuple[Family, ...]
    findings: tuple[Finding, ...] = ()
    settings: Mapping[str, Switch] = msgspec.field(default_factory=dict)
    is_repository: bool = False
    """Units say themselves what they are; what is said of a plain one is said of nobody."""
    scan: Scan = msgspec.field(default_factory=lambda: Scan(NOWHERE, ()))
    """The tree that the places of all of them are in."""
    scripts: LuaRules = NO_RULES
    """The health rules that the repository brings."""
    clusters: frozenset[str] = frozenset()
    """Those that Argo CD knows by Git, or by the configuration."""

    @property
    def are_alternatives(self) -> bool:
        """Whether two families bring one identity: then each is taken by itself."""
        names = [name for family in self.families for name in family.ids]
        return len(names) != len(set(names))


async def discover(
    pointed: Pointed, setting: Setting, ask: AskCluster, lives: AskLives = nothing_lives
) -> Discovered:
    """Find the units of what is pointed at. Raises where there is nothing to find."""
    found = await _discovered(pointed, setting, ask, lives)
    return replace(found, findings=SourceFiles(found.scan.root).of_findings(found.findings))


async def _discovered(
    pointed: Pointed, setting: Setting, ask: AskCluster, lives: AskLives
) -> Discovered:
    spot = _look(pointed.what, pointed.words.get("root"))
    scan, setting = await _look_over(spot, setting)
    way = Way(setting, ask, spot.config, pointed.generator_data, lives)
    if not (spot.is_tree or spot.is_file):
        return await _plain(_units(pointed), scan, way)
    if scan.has_units:
        homes = await find_homes(scan, setting)
        if homes.apart:
            refuse_several(pointed.what, scan, homes.apart)
        found = await _repository(homes, way)
        members = [one for family in found.families for one in family.members]
        told = (
            *found.findings,
            *tell_unit_charts(homes.scan, found.families),
            *tell_rolling(found.families, found.settings),
            *tell_denied(((one.unit, one.bases) for one in members), found.settings),
        )
        return _only_entries(replace(found, findings=told), spot.config)
    if spot.is_file:
        return await _plain(_file_unit(pointed, scan), scan, way)
    if scan.unit_charts:
        charts = [replace(pointed, what=str(scan.root / one)) for one in scan.unit_charts]
        found = await _plain([unit for one in charts for unit in _units(one)], scan, way)
        return replace(found, findings=(*found.findings, *tell_unused(scan, found.families)))
    apart = things_below(scan)
    if apart and scan.below not in scan.plain:
        refuse_several(pointed.what, scan)
    units = [_without(one, apart, scan) for one in _units(pointed)] if apart else _units(pointed)
    found = await _plain(units, scan, way)
    return replace(found, findings=(*found.findings, *tell_apart(apart)))


async def find_sets(
    pointed: Pointed, setting: Setting
) -> tuple[list[GeneratedSet], tuple[Finding, ...]]:
    """The ApplicationSets of a file or a directory with what they generate; no unit is rendered."""
    spot = _look(pointed.what, pointed.words.get("root"))
    scan, setting = await _look_over(spot, setting)
    homes = await find_homes(scan, setting)
    if homes.apart:
        refuse_several(pointed.what, scan, homes.apart)
    scan = homes.scan
    found, findings = list[GeneratedSet](), [*homes.findings, *scan.broken]
    async with Workshop(homes.setting) as workshop:
        generating = Generating(workshop, scan, spot.config, pointed.generator_data)
        for _, declared in scan.declared_below:
            found += [await generating.generate(one) for one in declared.sets]
            findings += declared.findings if declared.sets else ()
    findings += (one for each in found for one in each.declared.findings)
    return found, SourceFiles(scan.root).of_findings(dict.fromkeys(findings))


class _Target(msgspec.Struct, frozen=True):
    """What lies where the user points: nothing for an address."""

    path: Path | None = None
    root: Path = NOWHERE
    is_tree: bool = False
    is_file: bool = False
    config: Config = NO_CONFIG


def _look(what: str, bound: str | None) -> _Target:
    path = Path(what).resolve()
    if not path.exists():
        return _Target()
    root = look_from(path, bound)
    is_tree = path.is_dir() and _tool_of(path) is Tool.DIRECTORY
    is_file = path.is_file() and path.name.endswith(MANIFESTS)
    return _Target(path, root, is_tree, is_file, config_at(path))


def _only_entries(found: Discovered, config: Config) -> Discovered:
    """What the configuration takes for entries, where it names some."""
    if not config.entries:
        return found
    kept = [
        one
        for one in found.families
        if any(is_called(one.members[0].unit, entry.text) for entry in config.entries)
    ]
    strange = [
        Finding(
            code="config.entry",
            severity=Severity.ERROR,
            sentence=f"there is no entry `{entry.text}`",
            where=entry.where,
            fix="`tidegate units` shows all, with the list removed",
        )
        for entry in config.entries
        if not any(is_called(one.members[0].unit, entry.text) for one in found.families)
    ]
    return replace(found, families=tuple(kept), findings=(*found.findings, *strange))


def _tool_of(path: Path) -> Tool:
    return detected_tool(entry.name for entry in path.iterdir())


def _units(pointed: Pointed) -> list[Unit]:
    """What is pointed at as a plain unit, once for each cluster."""
    return [
        point_at(pointed.what, pointed.policy, cluster=name, **pointed.words)
        for name in pointed.clusters
    ]


def _without(unit: Unit, apart: Sequence[str], scan: Scan) -> Unit:
    """A plain directory without the overlays and charts that lie in it."""
    inside = tuple(f"{one}/" for one in apart)
    files = tuple(one for one in scan.files if scan.is_below(one) and not one.startswith(inside))
    (source,) = unit.sources
    if not isinstance(source.request, Detected):
        return unit
    directory = msgspec.structs.replace(source.request.directory, files=files)
    request = msgspec.structs.replace(source.request, directory=directory)
    narrowed = msgspec.structs.replace(source, request=request)
    return msgspec.structs.replace(unit, sources=(narrowed,))


def _file_unit(pointed: Pointed, scan: Scan) -> list[Unit]:
    """One file of manifests."""
    folder = posixpath.dirname(scan.below) or "."
    request = Directory(path=folder, files=(scan.below,), names=True)
    source = UnitSource(source=LocalSource(str(scan.root)), request=request)
    parent = replace(pointed, what=str(Path(pointed.what).parent))
    stem = Path(pointed.what).stem
    return [
        msgspec.structs.replace(
            unit,
            id=msgspec.structs.replace(unit.id, name=pointed.words.get("name") or stem),
            sources=(source,),
        )
        for unit in _units(parent)
    ]


async def _look_over(spot: _Target, setting: Setting) -> tuple[Scan, Setting]:
    """The tree around a spot, and how things may be had there."""
    setting = replace(setting, maps=(*setting.maps, *checkouts_of(spot.config)))
    if spot.path is None:
        return Scan(NOWHERE, ()), setting
    async with Workshop(setting) as workshop:
        tree = await fetch(LocalSource(str(spot.root)), await workshop.access(None))
    files = without_ignored(tree.files, spot.root, spot.config)
    scan = Scan(spot.root, files, spot.path.relative_to(spot.root).as_posix())
    vendored = VendoredCharts(scan.files, scan.root)
    return scan, replace(setting, vendored=vendored, here=tree, read=scan.read_again)


async def _plain(units: list[Unit], scan: Scan, way: Way) -> Discovered:
    """Plain units, and all that they bring. What is brought may say what this repository is."""
    setting = replace(way.setting, seeks=None)
    homes = await find_homes(scan, setting)
    families = await _grown(units, scan, way, homes)
    brought = [member.unit for one in families for member in one.members[1:]]
    if brought and not homes.findings:
        homes = await find_homes(scan, setting, brought)
        families = await _grown(units, scan, way, homes) if homes.findings else families
    if all(len(one.members) == 1 and not one.members[0].declared.findings for one in families):
        return Discovered(families, scan=scan)
    return await _concluded(families, scan, way, homes.findings)


async def _grown(units: list[Unit], scan: Scan, way: Way, homes: Homes) -> tuple[Family, ...]:
    async with Workshop(homes.setting) as workshop:
        nodes = await way.growing(scan, workshop).grow(units)
    return tuple(family_of(node, scan) for node in nodes)


async def _repository(homes: Homes, way: Way) -> Discovered:
    """The families of a tree with unit objects.

    What they make known to Argo CD may be what their own sets generate Applications for: then they
    are looked for once more.
    """
    while True:
        families, told = await _families(homes, way)
        members = [member for family in families for member in family.members]
        declared = (*homes.scan.declared.values(), *(one.declared for one in members))
        sets = (one for each in declared for one in each.sets)
        known = {one.name for one in (*known_clusters(homes.scan, way.config), *way.clusters)}
        found = clusters_brought(sets, (one for each in members for one in each.documents))
        news = tuple(one for one in found if one.name and one.name not in known)
        if not news:
            break
        way = replace(way, clusters=(*way.clusters, *news))
    concluded = await _concluded(_sorted(families), homes.scan, way, told)
    return replace(concluded, is_repository=True)


async def _families(homes: Homes, way: Way) -> tuple[list[Family], tuple[Finding, ...]]:
    """The families of a tree, and what is said of how they hang together.

    What overlays name may be patched by them, so that it is not looked at before it is known that
    nobody brings it; a unit that renders its own file is where its tree begins.
    """
    scan = homes.scan
    async with Workshop(homes.setting) as workshop:
        growing = way.growing(scan, workshop)
        grow = growing.grow
        await growing.generate()
        loose = [one for one in scan.candidates if not is_included(one, scan) or holds_itself(one)]
        nodes = await grow(loose)
        entries, circles = entries_of(nodes)
        brought = {name for node in entries for name in family_of(node, scan).names}
        left = [one for one in scan.candidates if not {str(one.id), str(one.where)} & brought]
        nodes = [*entries, *await grow(overlays_over(left, scan))]
        entries, more = entries_of(nodes)
        families = [family_of(node, scan) for node in entries]
        over = [*folders_over(families, scan)]
        taken = {id(one) for _, mine in over for one in mine}
        parents = await grow([parent for parent, _ in over])
        families = [one for one in families if id(one) not in taken]
        families += [family_of(node, scan) for node in parents]
    return families, (*homes.findings, *circles, *more, *scan.broken)


async def _concluded(
    families: Sequence[Family], scan: Scan, way: Way, findings: Iterable[Finding]
) -> Discovered:
    """The families as their controllers would run them: by settings and projects of theirs."""
    found = find_settings((one for family in families for one in family.members), scan)
    settings = {**{one.name: one for one in way.config.settings}, **found}
    clusters = (*known_clusters(scan, way.config), *way.clusters)
    projects = Projects.of(scan, settings, clusters)
    await projects.look(families, way.lives)
    governed, refused = projects.govern(families)
    customs = read_customs(settings)
    kept, excluded = without_excluded(governed, customs.filters)
    scripts, ruled = find_rules(settings)
    told = [*findings, *findings_of(families, scan), *refused, *excluded]
    told += tell_strange(families, clusters)
    told += (*tell_settings(found), *customs.findings, *ruled)
    names = frozenset(one.name for one in clusters)
    return Discovered(tuple(kept), tuple(told), settings, False, scan, scripts, names)


def _sorted(families: Iterable[Family]) -> tuple[Family, ...]:
    return tuple(sorted(families, key=lambda one: (str(one.members[0].unit.where), one.entry)))


def choose(found: Discovered, pointed: Pointed) -> tuple[Family, ...]:
    """The families that are meant, and of them the units. Raises for a name that nobody has."""
    families = found.families
    if pointed.entry:
        families = tuple(one for one in families if is_called(one.members[0].unit, pointed.entry))
        if not families:
            known = [name for one in found.families for name in _names(one.members[0].unit)]
            raise _unknown("entry", pointed.entry, known)
    if not pointed.units:
        return families
    members = [member for family in families for member in family.members]
    for name in pointed.units:
        if not any(is_called(one.unit, name) for one in members):
            raise _unknown("unit", name, [part for one in members for part in _names(one.unit)])
    return tuple(part for one in families if (part := _narrow(one, pointed.units)).members)


def _narrow(family: Family, names: Sequence[str]) -> Family:
    """Those that are named, and all that they bring, in the order of those that bring them."""
    kept: dict[UnitId, Member] = {}
    for member in family.members:
        unit = member.unit
        if unit.parent in kept or is_called(unit, *names):
            kept[unit.id] = member
    return narrowed(family, tuple(kept.values()))


def is_called(unit: Unit, *names: str) -> bool:
    """Whether a unit goes by one of these names, or lies in a directory of that name."""
    place = unit.where.name if unit.where else ""
    return any(
        name in _names(unit) or place.startswith(f"{name.rstrip('/').removeprefix('./')}/")
        for name in names
    )


def _names(unit: Unit) -> list[str]:
    """How a unit may be called: its identity, its name, its file."""
    place = [unit.where.name] if unit.where else []
    return [str(unit.id), unit.id.name, f"{unit.id.namespace}/{unit.id.name}", *place]


def _unknown(noun: str, name: str, known: Sequence[str]) -> PlanError:
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean `{near[0]}`? " if near else ""
    return PlanError(
        "plan.named", f"there is no {noun} `{name}`", hint=f"{hint}`tidegate units` shows all"
    )
