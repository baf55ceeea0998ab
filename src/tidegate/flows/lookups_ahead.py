"""What charts look up that comes with the rollout itself: it is told whose turn has to come first.

What a template finds when its release is planned may be another thing when the turn of that comes.
Where nothing was found, and a unit of the same rollout brings it, that is told. A chart that cannot
be rendered without it is planned without its objects until then; where nobody brings it, it is at
fault as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tidegate.errors import Place
from tidegate.flows.brought_objects import DEFINITION, made_of
from tidegate.flows.cluster_lookups import LookupPath, read_path
from tidegate.flows.discover.families import Member
from tidegate.flows.reading import Read, ReadUnits
from tidegate.flows.rendering.lookups import is_vain
from tidegate.flows.session import Session
from tidegate.flows.setting_aside import faults_of
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import mappings, text
from tidegate.model.release import LookedUp
from tidegate.model.unit import Unit, UnitId

LATE = "flux.lookup-late"
MOST_NAMED = 3


class _Coming(msgspec.Struct, frozen=True):
    """An object that a unit brings to a cluster, itself or by an operator."""

    unit: UnitId
    cluster: str
    ref: Ref


async def settle_lookups(
    reading: ReadUnits, members: Sequence[Member], session: Session, *, can_wait: bool
) -> list[Finding]:
    """What is to be said of releases that look up what is not there yet.

    Without `can_wait` nobody plans again when the turn of a release comes.
    """
    asking = [one for one in reading.read if any(map(_may_gain, one.rendered.looked_up.values()))]
    if not asking:
        return []
    coming, findings = [*_coming(reading.read, session)], list[Finding]()
    unknown: dict[UnitId, Read] = {}
    for one in asking:
        unit = one.manifests.unit
        place = session.place_of(unit.destination.cluster)
        plurals = {served.kind: served.plural for served in await session.kinds(place)}
        met = [*_met(one, coming, plurals)]
        if met:
            findings.append(_later(unit, _named(met)))
        if one.rendered.unmet is not None and not (met and can_wait):
            unknown[unit.id] = one
    findings += _await_unknown(members, reading, unknown) if can_wait else ()
    by_id = {one.unit.id: one for one in members}
    for name, one in unknown.items():
        reading.read.remove(one)
        reading.faulty[name] = by_id[name]
        if one.rendered.unmet is not None:
            findings += faults_of(one.manifests.unit, [one.rendered.unmet])
    return findings


def _await_unknown(
    members: Sequence[Member], reading: ReadUnits, unknown: dict[UnitId, Read]
) -> Iterator[Finding]:
    """Take those out that wait for units of which nothing is known yet: these may bring it."""
    ahead = _Ahead([one.unit for one in members])
    pending = {one.manifests.unit.id for one in reading.read if one.rendered.unmet is not None}
    pending -= unknown.keys()
    found = True
    while found:
        found = False
        for name in [*unknown]:
            before = pending & ahead.of(name)
            if before:
                found = True
                pending.add(name)
                unit = unknown.pop(name).manifests.unit
                yield _later(
                    unit, "what may come with " + ", ".join(f"`{it}`" for it in sorted(before))
                )


class _Ahead:
    """Which units come before which: what they or their parents depend on, and its children."""

    def __init__(self, units: list[Unit]) -> None:
        self._units = {one.id: one for one in units}
        self._children: dict[UnitId, list[UnitId]] = {}
        for one in units:
            if one.parent is not None:
                self._children.setdefault(one.parent, []).append(one.id)

    def of(self, name: UnitId) -> set[UnitId]:
        found: set[UnitId] = set()
        left = [*self._waited(name)]
        while left:
            one = left.pop()
            if one not in found:
                found.add(one)
                left += [*self._waited(one), *self._children.get(one, ())]
        return found

    def _waited(self, name: UnitId) -> Iterator[UnitId]:
        """What a unit depends on, and whoever brings it."""
        above: UnitId | None = name
        seen: set[UnitId] = set()
        while above in self._units and above not in seen:
            seen.add(above)
            yield from (it.unit for it in self._units[above].dependencies if it.unit is not None)
            above = self._units[above].parent


def _may_gain(answer: LookedUp) -> bool:
    """Whether there may be more of it later: nothing was found, or a list."""
    return is_vain(answer) or "items" in msgspec.json.decode(answer.body)


def _coming(read: Iterable[Read], session: Session) -> Iterator[_Coming]:
    known = session.craft.rules.known
    for one in read:
        unit = one.manifests.unit
        for manifest in one.manifests.manifests:
            yield _Coming(unit.id, unit.destination.cluster, manifest.ref)
            for ref in made_of(manifest.ref, msgspec.json.decode(manifest.body), known):
                yield _Coming(unit.id, unit.destination.cluster, ref)


def _met(one: Read, coming: Iterable[_Coming], plurals: dict[Kind, str]) -> Iterator[_Coming]:
    """What others bring of that which was looked up and not found."""
    unit = one.manifests.unit
    others = [it for it in coming if it.unit != unit.id and it.cluster == unit.destination.cluster]
    for path, answer in one.rendered.looked_up.items():
        wanted = read_path(path)
        if wanted is None or not _may_gain(answer):
            continue
        found = {text(it, "metadata", "name") for it in _items(answer)}
        for it in others:
            if it.ref.name not in found and _fits(it.ref, wanted, plurals):
                yield it


def _items(answer: LookedUp) -> list[dict[str, Json]]:
    return mappings(msgspec.json.decode(answer.body), "items")


def _fits(ref: Ref, wanted: LookupPath, plurals: dict[Kind, str]) -> bool:
    if not wanted.plural:  # nobody serves the group: its definitions come first
        group = wanted.api_version.rpartition("/")[0]
        defines = (ref.kind.group, ref.kind.name) == DEFINITION
        return defines and ref.name.partition(".")[2] == group
    if ref.kind.api_version != wanted.api_version or plurals.get(ref.kind) != wanted.plural:
        return False
    if wanted.name:
        return (ref.namespace, ref.name) == (wanted.namespace, wanted.name)
    return wanted.namespace in {"", ref.namespace}


def _named(met: list[_Coming]) -> str:
    named = ", ".join(f"{one.ref} (`{one.unit}`)" for one in met[:MOST_NAMED])
    more = f" and {len(met) - MOST_NAMED} more" if len(met) > MOST_NAMED else ""
    return f"{named}{more}, which others bring"


def _later(unit: Unit, what: str) -> Finding:
    return Finding(
        code=LATE,
        severity=Severity.NOTE,
        sentence=f"what `{unit.id}` comes to is known when its turn comes: it looks up {what}",
        where=unit.where or Place(f"unit {unit.id}"),
        why="`sync` and `simulate` ask again then, and go on with what the chart comes to",
        fix="have it wait for them, where it does not: what is not there yet is not found",
    )
