"""Everything that rules look at, put together from what was found and planned."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace as replace_struct

from tidegate.documents import Document
from tidegate.documents import read as read_documents
from tidegate.errors import DocumentError, Place
from tidegate.files import StrayPathError, Within
from tidegate.flows.absences import NAMESPACE
from tidegate.flows.brought_objects import BroughtObjects
from tidegate.flows.config import config_at
from tidegate.flows.discover.scan import Scan
from tidegate.flows.entering import Found
from tidegate.flows.graph import Graphed, homes_of, spans_of
from tidegate.flows.lint_course import GraphCourse
from tidegate.flows.reading import Read
from tidegate.flows.session import Session
from tidegate.graph.happening import unseen_in
from tidegate.graph.missing import missing
from tidegate.graph.reach import StepReach
from tidegate.health.judge import ARGO
from tidegate.lint.order import StepOrder
from tidegate.lint.rules.files import targets_of
from tidegate.lint.scene import Actor, Body, HasCheck, Identity, LintScene, Octal, SceneFile
from tidegate.model.absence import Absence, Lacking
from tidegate.model.config import Switch
from tidegate.model.graph import Graph, GraphNode
from tidegate.model.manifest import Manifest
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.model.patterns import late
from tidegate.model.reading import text
from tidegate.model.unit import Unit, UnitId
from tidegate.report.assumed import called
from tidegate.report.lint.report import Assumed, Unknown

SOPS_RULES = ".sops.yaml"
HEALTH = "resource.customizations.health."
LARGEST = 1_000_000
TEXTS = (".yaml", ".yml", ".json")
_SEAL = late(rb"^sops:\s*(?:#.*)?$|\"sops\"\s*:", re.MULTILINE)
_OCTAL = late(
    rb"^\s*(?:-\s+)?[\"']?([\w./-]*(?:[pP]hase|[wW]ave|[bB]and))[\"']?\s*:\s*(0[0-7]+)\s*(?:#.*)?$",
    re.MULTILINE,
)


class LintedScene(msgspec.Struct, frozen=True):
    """A scene, how much there is, and what is not known of it."""

    scene: LintScene
    units: int
    objects: int
    unknown: tuple[Unknown, ...] = ()


def look_around(
    found: Found,
    session: Session,
    graphed: Graphed | None,
    read: Iterable[Read],
    *,
    greenfield: bool = False,
) -> LintedScene:
    """The scene of these families."""
    read = tuple(read)
    scan, files = found.scan, frozenset(found.scan.files)
    has_check = _checks(session, found.settings)
    actors = tuple(actor for one in read for actor in _actors(one))
    sealed, octals = _texts(scan)
    graph = _checked(graphed.graph, actors, has_check) if graphed else Graph()
    overlays = tuple(_files(scan, scan.overlays.values()))
    scene = LintScene(
        actors=actors,
        units=_units(found, read),
        order=StepOrder(graphed.planned.plan) if graphed else StepOrder(),
        graph=graph,
        course=GraphCourse(graph),
        luckless=GraphCourse(graph, lucky=False) if unseen_in(graph, StepReach(graph)) else None,
        known=session.craft.rules.known,
        has_check=has_check,
        settings=found.settings,
        unit_objects=dict(_own_objects(found)),
        overlays=overlays,
        unshared=_unshared(scan, overlays),
        sealings=tuple(_files(scan, _named(scan, SOPS_RULES))),
        sealed=sealed,
        values=tuple(_files(scan, _named(scan, "values.yaml"))),
        octals=octals,
        documents={one.manifests.unit.id: one.rendered.documents for one in read},
        hidden=frozenset(one.identity for one in actors if one.manifest.hidden),
        files=files,
        whole=frozenset(one.manifests.unit.id for one in read if one.is_whole),
        bands=config_at(scan.root).lint.bands if scan.files else LintScene().bands,
        greenfield=greenfield,
        spans=_spans(graphed, session),
        missing=missing(graph),
        made=frozenset(_made(read, session)),
    )
    return LintedScene(scene, len(found.members), len(actors), tuple(_unknown(read)))


def _spans(graphed: Graphed | None, session: Session) -> dict[UnitId, Ms]:
    """Only where a window may be too short for one."""
    if graphed is None or not any(one.policy.windows for one in graphed.planned.plan.units):
        return {}
    return spans_of(graphed, session.target.simulation)


def _made(read: Iterable[Read], session: Session) -> Iterator[Identity]:
    """All that units bring, and what operators make of it, by cluster."""
    known = session.craft.rules.known
    for one in read:
        brought = BroughtObjects.of(one.manifests.manifests, known, ())
        cluster = one.manifests.unit.destination.cluster
        yield from ((cluster, *made) for made in brought.made)


def _unshared(scan: Scan, overlays: Iterable[SceneFile]) -> frozenset[str]:
    known = {*scan.files}
    named = {target for one in overlays for _, _, target in targets_of(one)}
    return frozenset(one for one in named - known if (scan.root / one).is_file())


def as_assumed(absences: Iterable[Absence], scene: LintScene) -> Iterator[Assumed]:
    """What nobody brings and somebody cannot do without; trust roots are told apart.

    The namespace of a controller is there when that is: it looks for its units in it.
    """
    homes = {Ref(NAMESPACE, "", home) for home in homes_of(scene.units.values())}
    for one in absences:
        if one.ref not in homes and not _may_come(one, scene):
            names = tuple(map(str, one.needed_by))
            yield Assumed(called(one), names, one.where, one.lacking is Lacking.ROOT)


def _may_come(absence: Absence, scene: LintScene) -> bool:
    """Whether a unit of which not all is known may bring it.

    It goes by the name of the operator that is lacking, or deploys to the namespace of the object.
    """
    unknown = [one for name, one in scene.units.items() if name not in scene.whole]
    if absence.lacking in {Lacking.OBJECT, Lacking.SETTING, Lacking.SERVICE}:
        return absence.ref.namespace in {one.destination.namespace for one in unknown} - {""}
    if absence.lacking not in {Lacking.OPERATOR, Lacking.KIND}:
        return False
    groups = {kind.group for kind in absence.kinds}
    rows = [row for (of, _), row in scene.known.rows.items() if of in groups]
    operators = {row.operator for row in rows if row.operator}
    words = operators or {absence.ref.name, *groups} - {""}
    places = [source.place for one in unknown for source in one.sources]
    told = [*(one.id.name for one in unknown), *places]
    charts = {one.rpartition("/")[2] for one in places} - {""}
    labels = {said for row in rows for many in row.served_by.labels for said in many.values()}
    by_label = any(said.startswith(f"{one}-") for one in charts for said in labels)
    return by_label or any(word in said for word in words for said in told)


def _checked(graph: Graph, actors: Iterable[Actor], has_check: HasCheck) -> Graph:
    """The graph with the checks that stand in Git, and those that a unit falls back to."""
    known = {(one.unit.id, one.identity): one for one in actors}

    def is_checked(node: GraphNode) -> bool:
        actor = known.get((node.unit, node.spot)) if node.unit and node.spot else None
        if actor is None:
            return node.checked
        falls_back = actor.unit.policy.semantics.falls_back
        return node.hook or falls_back or has_check(actor.unit, actor.body)

    nodes = (
        one if one.checked == (checked := is_checked(one)) else replace_struct(one, checked=checked)
        for one in graph.nodes
    )
    return replace_struct(graph, nodes=tuple(nodes))


def _units(found: Found, read: Iterable[Read]) -> dict[UnitId, Unit]:
    """All units, by the rules that they are run by, with all that they say they depend on."""
    known = {one.unit.id: one.unit for one in found.members}
    for one in read:
        unit = one.manifests.unit
        said = known[unit.id].dependencies if unit.id in known else unit.dependencies
        known[unit.id] = replace_struct(unit, dependencies=said)
    return known


def _actors(read: Read) -> Iterator[Actor]:
    """Each object with its text; a namespace that nobody wrote down is at its unit's place."""
    unit = read.manifests.unit
    texts = {_key(one, unit): one for one in read.rendered.documents}
    for manifest in read.manifests.manifests:
        ref = manifest.ref
        home = ref.namespace or unit.destination.namespace
        document = texts.get((ref.kind.group, ref.kind.name, home, ref.name))
        yield Actor(unit, manifest, document or _made_up(unit, manifest))


def _key(document: Document, unit: Unit) -> tuple[str, str, str, str]:
    body = document.body
    kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
    name = text(body, "metadata", "name") or text(body, "metadata", "generateName")
    inside = text(body, "metadata", "namespace") or unit.destination.namespace
    return (kind.group, kind.name, inside, name)


def _made_up(unit: Unit, manifest: Manifest) -> Document:
    ref = manifest.ref
    body: Body = {
        "apiVersion": ref.kind.api_version,
        "kind": ref.kind.name,
        "metadata": {"name": ref.name},
    }
    return Document(body, unit.where or Place(manifest.origin or str(unit.id)))


def _own_objects(found: Found) -> Iterator[tuple[UnitId, Document]]:
    """The own objects of units, as they are brought; of entries, as their files have them."""
    for family in found.families:
        own = {_named_object(one): one for member in family.members for one in member.documents}
        if family.own is not None:
            own[_named_object(family.own)] = family.own
        for member in family.members:
            name = member.unit.id
            document = own.get((name.kind, name.namespace, name.name))
            document = document or own.get((name.kind, "", name.name))
            if document is not None:
                yield name, document


def _named_object(document: Document) -> tuple[str, str, str]:
    body = document.body
    return (
        text(body, "kind"),
        text(body, "metadata", "namespace"),
        text(body, "metadata", "name"),
    )


def _checks(session: Session, settings: Mapping[str, Switch]) -> HasCheck:
    """Whether the rules of a unit judge an object; scripts that stand in Git count."""
    craft = session.craft
    written = {name.removeprefix(HEALTH) for name in settings if name.startswith(HEALTH)}
    known: dict[tuple[str, str, str, str], bool] = {}

    def ask(unit: Unit, body: Body) -> bool:
        kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
        key = (unit.policy.rules, kind.group, kind.name, kind.version)
        if key not in known:
            named = f"{kind.group}_{kind.name}" if kind.group else kind.name
            scripted = unit.policy.rules == ARGO and (
                named in written or craft.scripts.script_for(body) is not None
            )
            verdict = craft.rules.judge(body, Ms(0), rules=unit.policy.rules)
            known[key] = scripted or verdict.checked
        return known[key]

    return ask


def _named(scan: Scan, name: str) -> list[str]:
    return [one for one in scan.files if posixpath.basename(one) == name]


def _content(scan: Scan, name: str) -> bytes:
    """The text of a file; nothing where it cannot be read."""
    try:
        with Within(scan.root).open(name) as file:
            return file.read(LARGEST)
    except (OSError, StrayPathError, ValueError):
        return b""


def _texts(scan: Scan) -> tuple[tuple[SceneFile, ...], tuple[Octal, ...]]:
    """Encrypted files, and phases in whichever file; each file is read once."""
    sealed: list[SceneFile] = []
    octals: list[Octal] = []
    for name in scan.files:
        if not name.endswith(TEXTS) or not scan.is_below(name):
            continue
        content = _content(scan, name)
        if b"sops" in content and _SEAL.search(content):
            sealed += _files(scan, [name])
        octals += _octals(name, content)
    return tuple(sealed), tuple(octals)


def _octals(name: str, content: bytes) -> Iterator[Octal]:
    """Phases without quotes that begin with a zero."""
    if b": 0" not in content:
        return
    for found in _OCTAL.finditer(content):
        line = content.count(b"\n", 0, found.start(1)) + 1
        column = found.start(1) - content.rfind(b"\n", 0, found.start(1))
        key = found[1].decode()
        yield Octal(key, found[2].decode(), Place(name, line, column, key))


def _files(scan: Scan, names: Iterable[str]) -> Iterator[SceneFile]:
    """Files as documents; what cannot be read is told by others."""
    for name in names:
        if not scan.is_below(name):
            continue
        try:
            yield SceneFile(name, read_documents(_content(scan, name), name))
        except (DocumentError, ValueError):
            continue


def _unknown(read: Iterable[Read]) -> Iterator[Unknown]:
    """What could not be had of units that were rendered all the same."""
    for one in read:
        unit = one.manifests.unit
        for lack in one.rendered.weakened:
            yield Unknown(f"`{unit.id}`: {lack.unknown}", unit.where)
