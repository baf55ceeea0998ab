"""Who brings which object, by what Git says: object → unit → parent → source, each with its place.

What a cluster says of them is read beside that, where one is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

import msgspec

from tidegate.dialect.requests import revision_of, source_of
from tidegate.dialect.tracking import owner_of
from tidegate.errors import WordsError, foreign, without_user
from tidegate.flows.discover import Family
from tidegate.flows.entering import Found
from tidegate.flows.looking import body_of, look_at, look_in
from tidegate.flows.named import NamedObject, all_named
from tidegate.flows.planning import make_plan
from tidegate.flows.session import Session
from tidegate.model.manifest import Manifest, Manifests, Phase
from tidegate.model.objects import Json, Kind, Live, Ref
from tidegate.model.plan import Plan
from tidegate.model.reading import mapping, mappings, part, text
from tidegate.model.semantics import TIDEGATE
from tidegate.model.unit import Unit, UnitId
from tidegate.report.lineage import TraceBlock, TreeNode
from tidegate.report.rollout.names import PHASES

Body = dict[str, Json]
SHORT = {
    "cm": "configmap",
    "crd": "customresourcedefinition",
    "cj": "cronjob",
    "po": "pod",
    "deploy": "deployment",
    "ds": "daemonset",
    "ing": "ingress",
    "ns": "namespace",
    "pvc": "persistentvolumeclaim",
    "sa": "serviceaccount",
    "sts": "statefulset",
    "svc": "service",
    "rs": "replicaset",
    "ks": "kustomization",
    "hr": "helmrelease",
    "app": "application",
    "gitrepo": "gitrepository",
    "ingresses": "ingress",
}
"""How kubectl's users call kinds; plurals are known by their ends."""
ENGINES = {"Application": "Argo CD", "ApplicationSet": "Argo CD", "": "Tidegate"}
MOST_OWNERS = 8


class BroughtManifest(msgspec.Struct, frozen=True):
    """An object as Git wants it, the unit that brings it, and the cluster it goes to."""

    manifest: Manifest
    unit: UnitId
    cluster: str

    @property
    def ref(self) -> Ref:
        return self.manifest.ref

    @property
    def note(self) -> str:
        """When in its unit it comes, where that is not with all the others."""
        event = PHASES.get(self.manifest.phase, "")
        told = [event or "hook"] if self.manifest.hook is not None else []
        told += [f"wave {self.manifest.wave}"] if self.manifest.wave else []
        return ", ".join(told)


class Lineage(msgspec.Struct, frozen=True):
    """All units of a repository, and what each brings, in the order in which it comes."""

    plan: Plan
    units: Mapping[UnitId, Unit]
    objects: Mapping[UnitId, Sequence[BroughtManifest]]
    named: Sequence[NamedObject] = ()
    lives: Mapping[UnitId, Body] = msgspec.field(default_factory=dict)
    """Own objects and sources as they live, where a cluster is chosen."""

    def unit_of(self, ref: Ref, cluster: str) -> UnitId | None:
        """The unit that an object is the own object of."""
        name = UnitId(ref.kind.name, cluster, ref.namespace, ref.name)
        return name if name in self.units else None

    def tree(self, name: UnitId, *, compact: bool) -> TreeNode:
        """A unit, and below it what it brings; units among that with what they bring."""
        return self._tree(name, compact, frozenset())

    def _tree(self, name: UnitId, compact: bool, above: frozenset[UnitId]) -> TreeNode:  # noqa: FBT001 - within
        above = above | {name}
        children = []
        for one in self.objects.get(name, ()):
            inner = self.unit_of(one.ref, one.cluster)
            if inner in above:
                continue
            if inner is not None:
                node = self._tree(inner, compact, above)
                note = ", ".join(filter(None, (one.note, node.note)))
                children.append(TreeNode(node.name, note, node.children))
            elif not compact:
                children.append(TreeNode(name_of(one.ref), one.note))
        state = "suspended" if self.units[name].suspended else ""
        return TreeNode(str(name), state, tuple(children))

    def trace(self, found: BroughtManifest) -> list[TraceBlock]:
        """An object, who brings it, who brings that, and from where."""
        ref, unit = found.ref, found.unit
        head = [
            ("Object", f"{ref.kind.name}/{ref.name}"),
            ("Namespace", ref.namespace),
            ("Status", f"Managed by {ENGINES.get(unit.kind, 'Flux')}"),
            ("Turn", found.note),
            ("File", self._place(found)),
        ]
        return [tuple(head), *self.trace_unit(unit)]

    def _place(self, found: BroughtManifest) -> str:
        """A template is seen from its chart; people look for it in the repository."""
        sources = self.units[found.unit].sources
        chart = sources[0].path if len(sources) == 1 else ""
        origin = found.manifest.origin
        is_template = origin.startswith("templates/") and chart not in {"", "."}
        return f"{chart}/{origin}" if is_template else origin

    def trace_unit(self, name: UnitId) -> Iterator[TraceBlock]:
        """A unit, those above it, and the sources of all of them, each once."""
        chain: dict[UnitId, None] = {}
        above: UnitId | None = name
        while above is not None and above not in chain and above in self.units:
            chain[above] = None
            above = self.units[above].parent
        yield from (self._unit_block(one) for one in chain)
        wanted = dict.fromkeys(source for one in chain if (source := self._source(one)))
        yield from (self._source_block(one) for one in wanted)

    def _own(self, name: UnitId) -> Body:
        return next((one.own for one in self.named if one.id == name), {})

    def _source(self, name: UnitId) -> tuple[str, str, str] | None:
        return source_of(self._own(name))

    def _unit_block(self, name: UnitId) -> TraceBlock:
        unit, own = self.units[name], self._own(name)
        live = self.lives.get(name, {})
        where = [
            (word, text(one, key))
            for one in _sources(own)
            for word, key in (("URL", "repoURL"), ("Target", "targetRevision"))
        ]
        return (
            (name.kind or "Directory", name.name),
            ("Namespace", name.namespace),
            *((word, without_user(said)) for word, said in where),
            *(("Path", one.path) for one in unit.sources),
            ("Revision", revision_of(live) or text(live, "status", "sync", "revision")),
            ("Status", _status(live)),
            ("File", str(unit.where) if unit.where else ""),
        )

    def _source_block(self, source: tuple[str, str, str]) -> TraceBlock:
        kind, home, name = source
        known = UnitId(kind, "", home, name)
        own = next((one for one in self.named if one.id == known), None)
        spec, live = mapping(own.own if own else {}, "spec"), self.lives.get(known, {})
        wanted = mapping(spec, "ref")
        return (
            (kind, name),
            ("Namespace", home),
            ("URL", without_user(text(spec, "url"))),
            *((word.capitalize(), text(wanted, word)) for word in wanted),
            ("Revision", revision_of(live)),
            ("Status", _status(live)),
            ("File", str(own.where) if own and own.where else "it is not in this repository"),
        )


async def read_lineage(found: Found, session: Session) -> list[Lineage]:
    """Of each alternative, who brings what; as it lives, too, where a real cluster is chosen."""
    return [await _read(one.families, session) for one in found.apart()]


async def _read(families: Sequence[Family], session: Session) -> Lineage:
    planned = await make_plan(families, session, rules=TIDEGATE)
    objects = {one.manifests.unit.id: _in_turn(one.manifests) for one in planned.read}
    members = [one.unit for family in families for one in family.members]
    named = all_named(families)
    lives = {} if session.target.simulation else await _lives(named, session)
    units = {one.id: one for one in members}
    return Lineage(planned.plan, units, objects, named, lives)


def _in_turn(wanted: Manifests) -> list[BroughtManifest]:
    """By phases and waves; what comes together stays as it is written."""
    unit, phases = wanted.unit, [*Phase]
    ordered = sorted(wanted.manifests, key=lambda one: (phases.index(one.phase), one.wave))
    return [BroughtManifest(one, unit.id, unit.destination.cluster) for one in ordered]


async def _lives(named: Sequence[NamedObject], session: Session) -> dict[UnitId, Body]:
    found: dict[UnitId, Body] = {}
    for cluster in session.target.contexts:
        mine = [one.spot.ref for one in named if one.id.cluster == cluster]
        for live in await look_at(session.world, mine, cluster=cluster):
            name = UnitId(live.ref.kind.name, cluster, live.ref.namespace, live.ref.name)
            found[name] = body_of(live)
    return found


async def trace_object(
    lineages: Sequence[Lineage], kind: str, name: str, home: str, session: Session
) -> list[TraceBlock]:
    """Where an object comes from, by Git; else, on a cluster, by those that own it and by its mark.

    Raises WordsError where nobody is known to bring it.
    """
    for lineage in lineages:
        if found := _brought(lineage, kind, name, home):
            return lineage.trace(found)
    if session.target.simulation is None:
        for live in await _living(kind, name, home, session):
            if blocks := await _trace_living(live, lineages, session):
                return blocks
            problem = (
                f"object not managed by Flux or Argo CD: `{live.ref.kind.name}/{foreign(name)}`"
            )
            raise WordsError(
                "words.unmanaged", problem, hint="nothing of its owners carries a mark"
            )
    raise _unknown(lineages, kind, name)


def _brought(lineage: Lineage, kind: str, name: str, home: str) -> BroughtManifest | None:
    every = (one for items in lineage.objects.values() for one in items)
    fitting = [
        one
        for one in every
        if is_kind(one.ref.kind, kind) and one.ref.name == name and home in {"", one.ref.namespace}
    ]
    if len({one.ref for one in fitting}) > 1:
        homes = ", ".join(f"`{one.ref.namespace}`" for one in fitting)
        problem = f"several are called `{foreign(name)}`: in {homes}"
        raise WordsError("words.unit", problem, hint="`-n NAMESPACE` says which one is meant")
    return fitting[0] if fitting else None


def is_kind(kind: Kind, word: str) -> bool:
    """Whether a word means a kind: its name, its plural, or as people shorten it."""
    said = word.lower().partition(".")[0]
    name = kind.name.lower()
    plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    return SHORT.get(said, said) in {name, plural}


async def _living(kind: str, name: str, home: str, session: Session) -> list[Live]:
    """Objects that are called so, in any of the clusters."""
    found: list[Live] = []
    for cluster in session.target.contexts:
        served = await session.kinds(cluster)
        kinds = dict.fromkeys(one.kind for one in served if is_kind(one.kind, kind))
        lives = await look_in(session.world, ((one, home) for one in kinds), cluster=cluster)
        found += [one for one in lives if one.ref.name == name]
    return found


async def _trace_living(
    live: Live, lineages: Sequence[Lineage], session: Session
) -> list[TraceBlock]:
    """By the first of its owners that Git has, or that says whose it is."""
    body, ref, chain = body_of(live), live.ref, [live.ref]
    for _ in range(MOST_OWNERS):
        for lineage in lineages:
            found = _brought(lineage, ref.kind.name, ref.name, ref.namespace)
            if found is not None:
                return [*map(_owned_block, chain[:-1]), *lineage.trace(found)]
            mark = owner_of(body)
            unit = next((one for one in lineage.units if one.mark == mark), None)
            if unit is not None:
                return [*map(_owned_block, chain), *lineage.trace_unit(unit)]
        owners = mappings(body, "metadata", "ownerReferences")
        if not owners:
            return []
        kind = Kind.of(text(owners[0], "apiVersion"), text(owners[0], "kind"))
        ref = Ref(kind, ref.namespace, text(owners[0], "name"))
        lives = await look_at(session.world, (ref,))
        body, chain = (body_of(lives[0]) if lives else {}), [*chain, ref]
    return []


def _owned_block(ref: Ref) -> TraceBlock:
    return ("Object", f"{ref.kind.name}/{ref.name}"), ("Namespace", ref.namespace)


def _unknown(lineages: Iterable[Lineage], kind: str, name: str) -> WordsError:
    items = [one for lineage in lineages for some in lineage.objects.values() for one in some]
    among = [one.ref.name for one in items if is_kind(one.ref.kind, kind)]
    near = get_close_matches(name, among, n=1)
    kinds = {one.ref.kind.name for one in items}
    like = get_close_matches(kind.lower(), [one.lower() for one in kinds], n=1)
    guess = near or ([] if among else like)
    hint = f"did you mean `{guess[0]}`?" if guess else "`tidegate tree` shows what units bring"
    problem = f"no unit here brings a {foreign(kind)} `{foreign(name)}`"
    return WordsError("words.object", problem, hint=hint)


def _sources(own: Body) -> list[Body]:
    spec = mapping(own, "spec")
    one = [mapping(spec, "source")] if "source" in spec else mappings(spec, "sources")
    return [each for each in one if text(each, "repoURL")]


def _status(live: Body) -> str:
    """What an own object says of itself."""
    for one in mappings(live, "status", "conditions"):
        if one.get("type") == "Ready":
            return f"{text(one, 'reason')}: {text(one, 'message')}".strip(": ")
    sync, health = text(live, "status", "sync", "status"), part(live, "status", "health", "status")
    return f"{sync}, {health}" if sync else ""


def name_of(ref: Ref) -> str:
    """As `flux tree` calls an object."""
    return "/".join(one for one in (ref.kind.name, ref.namespace, ref.name) if one)
