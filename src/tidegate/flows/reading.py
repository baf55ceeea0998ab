"""What rendered units ask for, by the words of their dialects; and what is wrong with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.dialect.manifests import read_sound_manifests
from tidegate.dialect.tracking import SET
from tidegate.documents import Document, duplicate_errors
from tidegate.documents import read as read_text
from tidegate.errors import DocumentError, PlanError, RenderError, TidegateError
from tidegate.files import Within
from tidegate.flows.bringing import BroughtUnits, KnownKinds
from tidegate.flows.discover.families import Member, refuse_unrendered
from tidegate.flows.field_places import SourceFiles
from tidegate.flows.projects import refused_objects
from tidegate.flows.refusals import find_refusals
from tidegate.flows.rendering import Rendered, Unrendered
from tidegate.flows.rendering.outcome import notes_of
from tidegate.flows.repeats import with_repeats
from tidegate.flows.session import Session
from tidegate.flows.setting_aside import faults_of
from tidegate.health.budget import budget
from tidegate.model.finding import Finding, Severity
from tidegate.model.manifest import Manifests
from tidegate.model.rendering import Detected, Directory
from tidegate.model.source import LocalSource
from tidegate.model.unit import Unit, UnitId, UnitSource
from tidegate.plan.build import build_plan
from tidegate.render.plain import manifest_files


class Read(msgspec.Struct, frozen=True):
    """What a unit deploys, and what it was rendered to."""

    manifests: Manifests
    rendered: Rendered

    @property
    def is_whole(self) -> bool:
        """Whether all of its objects are known."""
        rendered = self.rendered
        return not (rendered.locked or rendered.weakened or rendered.unmet)

    @property
    def notes(self) -> tuple[TidegateError, ...]:
        """What is not certain; that there is nothing at all is rarely meant.

        Of a unit of a repository it is told where that is found.
        """
        unit, notes = self.manifests.unit, notes_of(self.rendered)
        sources = unit.sources
        if self.rendered.documents or notes or not sources:
            return () if unit.id.kind else notes
        request, named, what = sources[0].request, str(sources[0].source), "directory"
        if isinstance(request, Directory) and request.names:
            named, what = request.files[0], "file"
        problem = f"`{named}` has no objects"
        hint = f"look whether it is the right {what}"
        return (RenderError("render.nothing", problem, hint=hint), *_passed_over(sources[0]))


def _passed_over(source: UnitSource) -> Iterator[TidegateError]:
    """What is wrong with files of a directory that were taken for no manifests, as Argo CD does."""
    request = source.request
    directory = request.directory if isinstance(request, Detected) else request
    if not isinstance(directory, Directory) or not isinstance(source.source, LocalSource):
        return
    directory = msgspec.structs.replace(directory, root=Path(source.source.path), path=source.path)
    within = Within(directory.root)
    for name in manifest_files(directory, within):
        try:
            with within.open(name) as file:
                read_text(file.read(directory.size_limit), name)
        except DocumentError as error:
            yield error


class ReadUnits(msgspec.Struct):
    """What units ask for, those of which that is not known, and what is said of these.

    `sound`: of units at fault, the objects with which nothing is wrong. `errors`: what is wrong
    with that which the user points at.
    """

    read: list[Read] = msgspec.field(default_factory=list)
    faulty: dict[UnitId, Member] = msgspec.field(default_factory=dict)
    findings: list[Finding] = msgspec.field(default_factory=list)
    refused: dict[UnitId, str] = msgspec.field(default_factory=dict)
    sound: list[Manifests] = msgspec.field(default_factory=list)
    errors: list[TidegateError] = msgspec.field(default_factory=list)

    def set_aside(self, member: Member, read: Read, wrong: list[TidegateError]) -> None:
        """A unit with something wrong; what is sound of it can be looked at."""
        unit = member.unit
        self.faulty[unit.id] = member
        self.sound.append(read.manifests)
        if unit.id.kind:
            self.findings += faults_of(unit, wrong)
        else:
            self.errors += wrong


async def find_more(reading: ReadUnits, session: Session) -> tuple[Finding, ...]:
    """What else is wrong where a unit is at fault, so that everything is told at once.

    Raises all of it where what is wrong is what the user points at.
    """
    if not reading.sound:
        return ()
    together = [*(one.manifests for one in reading.read), *reading.sound]
    known = {one.unit.id for one in together}
    met = [without_strangers(one, known) for one in together]
    findings, _ = await find_refusals(build_plan(met, (), budget=budget), session)
    if not reading.errors:
        return findings
    more = [error_of(one) for one in findings if one.severity is Severity.ERROR]
    placed = [*SourceFiles(session.tree).placed(reading.errors), *more]
    raise placed[0] if len(placed) == 1 else ExceptionGroup("objects are at fault", placed)


def error_of(finding: Finding) -> PlanError:
    """A finding, where it keeps a verb from its work."""
    hint = finding.why or finding.fix
    return PlanError(finding.code, finding.sentence, where=finding.where, hint=hint)


async def read_members(members: Iterable[Member], session: Session) -> tuple[Read, ...]:
    """What the rendered units of these ask for."""
    return tuple((await read_all(members, session)).read)


async def read_all(members: Iterable[Member], session: Session) -> ReadUnits:
    """Raises where what the user points at could not be rendered.

    A unit that could not be read is at fault, and so is what it would bring.
    """
    members = list(members)
    refuse_unrendered(members)
    brought = BroughtUnits.of(one.unit for one in members)
    documents: dict[str, list[Document]] = {}
    for one in members:
        documents.setdefault(one.unit.destination.cluster, []).extend(one.documents)
    scopes = {
        name: KnownKinds.of(await session.kinds(name), mine, session.craft.rules.known)
        for name, mine in documents.items()
    }
    found = ReadUnits()
    for member in members:
        unit, rendered = member.unit, member.rendered
        if isinstance(rendered, Unrendered) or unit.parent in found.faulty or unit.refused:
            found.faulty[unit.id] = member
            found.refused |= {unit.id: unit.refused} if unit.refused else {}
            continue
        read, wrong = _read(unit, rendered, brought, scopes[unit.destination.cluster])
        if wrong:
            found.set_aside(member, read, wrong)
        else:
            await _take(member, read, found, session)
    return found


def _twice(unit: Unit, rendered: Rendered) -> Iterator[TidegateError]:
    """Keys that are written twice in files that the user points at; Kubernetes takes the last."""
    for document in rendered.documents if not unit.id.kind else ():
        yield from duplicate_errors(document)


async def _take(member: Member, read: Read, found: ReadUnits, session: Session) -> None:
    """A unit with which nothing is wrong, unless its project says so."""
    manifests, repeats = with_repeats(read.manifests)
    found.findings += repeats
    told = await refused_objects(manifests, session)
    if told:
        found.refused[member.unit.id] = "its project does not allow all of it"
        found.faulty[member.unit.id] = member
        found.findings += told
    else:
        found.read.append(replace(read, manifests=manifests))


def without_strangers(wanted: Manifests, known: Collection[UnitId]) -> Manifests:
    """Without dependencies on units that are not in the plan: of those it is told."""
    unit = wanted.unit
    kept = tuple(one for one in unit.dependencies if one.unit is None or one.unit in known)
    if kept == unit.dependencies:
        return wanted
    return msgspec.structs.replace(wanted, unit=msgspec.structs.replace(unit, dependencies=kept))


def _emptied(wanted: Manifests) -> PlanError | None:
    """What is said where pruning would take all of a unit away because nothing is left of it."""
    unit = wanted.unit
    guarded = unit.policy.prunes and not unit.policy.allows_empty and unit.id.kind != SET
    if not guarded or wanted.manifests or not unit.sources:
        return None
    problem = f"`{unit.id}` has no objects, and pruning would delete all that it has brought"
    hint = "look whether it is the right directory; `--allow-empty` goes on"
    return PlanError("plan.empty", problem, where=unit.where, hint=hint)


def _read(
    unit: Unit, rendered: Rendered, brought: BroughtUnits, scope: KnownKinds
) -> tuple[Read, list[TidegateError]]:
    """What a unit asks for, and what is wrong with it."""
    found, wrong = read_sound_manifests(
        unit, rendered.documents, scope.is_namespaced, rendered.hidden
    )
    settled = (scope.settled(one, unit) for one in found.manifests)
    manifests = tuple(brought.by(one, unit, scope) for one in settled)
    read = Read(msgspec.structs.replace(found, manifests=manifests), rendered)
    errors: list[TidegateError] = [*_twice(unit, rendered), *wrong]
    # Of a release there may be hooks alone, and none of them for what is about to be done.
    has_hooks = unit.policy.release is not None and bool(rendered.documents)
    is_sound = not errors and read.is_whole and not has_hooks
    if is_sound and (emptied := _emptied(read.manifests)):
        errors.append(emptied)
    return read, errors
