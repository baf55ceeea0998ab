"""What units lean on and do not bring: one list, for every verb that asks.

What they need and nobody brings is told by their graph, then asked of their cluster. Secrets,
ConfigMaps, accounts and claims are the application's own, keys and tokens are trust roots. All else
is of the platform: operators with their definitions, namespaces, classes, issuers, stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import structs

from tidegate.dialect.units import is_own_kind
from tidegate.errors import Place
from tidegate.flows.brought_objects import WORKLOADS, Body, BroughtObjects, KindName, made_of
from tidegate.flows.custom_kinds import NAME, may_be_custom
from tidegate.flows.entering import Found
from tidegate.flows.graph import ground_of
from tidegate.flows.lacks import ACCOUNT, CLAIM, as_served, metrics_for
from tidegate.flows.reading import Read, read_members
from tidegate.flows.session import Session
from tidegate.flows.wiring import known_to
from tidegate.graph.build import build_graph
from tidegate.graph.missing import missing
from tidegate.knowledge.catalogue import KnownRows
from tidegate.knowledge.references import CONFIG_MAP, SECRET
from tidegate.model.absence import Absence, Lacking
from tidegate.model.graph import Asker, LackKind, MissingThing
from tidegate.model.objects import Kind, Ref, Served, identity
from tidegate.model.operators import Effect, Operator
from tidegate.model.patterns import late
from tidegate.model.plan import Plan
from tidegate.world.ask import ask
from tidegate.world.calls import Get, List, Selection
from tidegate.world.facts import Catalogue, Listed, Missing, NotServed

NAMESPACE = Kind("", "v1", "Namespace")
SERVICE = ("", "Service")
PARTS = frozenset({LackKind.KEY, LackKind.PORT, LackKind.PODS})
UNNAMED = frozenset({LackKind.DEFINITION, LackKind.OPERATOR, LackKind.UNIT})
"""Kinds and who serves them are looked at by themselves; units are told where they are sought."""
STORES = frozenset({"SecretStore", "ClusterSecretStore", "VaultAuth", "VaultConnection"})
"""Kinds that get at other Secrets by one that somebody brings."""
KEYS = ("sops-", "sealed-secrets-key", "age-key", "vault-unseal")
"""How Secrets are called that open others."""
DECRYPTION = "decryption"
SETTINGS = frozenset({(one.group, one.name) for one in (SECRET, CONFIG_MAP, ACCOUNT, CLAIM)})
WIDE = late(r"^Cluster[A-Z]|Cluster(Issuer|Policy|Role|Store)$")
"""Kinds of which nobody knows the scope are cluster-wide if their names say so."""
NOBODY = Kind("", "", "")
MOST_READ = 500


async def find_absences(found: Found, session: Session) -> tuple[Absence, ...]:
    """Everything that these units lean on and that nobody brings, each once, in order."""
    return await absences_of(found, await read_members(found.members, session), session)


async def absences_of(found: Found, read: Iterable[Read], session: Session) -> tuple[Absence, ...]:
    """The same of units that are read already."""
    read, simulation = tuple(read), session.target.simulation
    knowledge = known_to(simulation)
    known = KnownRows.of(knowledge.rows)
    owns = {one.entry: one.own.body for one in found.families if one.own is not None}
    wanted = (one.manifests for one in read)
    graph = build_graph(wanted, Plan(digest=""), ground_of(simulation), owns=owns)
    lacks: dict[str, list[MissingThing]] = {}
    for lack in missing(graph):
        lacks.setdefault(lack.cluster, []).append(lack)
    by_cluster: dict[str, list[Read]] = {cluster: [] for cluster in lacks}
    for one in read:
        by_cluster.setdefault(one.manifests.unit.destination.cluster, []).append(one)
    told: list[Absence] = []
    for cluster, here in by_cluster.items():
        manifests = (manifest for one in here for manifest in one.manifests.manifests)
        texts = (document.body for one in here for document in one.rendered.documents)
        brought = BroughtObjects.of(manifests, known, texts)
        operators = {one.name: one for one in knowledge.operators}
        survey = _Survey(cluster, known, operators, brought, tuple(lacks.get(cluster, ())))
        told += await survey.look(session)
    return tuple(sorted(told, key=_rank))


def _rank(one: Absence) -> tuple[str, int, str, str, str, str, str]:
    ref = one.ref
    order = list(Lacking).index(one.lacking)
    return one.cluster, order, ref.kind.group, ref.kind.name, ref.namespace, ref.name, one.part


class _Survey(msgspec.Struct):
    """Looks for what is absent from one cluster."""

    cluster: str
    known: KnownRows
    operators: dict[str, Operator]
    brought: BroughtObjects
    lacks: tuple[MissingThing, ...]
    _places: dict[Ref, Place | None] = msgspec.field(default_factory=dict)
    _served: dict[KindName, tuple[Served, ...]] = msgspec.field(default_factory=dict)
    _workloads: list[Body] = msgspec.field(default_factory=list)
    _bodies: dict[Ref, Body] = msgspec.field(default_factory=dict)

    async def look(self, session: Session) -> list[Absence]:
        for one in await session.kinds(self.cluster):
            name = (one.kind.group, one.kind.name)
            self._served[name] = (*self._served.get(name, ()), one)
        self._bodies = dict(self.brought.objects)
        wanted = self._wanted()
        absent = await self._missing(session, wanted)
        needy: dict[Kind, dict[Ref, None]] = {}
        for ref, _ in self.brought.objects:
            if may_be_custom(ref.kind):
                needy.setdefault(ref.kind, {})[self._at_home(ref)] = None
        for ref in absent:
            if may_be_custom(ref.kind):
                kind = self._versioned(ref.kind)
                homes = map(self._at_home, wanted[ref])
                needy.setdefault(kind, {}).update(dict.fromkeys(homes))
        self._workloads = [*self.brought.workloads, *await self._living(session, needy)]
        found = [
            *self._strange(needy),
            *(self._absence(ref, tuple(wanted[ref])) for ref in absent),
            *self._parts(),
        ]
        return [structs.replace(one, where=self._place_of(one)) for one in found]

    def _place_of(self, absence: Absence) -> Place | None:
        """Where somebody first asks for it."""
        asking = (self._places.get(one) for one in (absence.ref, *absence.needed_by))
        return absence.where or next((one for one in asking if one is not None), None)

    def _parts(self) -> Iterator[Absence]:
        """Keys, ports, and pods of what is there; the class of those that name none."""
        for lack in self.lacks:
            askers = [*_in_need(lack)]
            is_part = lack.kind in PARTS or not _is_nameable(lack)
            if askers and is_part and lack.kind not in UNNAMED:
                yield Absence(
                    cluster=self.cluster,
                    lacking=Lacking.PART,
                    ref=lack.ref or Ref(NOBODY, "", ""),
                    needed_by=tuple(dict.fromkeys(one.ref for one in askers if one.ref)),
                    part=lack.name,
                    where=askers[0].where,
                )

    def _at_home(self, ref: Ref) -> Ref:
        """Without a namespace where its kind has none."""
        return Ref(ref.kind, "", ref.name) if self._is_wide(ref.kind) else ref

    def _wanted(self) -> dict[Ref, dict[Ref, None]]:
        """What is needed and not brought, and by whom."""
        found: dict[Ref, dict[Ref, None]] = {}
        for lack in self.lacks:
            is_object = lack.kind not in UNNAMED | PARTS and _is_nameable(lack)
            for asker in _in_need(lack) if is_object else ():
                if lack.ref is not None and asker.ref is not None:
                    found.setdefault(lack.ref, {})[asker.ref] = None
                    self._places.setdefault(lack.ref, asker.where)
        for ref, body in self.brought.objects:
            measured = (one for one in metrics_for(ref, body) if not self._is_brought(one))
            for one in measured:
                found.setdefault(one, {})[ref] = None
        return found

    def _is_brought(self, ref: Ref) -> bool:
        """In its namespace, or in none."""
        group, kind, namespace, name = identity(ref)
        made = self.brought.made
        return any((group, kind, place, name) in made for place in (namespace, ""))

    async def _missing(self, session: Session, wanted: Iterable[Ref]) -> list[Ref]:
        """Those that the cluster has not, each as it would be there."""
        refs = list(wanted)
        served = Catalogue(tuple(one for many in self._served.values() for one in many))
        asked = list(as_served(refs, served))
        outcomes = await ask(session.world, *map(Get, asked), cluster=self.cluster)
        return [
            ref
            for ref, outcome in zip(refs, outcomes, strict=True)
            if isinstance(outcome, Missing | NotServed)
        ]

    async def _living(self, session: Session, needy: Iterable[Kind]) -> list[Body]:
        """The workloads of the cluster, if it matters who serves a kind."""
        if not [*needy]:
            return []
        pages = (List(Selection(kind), MOST_READ) for kind in WORKLOADS)
        answers = await ask(session.world, *pages, cluster=self.cluster)
        lives = (live for page in answers if isinstance(page, Listed) for live in page.items)
        return [msgspec.json.decode(live.body) for live in lives]

    def _absence(self, ref: Ref, needed_by: tuple[Ref, ...]) -> Absence:
        kind = (ref.kind.group, ref.kind.name)
        sort = Lacking.SETTING if kind in SETTINGS else Lacking.OBJECT
        if any((one.group, one.name) == kind for one in (*self.brought.defined, *WORKLOADS)):
            sort = Lacking.SETTING  # of a kind that comes with the plan nothing can be there before
        if self._is_root(ref):
            sort = Lacking.ROOT
        if kind == SERVICE and not any(may_be_custom(one.kind) for one in needed_by):
            sort = Lacking.SERVICE
        if kind == (NAMESPACE.group, NAMESPACE.name):
            return Absence(
                cluster=self.cluster,
                lacking=Lacking.NAMESPACE,
                ref=Ref(NAMESPACE, "", ref.name),
                needed_by=needed_by,
                where=self._places.get(ref),
            )
        bodies = self._bodies
        makes = (
            made
            for one in needed_by
            if one in bodies
            for made in made_of(one, bodies[one], self.known)
        )
        return Absence(
            cluster=self.cluster,
            lacking=sort,
            ref=self._at_home(ref),
            needed_by=tuple(map(self._at_home, needed_by)),
            makes=tuple(dict.fromkeys(made for made in makes if made.kind == SECRET)),
        )

    def _is_root(self, ref: Ref) -> bool:
        """Whether a Secret opens others, so that nothing can make it here."""
        if (ref.kind.group, ref.kind.name) != (SECRET.group, SECRET.name):
            return False
        askers = [one for lack in self.lacks if lack.ref == ref for one in lack.askers]
        by_stores = any(one.ref is not None and one.ref.kind.name in STORES for one in askers)
        return (
            by_stores or ref.name.startswith(KEYS) or any(DECRYPTION in one.field for one in askers)
        )

    def _strange(self, needy: dict[Kind, dict[Ref, None]]) -> Iterator[Absence]:
        """Kinds that nobody defines, and those that nobody serves; by operator where one is known.

        An operator that comes with its definitions is told once, with its kinds. One that makes a
        kind of an object serves it, and is told with that object.
        """
        groups: dict[str, list[Kind]] = {}
        for kind in sorted(needy.keys() - self.brought.late):
            groups.setdefault(self._operator_of(kind), []).append(kind)
        for operator, kinds in groups.items():
            unserved = [kind for kind in kinds if not self._is_served(kind)]
            undefined = [kind for kind in kinds if not self._is_known(kind)]
            if operator and unserved:
                yield self._operator(operator, kinds, needy)
                undefined = [one for one in undefined if not self._comes_with(operator, one)]
            yield from (self._kind(kind, tuple(needy[kind])) for kind in undefined)
            if not operator:
                left = (kind for kind in unserved if self._is_defined(kind))
                yield from (self._servant(kind, tuple(needy[kind])) for kind in left)

    def _operator(
        self, name: str, kinds: list[Kind], needy: dict[Kind, dict[Ref, None]]
    ) -> Absence:
        return Absence(
            cluster=self.cluster,
            lacking=Lacking.OPERATOR,
            ref=Ref(NOBODY, "", name),
            kinds=tuple(kinds),
            defined=any(kind in self.brought.defined for kind in kinds),
            needed_by=tuple(dict.fromkeys(ref for kind in kinds for ref in needy[kind])),
        )

    def _kind(self, kind: Kind, needed_by: tuple[Ref, ...]) -> Absence:
        return Absence(
            cluster=self.cluster,
            lacking=Lacking.KIND,
            ref=Ref(kind, "", ""),
            kinds=(kind,),
            cluster_wide=self._is_wide(kind),
            served=self._has_server(kind),
            strange=self.known.row_of(kind) is None,
            needed_by=needed_by,
        )

    def _servant(self, kind: Kind, needed_by: tuple[Ref, ...]) -> Absence:
        return Absence(
            cluster=self.cluster,
            lacking=Lacking.OPERATOR,
            ref=Ref(kind, "", ""),
            kinds=(kind,),
            cluster_wide=self._is_wide(kind),
            defined=True,
            strange=self.known.row_of(kind) is None,
            needed_by=needed_by,
        )

    def _operator_of(self, kind: Kind) -> str:
        """The name of the operator of a kind, or of the other kinds of its group.

        What Argo CD and Flux do is done here: they are not put into the cluster besides.
        """
        row = self.known.row_of(kind)
        rows = (
            [row] if row else [one for one in self.known.rows.values() if one.group == kind.group]
        )
        names = {one.operator for one in rows if not one.foreign}
        found = names.pop() if len(names) == 1 else ""
        return "" if found and self._is_shadowed(self.operators[found]) else found

    def _is_shadowed(self, operator: Operator) -> bool:
        """Whether the plan brings something in the place of what the operator would run."""
        places = (
            ("apps", str(one.kind), operator.namespace, one.name) for one in operator.workloads
        )
        return any(place in self.brought.made for place in places)

    def _comes_with(self, operator: str, kind: Kind) -> bool:
        row = self.known.row_of(kind)
        is_its = row is not None and row.operator == operator and kind.version in row.versions
        return is_its and not any(
            one.group == kind.group and one.name == kind.name for one in self.brought.defined
        )

    def _is_defined(self, kind: Kind) -> bool:
        served = self._served.get((kind.group, kind.name), ())
        return kind in self.brought.defined or any(one.kind == kind for one in served)

    def _is_known(self, kind: Kind) -> bool:
        """Whether somebody defines the kind. One of another version is a fault of the text."""
        same = (kind.group, kind.name)
        others = {(one.group, one.name) for one in self.brought.defined}
        return self._is_defined(kind) or same in others or same in self._served

    def _is_served(self, kind: Kind) -> bool:
        row = self.known.row_of(kind)
        return (row is not None and row.served_by.outside) or self._has_server(kind)

    def _has_server(self, kind: Kind) -> bool:
        return any(self.known.is_server(one, kind) for one in self._workloads)

    def _is_wide(self, kind: Kind) -> bool:
        """Whether its objects are in no namespace, as far as anybody can tell."""
        served = self._served.get((kind.group, kind.name), ())
        if served:
            return not served[0].namespaced
        row = self.known.row_of(kind)
        if row is not None:
            return kind.name in row.cluster_wide
        is_homely = (kind.group, kind.name) in self.brought.homely
        return not is_homely and WIDE.search(kind.name) is not None

    def _versioned(self, kind: Kind) -> Kind:
        """A kind that is only named: in a version that somebody uses, serves or knows."""
        same = (kind.group, kind.name)
        used = (ref.kind for ref, _ in self.brought.objects)
        served = (one.kind for one in self._served.get(same, ()))
        defined = sorted(one for one in self.brought.defined if (one.group, one.name) == same)
        row = self.known.row_of(kind)
        known = (Kind(*same[:1], version, kind.name) for version in (row.versions if row else ()))
        all_known = (*defined, *used, *served, *known, Kind(kind.group, "v1", kind.name))
        return next(one for one in all_known if (one.group, one.name) == same)


def _in_need(lack: MissingThing) -> Iterator[Asker]:
    """Those that cannot do without it. What Argo CD and Flux need themselves is theirs, unless it
    is a key; what others lean on of an operator counts also where they are well without.
    """
    is_custom = lack.ref is not None and may_be_custom(lack.ref.kind)
    for one in lack.askers:
        is_engine = one.is_unit or (one.ref is not None and is_own_kind(one.ref.kind))
        is_asked = one.effect is not Effect.NOTHING or is_custom
        if DECRYPTION in one.field or (is_asked and not is_engine):
            yield one


def _is_nameable(lack: MissingThing) -> bool:
    """Whether there can be such an object at all: a name may be a mistake, or stand for none."""
    ref = lack.ref
    if ref is None:
        return False
    names = (ref.name, ref.namespace or "default", ref.kind.name.lower(), ref.kind.group or "core")
    return all(NAME.fullmatch(one) for one in names)
