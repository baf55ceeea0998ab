"""What units render to: charts, overlays, and directories of manifests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from tidegate.documents import Document, FieldPath, duplicate_errors
from tidegate.errors import TidegateError
from tidegate.flows.discover import is_called
from tidegate.flows.entering import find
from tidegate.flows.misspelling import find_misspellings
from tidegate.flows.pointing import Pointed
from tidegate.flows.rendering import Rendered, Setting, Unrendered
from tidegate.flows.rendering.workshop import WorkerCrew
from tidegate.flows.weakness import weakness_of
from tidegate.model.finding import Finding
from tidegate.model.unit import UnitId
from tidegate.render.sops import Keys
from tidegate.report.findings import as_warning
from tidegate.source import Cache, default_cache_root, read_repository_map

AT_ONCE = 16
"""Paths on their way at a time; what they wait for is limited elsewhere."""


def own_setting(*, offline: bool = False, maps: Iterable[str] = ()) -> Setting:
    """The user's own cache, keys and credentials. A map is `URL=PATH`."""
    return Setting(
        cache=Cache(default_cache_root()),
        keys=Keys.from_environment(os.environ),
        environment=os.environ,
        maps=tuple(read_repository_map(text) for text in maps),
        offline=offline,
    )


class UnitPart(msgspec.Struct, frozen=True):
    """A unit, the entry that brings it, what it renders to, and what is said of it alone."""

    result: Rendered | Unrendered
    unit: UnitId | None = None
    entry: UnitId | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def objects(self) -> list[tuple[Document, tuple[FieldPath, ...]]]:
        """Each with the fields that stood encrypted."""
        if isinstance(self.result, Unrendered):
            return []
        return [*zip(self.result.documents, self.result.hidden, strict=True)]

    @property
    def errors(self) -> tuple[TidegateError, ...]:
        """Why it was not rendered, or not all of it."""
        if isinstance(self.result, Unrendered):
            return self.result.errors
        return tuple(one.why for one in self.result.weakened)

    @property
    def notes(self) -> tuple[TidegateError, ...]:
        """What no key opens, and what was changed by hand."""
        result = self.result
        return () if isinstance(result, Unrendered) else (*result.locked, *result.suspect)


class Parts(msgspec.Struct, frozen=True):
    """Unit by unit what a path or an address renders to, and what is to be said of it."""

    parts: tuple[UnitPart, ...]
    findings: tuple[Finding, ...] = ()


async def render_pointed(pointed: Iterable[Pointed], setting: Setting) -> tuple[Parts, ...]:
    """What each path or address renders to, for no cluster in particular; several at once."""
    room = asyncio.Semaphore(AT_ONCE)

    async def render(one: Pointed, setting: Setting) -> Parts:
        async with room:
            return await _render(one, setting)

    async with (
        WorkerCrew(setting.cores, offline=setting.offline) as crew,
        asyncio.TaskGroup() as group,
    ):
        shared = replace(setting, crew=crew)
        tasks = [group.create_task(render(one, shared)) for one in pointed]
    return tuple(task.result() for task in tasks)


async def _render(pointed: Pointed, setting: Setting) -> Parts:
    try:
        found = await find(pointed, setting)
    except TidegateError as error:
        return Parts((UnitPart(Unrendered((error,))),))
    chosen = [
        (family.entry, member)
        for family in found.families
        for member in family.members
        if not pointed.units or is_called(member.unit, *pointed.units)
    ]
    findings = found.findings
    if pointed.units:
        meant = [one for _, one in chosen]
        misspelt = find_misspellings(meant, found.scan.root)
        findings = tuple(dict.fromkeys((*found.findings_of(meant), *misspelt)))
    said = found.findings_by_unit
    parts = (
        UnitPart(one.rendered, one.unit.id, entry, said.get((one.unit.id, one.unit.where), ()))
        for entry, one in chosen
    )
    unknown = weakness_of(one for _, one in chosen)
    twice = (
        as_warning(error)
        for _, one in chosen
        if not one.unit.id.kind
        for document in one.documents
        for error in duplicate_errors(document)
    )
    return Parts(tuple(parts), (*findings, *unknown, *twice))
