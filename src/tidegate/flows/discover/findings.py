"""What is to be said of a repository: of its units, of their objects, of what was not rendered."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec import structs

from tidegate.dialect.argo.sets.reading import in_template
from tidegate.dialect.tracking import SET
from tidegate.documents import Document
from tidegate.errors import Place, SourceError, TidegateError, foreign
from tidegate.files import read_whole
from tidegate.flows.checking import check_units
from tidegate.flows.discover.families import Family, Member
from tidegate.flows.discover.scan import Scan
from tidegate.flows.rendering import Rendered, Unrendered
from tidegate.flows.rendering.outcome import SEALED_DATA, notes_of
from tidegate.model.finding import Finding, Severity
from tidegate.model.rendering import FluxDetails
from tidegate.model.source import ChartSource, LocalSource, OciSource, SourceObject
from tidegate.model.spelling import meant
from tidegate.model.unit import Unit, UnitId
from tidegate.source.urls import without_password


def findings_of(families: Collection[Family], scan: Scan) -> Iterator[Finding]:
    """What is to be said of the units themselves, of their objects, and of what was not rendered.

    Of entries, and of sets that nobody brings, the files speak.
    """
    yield from dict.fromkeys((*_of_sets(scan), *_of_families(families, scan)))


def _of_sets(scan: Scan) -> Iterator[Finding]:
    for name, generated in scan.generated.items():
        if not scan.declared[name].units:
            yield from generated.findings


def _of_families(families: Collection[Family], scan: Scan) -> Iterator[Finding]:
    ids = {name for family in families for name in family.ids}
    yield from _taken(families, scan)
    for family in families:
        yield from family.findings
        said = [*_of_entry(family, scan)]
        for member in family.members:
            said += member.declared.findings
            said += _of_documents(member, scan)
        yield from said
        wrong = {key for one in said if one.severity is Severity.ERROR for key in _keys(one)}
        guessed = {one.unit.id for one in family.members if isinstance(one.rendered, Unrendered)}
        for member in family.members:
            if wrong.isdisjoint(_known_by(member.unit)):
                told = not_rendered(member)
                spared = PATCHED if member.unit.parent in guessed else ()
                yield from (one for one in told if one.code not in spared)
            yield from _uncertain(member)
            yield from _unmet(member.unit, ids)
            yield from _itself(member)
    yield from _of_checkout(member for family in families for member in family.members)


def _of_documents(member: Member, scan: Scan) -> Iterator[Finding]:
    """What a server would say of a unit's objects, where the dialect has not said it already."""
    found = _checked(member.documents, scan)
    if member.unit.id.kind == SET:
        found = _once(map(in_template, found))
    yield from _news(found, member.declared.findings)


def _keys(finding: Finding) -> Iterator[tuple[str, int, str]]:
    """Its file and line, and whom it is about; nobody in particular where it does not say."""
    name, line = (finding.where.name, finding.where.line) if finding.where else ("", 0)
    yield from ((name, line, one) for one in finding.about or ("",))


def _known_by(unit: Unit) -> tuple[tuple[str, int, str], ...]:
    """By what a finding speaks of a unit."""
    name, line = (unit.where.name, unit.where.line) if unit.where else ("", 0)
    return (name, line, ""), (name, line, unit.id.called)


def _of_entry(family: Family, scan: Scan) -> Iterator[Finding]:
    documents = [family.own] if family.own is not None else []
    told = scan.units.find(documents).findings
    yield from told
    yield from _news(_checked(documents, scan), told)


def _checked(documents: Iterable[Document], scan: Scan) -> Iterable[Finding]:
    return check_units(documents, text_of=lambda name: read_whole(scan.root / name))


def _news(findings: Iterable[Finding], told: Iterable[Finding]) -> Iterator[Finding]:
    """Those that speak of a field of which nothing is told yet."""
    known = {(one.where.name, one.where.field) for one in told if one.where}
    for one in findings:
        if one.where is None or (one.where.name, one.where.field) not in known:
            yield one


def _taken(families: Iterable[Family], scan: Scan) -> Iterator[Finding]:
    """Applications that somebody has written, that a set generates, too, and that nobody else has.

    Where another entry brings the written one, the two entries are alternatives.
    """
    units = [member.unit for family in families for member in family.members]
    places = {str(unit.where) for unit in units}
    loose = (one for one in scan.candidates if not one.made_by and str(one.where) not in places)
    written = {one.id: one for one in loose}
    for unit in units:
        one = written.get(unit.id) if unit.made_by else None
        if one is not None:
            yield Finding(
                code="units.twice",
                severity=Severity.ERROR,
                sentence=f"`{unit.id}` is written down, and `{unit.made_by}` generates it, too",
                where=one.where,
                why=f"it is generated at {unit.where}, and the set writes over what is there",
                fix="remove one of the two, or give it another name",
            )


def _once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """What is wrong with one field of many Applications that one template makes is said once."""
    found: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        found.setdefault((one.code, one.where.field if one.where else ""), []).append(one)
    for first, *others in found.values():
        more = f"; the same goes for {len(others)} more of its set" if others else ""
        about = (first.about, *(one.about for one in others))
        names = tuple(name for many in about for name in many) if all(about) else ()
        yield structs.replace(first, why=f"{first.why}{more}", about=names)


def not_rendered(member: Member) -> Iterator[Finding]:
    """Why a unit of a repository has no objects."""
    if not isinstance(member.rendered, Unrendered) or not member.unit.id.kind:
        return  # what the user points at is an error, not a finding
    for error in member.rendered.errors:
        far = _far(member.unit, error)
        where = error.where if error.where and error.where.line else _own_place(member.unit, error)
        yield Finding(
            code=error.code,
            severity=Severity.ERROR,
            sentence=f"`{member.unit.id}` is not rendered{far}: {error.problem}",
            where=where,
            why="" if error.code in NAMED or error.where in {None, where} else f"at {error.where}",
            fix=error.hint,
        )


def _own_place(unit: Unit, error: TidegateError) -> Place | None:
    """What a unit says itself of that which is not there."""
    if unit.where is None or error.code not in NAMED:
        return unit.where
    if unit.id.kind in PATHS and error.code == "source.path":
        return unit.where.at(PATHS[unit.id.kind])
    if unit.id.kind == "Kustomization":
        return unit.where.at("spec.sourceRef")
    named = {one.source.kind for one in unit.sources if isinstance(one.source, SourceObject)}
    if unit.id.kind != "HelmRelease" or not named:
        return unit.where
    return unit.where.at("spec.chartRef" if named & REFERRED else "spec.chart.spec.sourceRef")


def _far(unit: Unit, error: TidegateError) -> str:
    """What could not be had, where that is why."""
    far = [
        str(one.source) for one in unit.sources if isinstance(one.source, ChartSource | OciSource)
    ]
    if not far or not isinstance(error, SourceError):
        return ""
    return f", as it needs {' and '.join(map(without_password, far))}"


PATCHED = frozenset({"render.data", "render.sops.unasked", "render.substitute.missing"})
"""Codes of what a unit may have from whoever brings it, where nobody knows what that comes to."""
NAMED = frozenset({"source.object", "source.path", "source.undeclared"})
"""Codes of what units name, and what is not there."""
PATHS = {"Kustomization": "spec.path", "Application": "spec.source.path"}
"""Where units say which directory they want."""
REFERRED = frozenset({"OCIRepository", "HelmChart", "ExternalArtifact"})
NOTES = frozenset({"render.lookup", SEALED_DATA})
"""What may be as it is meant, or is told elsewhere."""


def _uncertain(member: Member) -> Iterator[Finding]:
    """What is not known of a unit that was rendered."""
    if isinstance(member.rendered, Rendered) and member.unit.id.kind:
        for error in notes_of(member.rendered):
            yield Finding(
                code=error.code,
                severity=Severity.NOTE if error.code in NOTES else Severity.WARNING,
                sentence=f"`{member.unit.id}`: {error.problem}",
                where=error.where or member.unit.where,
                fix=error.hint,
            )


def _unmet(unit: Unit, known: Collection[UnitId]) -> Iterator[Finding]:
    for one in unit.dependencies:
        if one.unit is not None and one.unit not in known:
            yield Finding(
                code="units.unknown",
                severity=Severity.ERROR,
                sentence=not_there(unit, one.unit),
                where=one.where,
                why="it never starts: what it waits for never becomes ready",
                fix=_instead(one.unit, known),
            )


def not_there(unit: Unit, wanted: UnitId) -> str:
    """What is said where a unit depends on one that is not there."""
    return f"`{unit.id}` depends on `{wanted}`, which is not there"


def _instead(wanted: UnitId, known: Collection[UnitId]) -> str:
    """What may be meant by the name of a unit that is not there."""
    if other := _namesake(wanted, known):
        return f"`tidegate.dev/depends-on: {other}` waits for a unit of another kind"
    if near := _slip_of(wanted, known):
        return f"did you mean `{near}`?"
    return "correct the name in `dependsOn`, or add that unit"


def slips_of(unit: Unit, known: Collection[UnitId]) -> Iterator[UnitId]:
    """Those that it depends on by a name that is nearly that of another one."""
    named = (one.unit for one in unit.dependencies if one.unit is not None)
    return (one for one in named if one not in known and _is_slip(one, known))


def _is_slip(wanted: UnitId, known: Collection[UnitId]) -> bool:
    return (_namesake(wanted, known) or _slip_of(wanted, known)) is not None


def _slip_of(wanted: UnitId, known: Collection[UnitId]) -> UnitId | None:
    """The unit of the same kind whose name, or namespace, was mistaken; if there is one."""
    kin = [one for one in sorted(known) if (one.kind, one.cluster) == (wanted.kind, wanted.cluster)]
    names = {one.name: one for one in kin if one.namespace == wanted.namespace}
    elsewhere = [one for one in kin if one.name == wanted.name]
    near = names.get(meant(wanted.name, names))
    return near or (elsewhere[0] if len(elsewhere) == 1 else None)


def _namesake(wanted: UnitId, known: Collection[UnitId]) -> UnitId | None:
    """A unit of another kind that may be meant: `dependsOn` names those of one kind alone."""
    others = (one for one in sorted(known) if one.kind not in {"", wanted.kind})
    alike = [one for one in others if (one.cluster, one.name) == (wanted.cluster, wanted.name)]
    near = [one for one in alike if one.namespace == wanted.namespace]
    return near[0] if near else alike[0] if len(alike) == 1 else None


def _of_checkout(members: Iterable[Member]) -> Iterator[Finding]:
    """Of the source that nobody declares, and that is taken for this repository."""
    taken = [
        (member.unit, one.path)
        for member in members
        if isinstance(member.rendered, Rendered)
        for one in member.unit.sources
        if isinstance(one.source, LocalSource) and isinstance(one.details, FluxDetails)
    ]
    for unit, path in taken[:1]:
        others = f" and {len(taken) - 1} more" if len(taken) > 1 else ""
        yield Finding(
            code="units.checkout",
            severity=Severity.NOTE,
            sentence=f"the source `flux-system` of `{unit.id}`{others} is taken for this directory",
            where=unit.where,
            why=f"nothing here declares it, and `{foreign(path)}` is here",
            fix="declare the source, where it is another repository",
        )


def _itself(member: Member) -> Iterator[Finding]:
    """Flux is brought up so; of an Application it may not be meant."""
    unit = member.unit
    if unit.id.kind == "Application" and any(one.id == unit.id for one in member.declared.units):
        yield Finding(
            code="units.itself",
            severity=Severity.NOTE,
            sentence=f"`{unit.id}` brings itself",
            where=unit.where,
            why="its own object lies in what it renders; it is planned once",
        )
