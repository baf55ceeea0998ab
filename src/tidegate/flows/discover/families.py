"""Units and the units that they bring: who is whose parent, and where a repository begins.

    scan ── candidates         units as they stand in files
      │
    render each ── children    unit objects in what it renders
      │
    entries ── families        what nobody brings, and all that comes of it

Two entries may bring one identity: dev and prod of one repository. They are alternatives, so that
each family has units of its own.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable, Iterable, Iterator

import msgspec

from tidegate.dialect.declared import Declared
from tidegate.documents import Document
from tidegate.errors import Place
from tidegate.flows.discover.scan import Scan
from tidegate.flows.discover.sets import GeneratedSet, Generating
from tidegate.flows.discover.surroundings import Neighbourhood
from tidegate.flows.rendering import Rendered, Unrendered
from tidegate.flows.rendering.trees import FindData
from tidegate.model.finding import Finding, Severity
from tidegate.model.rendering import Detected, Directory, FluxDetails, Overlay
from tidegate.model.source import LocalSource
from tidegate.model.unit import Destination, Unit, UnitId, UnitSource

NOTHING = Declared()
Render = Callable[[Unit, FindData], Awaitable[Rendered | Unrendered]]


class Member(msgspec.Struct, frozen=True):
    """A unit of a family, with what it renders to and whom that brings."""

    unit: Unit
    rendered: Rendered | Unrendered
    declared: Declared = NOTHING

    @property
    def documents(self) -> tuple[Document, ...]:
        return self.rendered.documents if isinstance(self.rendered, Rendered) else ()

    @property
    def bases(self) -> tuple[str, ...]:
        """What its overlays take from elsewhere."""
        return self.rendered.bases if isinstance(self.rendered, Rendered) else ()


def refuse_unrendered(members: Iterable[Member]) -> None:
    """Raise where what the user points at could not be rendered.

    A unit of a repository that could not is a finding, and others go on.
    """
    errors = [
        error
        for one in members
        if isinstance(one.rendered, Unrendered) and not one.unit.id.kind
        for error in one.rendered.errors
    ]
    if errors:
        raise ExceptionGroup("not rendered", errors)


class Family(msgspec.Struct, frozen=True):
    """An entry, and everything that comes of it, parents before their children.

    `own`: the object of the entry itself, where a file has it.
    """

    entry: UnitId
    members: tuple[Member, ...]
    findings: tuple[Finding, ...] = ()
    own: Document | None = None

    @property
    def entry_name(self) -> str:
        """What tells this entry from others: its file, else its identity."""
        where = self.members[0].unit.where
        return where.name if where else str(self.entry)

    @property
    def ids(self) -> frozenset[UnitId]:
        return frozenset(one.unit.id for one in self.members)

    @property
    def names(self) -> frozenset[str]:
        """Its units, by their identities and by their places."""
        return frozenset(name for one in self.members for name in _names(one.unit))


class _Node(msgspec.Struct):
    """A unit as it is brought somewhere, rendered once."""

    member: Member
    children: list[_Node] = msgspec.field(default_factory=list)


class Growing:
    """Families that grow: every unit that is met is rendered, and those that it brings are met.

    What is the same in two places is rendered once, unless it takes data from what is around it.
    """

    def __init__(self, scan: Scan, render: Render, generating: Generating) -> None:
        self._scan = scan
        self._generating = generating
        self._render = render
        self._rendered: dict[tuple[bytes, int], Rendered | Unrendered] = {}
        self._locks: dict[tuple[bytes, int], asyncio.Lock] = {}
        self._declared: dict[tuple[int, str], Declared] = {}
        self._sets: dict[tuple[UnitId, Place | None], GeneratedSet] = {}
        """Sets that stand in files, by their units as candidates."""

    async def generate(self) -> None:
        """Whatever sets that stand in files generate."""
        for name, declared in self._scan.declared.items():
            if declared.sets and self._scan.is_below(name):
                made = [await self._generating.generate(one) for one in declared.sets]
                self._sets |= {(one.unit.id, one.unit.where): one for one in made}
                units = (*declared.units, *(one.unit for one in made))
                self._scan.generated[name] = msgspec.structs.replace(declared, units=units)

    async def grow(self, units: Iterable[Unit]) -> list[_Node]:
        """The nodes of these units, each with all that comes of it."""
        nowhere = Neighbourhood(self._scan)
        return await self._grow_all(units, nowhere, ())

    async def _grow_all(
        self, units: Iterable[Unit], around: Neighbourhood, above: tuple[UnitId, ...]
    ) -> list[_Node]:
        """Those that may bring others begin: while tools render them, the rest is looked at."""
        units = tuple(units)
        async with asyncio.TaskGroup() as group:
            tasks = {
                at: group.create_task(self._grow(units[at], around, (*above, units[at].id)))
                for at in sorted(range(len(units)), key=lambda at: not self._may_bring(units[at]))
            }
        return [tasks[at].result() for at in range(len(units))]

    def _may_bring(self, unit: Unit) -> bool:
        """Whether files with units lie below one of its paths."""
        return any(one.path in self._scan.declaring for one in unit.sources)

    async def _grow(self, unit: Unit, around: Neighbourhood, above: tuple[UnitId, ...]) -> _Node:
        written = self._sets.get((unit.id, unit.where)) if len(above) == 1 else None
        if written is not None:
            return await self._grow_set(unit, written, around, above)
        unit = around.with_sources(unit)
        rendered = await self._render_once(unit, around)
        if isinstance(rendered, Unrendered):
            found = Declared(units=tuple(_seen_below(unit, self._scan)))
        else:
            found = self._find_units(rendered, unit.destination.namespace)
        member = Member(unit, rendered, found)
        inside = Neighbourhood(self._scan, member.documents, found, around)
        children = [_child(one, unit) for one in found.units]
        fresh = [one for one in children if one.id not in above]
        grown = await self._grow_all(fresh, inside, above) if fresh else []
        for one in found.sets:
            made = await self._generating.generate(one, unit.destination.cluster)
            child = _child(made.unit, unit)
            grown.append(await self._grow_set(child, made, inside, (*above, child.id)))
        return _Node(member, grown)

    async def _grow_set(
        self, unit: Unit, made: GeneratedSet, around: Neighbourhood, above: tuple[UnitId, ...]
    ) -> _Node:
        """A set, which is not rendered: its Applications are what it generates."""
        member = Member(unit, made.rendered, made.declared)
        children = [_child(one, unit) for one in made.declared.units]
        fresh = [one for one in children if one.id not in above]
        grown = await self._grow_all(fresh, around, above) if fresh else []
        return _Node(member, grown)

    def _find_units(self, rendered: Rendered, namespace: str) -> Declared:
        """Whom it brings; what was rendered stays, so that it is known again."""
        if (key := (id(rendered), namespace)) not in self._declared:
            self._declared[key] = self._scan.units.find(rendered.documents, namespace)
        return self._declared[key]

    async def _render_once(self, unit: Unit, around: Neighbourhood) -> Rendered | Unrendered:
        details = (one.details for one in unit.sources)
        takes = any(isinstance(one, FluxDetails) and one.takes_data for one in details)
        text = msgspec.json.encode((unit.id, unit.sources, unit.destination), enc_hook=str)
        key = (text, id(around) if takes else 0)
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key not in self._rendered:
                self._rendered[key] = await self._render(unit, around.find_data(unit))
        return self._rendered[key]


def _seen_below(unit: Unit, scan: Scan) -> Iterator[Unit]:
    """Whom a unit would bring that cannot be rendered, by the files in its directory.

    Those below the directory of another of them are that one's.
    """
    seen = [*_written_below(unit, scan)]
    for one in seen:
        place = one.where.name if one.where else ""
        others = (path for other in seen if other.id != one.id for path in _paths_of(other))
        if not any(place.startswith(f"{path}/") for path in others):
            yield one


def _paths_of(unit: Unit) -> Iterator[str]:
    return (one.path for one in unit.sources if one.path not in {"", "."})


def _written_below(unit: Unit, scan: Scan) -> Iterator[Unit]:
    for source in unit.sources:
        asked = source.request
        request = asked.directory if isinstance(asked, Detected) else asked
        if not isinstance(request, Directory | Overlay) or request.path == ".":
            continue
        deep = isinstance(request, Overlay) or request.recurse
        for name, declared in scan.declared.items():
            inside = name.startswith(f"{request.path}/")
            if inside and (deep or posixpath.dirname(name) == request.path):
                yield from declared.units


def _child(unit: Unit, parent: Unit) -> Unit:
    """The unit as its parent brings it: into the cluster that its parent deploys to."""
    home, replace = parent.destination.cluster, msgspec.structs.replace
    unit = replace(unit, parent=parent.id)
    if not home:
        return unit
    return replace(
        unit,
        id=replace(unit.id, cluster=home),
        destination=replace(unit.destination, cluster=unit.destination.cluster or home),
        dependencies=tuple(
            one if one.unit is None else replace(one, unit=replace(one.unit, cluster=home))
            for one in unit.dependencies
        ),
    )


def family_of(node: _Node, scan: Scan) -> Family:
    """All that comes of a node. A unit that two bring is the first one's, and that is told."""
    members: dict[UnitId, Member] = {}
    findings: list[Finding] = []
    pending = [node]
    for one in pending:  # it grows meanwhile
        known = members.setdefault(one.member.unit.id, one.member)
        if known is not one.member:
            findings.append(_brought_twice(known.unit, one.member.unit))
            continue
        pending += one.children
    unit = node.member.unit
    written = scan.documents.get(unit.where.name, ()) if unit.where else ()
    own = next((one for one in written if one.place == unit.where), None)
    return Family(unit.id, tuple(members.values()), tuple(findings), own)


def _brought_twice(first: Unit, second: Unit) -> Finding:
    where = first.where or (first.parent and Place(str(first.parent)))
    return Finding(
        code="units.twice",
        severity=Severity.ERROR,
        sentence=f"`{second.id}` is brought twice: by `{first.parent}` and by `{second.parent}`",
        where=second.where,
        why="whoever applies it last wins, and each takes back what the other has written",
        fix=f"remove one of the two, or give it another name; the first is at {where}",
    )


def entries_of(nodes: list[_Node]) -> tuple[list[_Node], list[Finding]]:
    """Those that no other one brings. Of those that bring each other in a circle, the first.

    A unit is known by its identity; a patch may have given it another, but its place is the same.
    """
    numbers: dict[str, list[int]] = {}
    for at, node in enumerate(nodes):
        for name in _names(node.member.unit):
            numbers.setdefault(name, []).append(at)
    brings: list[set[int]] = []
    parents: list[set[int]] = [set() for _ in nodes]
    for at, node in enumerate(nodes):
        names = {name for one in _offspring(node) for name in _names(one.unit)}
        own = _names(node.member.unit)
        found = {number for name in names for number in numbers.get(name, ())}
        alike = {number for name in own for number in numbers[name]}
        brings.append(found - alike)
        for number in found - alike:
            parents[number].add(at)
    entries, findings = [], list[Finding]()
    for at, node in enumerate(nodes):
        circle = {one for one in parents[at] if at in brings[one] and one in brings[at]}
        if not parents[at]:
            entries.append(node)
        elif circle == parents[at] and at < min(circle):
            entries.append(node)
            findings.append(_circle(node.member.unit, nodes[min(circle)].member.unit))
    return entries, findings


def _names(unit: Unit) -> tuple[str, ...]:
    """By what a unit is known again: its identity, and its place in a file."""
    place = unit.where
    return (str(unit.id), str(place)) if place and place.line else (str(unit.id),)


def _circle(unit: Unit, other: Unit) -> Finding:
    return Finding(
        code="units.circle",
        severity=Severity.WARNING,
        sentence=f"`{unit.id}` and `{other.id}` bring each other: neither is the beginning",
        where=unit.where,
        fix=f"`{unit.id}` is taken for it; remove one of the two from what the other renders",
    )


def _offspring(node: _Node) -> Iterator[Member]:
    seen: set[int] = set()
    pending = [*node.children]
    while pending:
        one = pending.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one.member
            pending += one.children


def is_included(unit: Unit, scan: Scan) -> bool:
    """Whether an overlay names the file of a unit."""
    return unit.where is not None and bool(scan.inclusions.by(unit.where.name))


def holds_itself(unit: Unit) -> bool:
    """Whether a unit's own file lies in a directory that it renders."""
    name = unit.where.name if unit.where else ""
    paths = [one.path for one in unit.sources if one.request is not None]
    return any(path == "." or name.startswith(f"{path}/") for path in paths)


def overlays_over(units: Iterable[Unit], scan: Scan) -> list[Unit]:
    """The topmost overlays that bring units which nobody else does."""
    found: dict[str, Unit] = {}
    for unit in units:
        for top in scan.inclusions.tops_of(unit.where.name) if unit.where else ():
            found.setdefault(top, _over(top, scan, Overlay(path=top), unit.id.namespace))
    return list(found.values())


def folders_over(families: Iterable[Family], scan: Scan) -> Iterator[tuple[Unit, list[Family]]]:
    """One parent for the entries of a directory that nobody applies, where there are several.

    Those that bring the same units are alternatives, and belong to nobody together.
    """
    written: dict[str, list[str]] = {}
    for file in scan.documents:
        written.setdefault(posixpath.dirname(file) or ".", []).append(file)
    folders: dict[str, list[Family]] = {}
    for family in families:
        where = family.members[0].unit.where
        if where is not None and family.entry.kind:
            folders.setdefault(posixpath.dirname(where.name) or ".", []).append(family)
    for path, mine in folders.items():
        names = [name for one in mine for name in one.ids]
        if len(mine) > 1 and len(names) == len(set(names)):
            request = Directory(path=path, files=tuple(written[path]))
            yield _over(path, scan, request, mine[0].entry.namespace), mine


def _over(path: str, scan: Scan, request: Overlay | Directory, namespace: str) -> Unit:
    """A parent that nobody wrote down; its name is the path of what it applies."""
    name = scan.root.name if path == "." else path.replace("/", "-")
    return Unit(
        id=UnitId.plain("", name),
        destination=Destination("", namespace),
        sources=(UnitSource(source=LocalSource(str(scan.root)), request=request),),
        where=Place(scan.overlays.get(path, path)),
    )
