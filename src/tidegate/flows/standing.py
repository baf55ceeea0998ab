"""How units stand: what they bring, compared and judged, and what their own objects say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from tidegate.dialect.units import is_own_kind
from tidegate.documents import Document
from tidegate.errors import WordsError, foreign
from tidegate.flows.discover import Family
from tidegate.flows.discover.scan import Scan
from tidegate.flows.entering import Found
from tidegate.flows.journal import read_unit_journal
from tidegate.flows.looking import body_of, look_at
from tidegate.flows.preview import NOTHING
from tidegate.flows.session import Session
from tidegate.flows.status import ObjectStatus, read_plan_status, worst_of
from tidegate.flows.units import unit_rows
from tidegate.model.labels import Requirement, SelectorError, read_labels
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.plan import Plan
from tidegate.model.reading import mapping, text
from tidegate.model.unit import Unit, UnitId
from tidegate.model.verdict import Health, Verdict
from tidegate.plan.selection import choose

Body = dict[str, Json]


class UnitStanding(msgspec.Struct, frozen=True):
    """A unit, its wave in its parent, its own object as Git has it and as it lives, its objects.

    `plan`: that of all units which were looked at together.
    """

    unit: Unit
    wave: int | None = None
    own: Body = msgspec.field(default_factory=dict)
    live: Body = msgspec.field(default_factory=dict)
    objects: tuple[ObjectStatus, ...] = ()
    plan: Plan = NOTHING

    @property
    def is_synced(self) -> bool:
        return all(one.is_synced for one in self.objects)

    @property
    def verdict(self) -> Verdict:
        return worst_of(one.verdict for one in self.objects if not one.leaves)


async def read_standings(
    found: Found, families: Sequence[Family], session: Session
) -> list[UnitStanding]:
    """All units that were found, each behind who brings it, by their waves.

    `families`: those of the whole repository, which know the waves and the own objects of all.
    """
    objects: dict[UnitId, list[ObjectStatus]] = {}
    stands = await read_plan_status(found.one, session)
    for one in stands.objects:
        if one.unit is not None:
            objects.setdefault(one.unit, []).append(one)
    names = {one.unit.id for one in found.members}
    own = {name: body for name, body in own_bodies(families).items() if name in names}
    live = await _lives(own, session)
    return [
        UnitStanding(
            row.unit,
            row.wave,
            own.get(row.unit.id, {}),
            live.get(row.unit.id, {}),
            tuple(objects.get(row.unit.id, ())),
            stands.plan,
        )
        for row in unit_rows(families)
        if row.unit.id in names
    ]


def narrow_standings(
    standings: Sequence[UnitStanding], resources: Sequence[str]
) -> list[UnitStanding]:
    """With those objects alone that are named, as `GROUP:KIND:[NAMESPACE/]NAME`.

    Raises PlanError where a name fits none.
    """
    if not resources:
        return [*standings]
    meant = choose((each.ref for one in standings for each in one.objects), resources)
    found = (
        replace(one, objects=tuple(each for each in one.objects if each.ref in meant))
        for one in standings
    )
    return [one for one in found if one.objects]


async def is_gone(one: UnitStanding, session: Session) -> bool:
    """Whether a unit is deleted: its own object, and what it has brought or all record of it."""
    if one.live:
        return False
    if all(each.verdict.health is Health.MISSING for each in one.objects):
        return True
    return not (await read_unit_journal(one.unit, session)).secrets


def own_bodies(families: Iterable[Family]) -> dict[UnitId, Body]:
    """The own object of each unit that has one, as Git has it. A cluster is not said in it."""
    found: dict[UnitId, Body] = {}
    for family in families:
        names: dict[tuple[str, str], list[UnitId]] = {}
        for member in family.members:
            names.setdefault((member.unit.id.kind, member.unit.id.name), []).append(member.unit.id)
        for body in (one.body for one in own_documents(family)):
            space = text(body, "metadata", "namespace")
            for one in names.get((text(body, "kind"), text(body, "metadata", "name")), ()):
                if space in {"", one.namespace}:
                    found.setdefault(one, body)
    return found


def own_documents(family: Family) -> Iterator[Document]:
    """What units of a family bring that says what units are, and the object of its entry."""
    documents = [one for member in family.members for one in member.documents]
    for one in (*documents, family.own):
        if one is not None and is_own_kind(kind_of(one.body)):
            yield one


def _ref_of(body: Body) -> Ref:
    metadata = mapping(body, "metadata")
    return Ref(kind_of(body), text(metadata, "namespace"), text(metadata, "name"))


def kind_of(body: Body) -> Kind:
    return Kind.of(text(body, "apiVersion"), text(body, "kind"))


async def read_bodies(
    families: Iterable[Family], kinds: Sequence[str], session: Session, scan: Scan
) -> list[tuple[Body, Body]]:
    """Objects of such kinds that units bring, as Git has them and as they live.

    Those that stand in the repository, and that nobody applies, come behind them.
    """
    applied = (one for family in families for one in own_documents(family))
    own = {_ref_of(one.body): one.body for one in applied if text(one.body, "kind") in kinds}
    known = {(ref.kind.name, ref.name) for ref in own}
    below = (one for name in scan.documents if scan.is_below(name) for one in scan.documents[name])
    for ref, body in ((_ref_of(one.body), one.body) for one in below):
        is_source = ref.kind.name in kinds and is_own_kind(ref.kind)
        if is_source and (ref.kind.name, ref.name) not in known:
            own.setdefault(ref, body)
    found = await look_at(session.world, own)
    lives = {(one.ref.kind.name, one.ref.namespace, one.ref.name): body_of(one) for one in found}
    return [
        (body, lives.get((ref.kind.name, ref.namespace, ref.name), {})) for ref, body in own.items()
    ]


async def _lives(own: dict[UnitId, Body], session: Session) -> dict[UnitId, Body]:
    found: dict[UnitId, Body] = {}
    for cluster in dict.fromkeys(one.cluster for one in own):
        names = [one for one in own if one.cluster == cluster]
        refs = [Ref(kind_of(own[one]), one.namespace, one.name) for one in names]
        for live in await look_at(session.world, refs, cluster=cluster):
            ref = live.ref
            found[UnitId(ref.kind.name, cluster, ref.namespace, ref.name)] = body_of(live)
    return found


class Called(Protocol):
    """What has an identity and labels: a unit, or a source."""

    @property
    def id(self) -> UnitId: ...
    @property
    def labels(self) -> tuple[tuple[str, str], ...]: ...


One = TypeVar("One", bound=Called)


def choose_units(
    units: Iterable[One], kinds: Sequence[str], names: Sequence[str], labels: str, home: str = ""
) -> list[One]:
    """Those of these kinds, in this namespace or in any, that are named, or that labels select.

    Raises WordsError where there is none: whoever goes on with nobody would go on with all.
    """
    among = [one for one in units if one.id.kind in kinds and home in {"", one.id.namespace}]
    there = f"in namespace `{foreign(home)}`" if home else "here"
    wanted = read_selector(labels)
    if names:
        found = (_called(name, kinds, among, there) for name in names)
        return [*{one.id: one for one in found}.values()]
    chosen = [one for one in among if all(each.holds(dict(one.labels)) for each in wanted)]
    if not chosen:
        having = f" with the labels `{foreign(labels)}`" if labels else ""
        problem = f"there is no {' or '.join(kinds)} {there}{having}"
        raise WordsError("words.unit", problem, hint="`tidegate units` shows all")
    return chosen


def read_selector(labels: str) -> tuple[Requirement, ...]:
    """What labels must be like, as a user says it. Raises WordsError."""
    try:
        return read_labels(labels)
    except SelectorError as error:
        problem = f"`{foreign(labels)}` is no selector: {error}"
        raise WordsError("words.selector", problem) from None


def _called(name: str, kinds: Sequence[str], among: Sequence[One], there: str) -> One:
    """The one of this name, which may have its namespace before it."""
    found = [one for one in among if _is_called(one.id, name)]
    if not found:
        raise _unknown(name, kinds, among, there)
    if len(found) > 1:
        problem = f"several are called `{foreign(name)}`: {', '.join(str(one.id) for one in found)}"
        raise WordsError(
            "words.unit", problem, hint="write one of these identities, or -n NAMESPACE"
        )
    return found[0]


def _is_called(unit: UnitId, name: str) -> bool:
    """By its name, or with its namespace before that, as both dialects' commands take it."""
    return name in {unit.name, f"{unit.namespace}/{unit.name}", str(unit)}


def _unknown(name: str, kinds: Sequence[str], among: Iterable[Called], there: str) -> WordsError:
    near = get_close_matches(name, [one.id.name for one in among], n=1)
    guess = f"did you mean `{near[0]}`? " if near else ""
    problem = f"there is no {' or '.join(kinds)} `{foreign(name)}` {there}"
    return WordsError("words.unit", problem, hint=f"{guess}`tidegate units` shows all")
