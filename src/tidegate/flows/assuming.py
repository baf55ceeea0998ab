"""What units lean on and do not bring is taken as given in simulated clusters, and told.

async with open_assuming(pointed, target, setting) as (session, found, absences):
    ...
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from msgspec.structs import replace

from tidegate.flows.absences import find_absences
from tidegate.flows.entering import Found, open_found
from tidegate.flows.opaque import with_opaque
from tidegate.flows.pointing import Pointed
from tidegate.flows.rendering import Setting
from tidegate.flows.session import Session, Target
from tidegate.model.absence import NEVER_GIVEN, Absence, Lacking
from tidegate.model.given import GivenCluster, GivenKind, GivenOperator, title_of
from tidegate.model.objects import Kind


@asynccontextmanager
async def open_assuming(
    pointed: Pointed, target: Target, setting: Setting, *, greenfield: bool = False
) -> AsyncIterator[tuple[Session, Found, tuple[Absence, ...]]]:
    """The world of a target and what is pointed at, with what was absent from simulated clusters.

    They have it then, unless it is `greenfield`. Charts see which kinds are there: what they render
    to may lean on more. So it is asked again until nothing new is absent. Entries that are
    alternatives lean on different things: for them together nothing is assumed.
    """
    told: tuple[Absence, ...] = ()
    setting = replace(setting, stands_in=target.simulation is not None and not greenfield)
    while True:
        async with open_found(pointed, target, setting) as (session, found):
            simulation = session.target.simulation
            if simulation is None or found.are_alternatives:
                yield session, found, ()
                return
            absences = await find_absences(found, session)
            more = assume(absences)
            assumed = _together(simulation.assumed, more)
            told = _unlike((*told, *absences))
            if greenfield or assumed == dict(simulation.assumed):
                yield session, found if greenfield else with_opaque(found), told
                return
            target = replace(session.target, simulation=replace(simulation, assumed=assumed))


def assume(absences: Iterable[Absence]) -> dict[str, GivenCluster]:
    """By cluster, what stands in for what is absent. What is an application's own stays absent."""
    found: dict[str, GivenCluster] = {}
    for one in absences:
        if one.lacking not in NEVER_GIVEN:
            known = found.get(one.cluster, GivenCluster())
            found[one.cluster] = known.and_more(given_for(one))
    return found


def given_for(absence: Absence) -> GivenCluster:
    """What stands in for one thing."""
    ref, kinds = absence.ref, absence.kinds
    match absence.lacking:
        case Lacking.OPERATOR if ref.name:
            operator = GivenOperator(ref.name, definitions=not absence.defined)
            return GivenCluster(operators=(operator,))
        case Lacking.OPERATOR:
            served = (_given_kind(one, absence, defined=False) for one in kinds)
            return GivenCluster(kinds=tuple(served))
        case Lacking.KIND:
            defined = (_given_kind(one, absence, defined=True) for one in kinds)
            return GivenCluster(kinds=tuple(defined))
        case Lacking.NAMESPACE:
            return GivenCluster(namespaces=(ref.name,))
        case Lacking.OBJECT:
            spot = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
            return GivenCluster(names={title_of(ref.kind.group, ref.kind.name): (spot,)})
        case Lacking.SETTING | Lacking.SERVICE | Lacking.PART | Lacking.ROOT:
            return GivenCluster()


def _given_kind(kind: Kind, absence: Absence, *, defined: bool) -> GivenKind:
    return GivenKind(
        name=f"{kind.api_version}/{kind.name}",
        cluster_wide=absence.cluster_wide,
        defined=defined,
        served=not absence.served,
    )


def _together(
    old: Mapping[str, GivenCluster], new: Mapping[str, GivenCluster]
) -> dict[str, GivenCluster]:
    names = dict.fromkeys((*old, *new))
    none = GivenCluster()
    return {name: old.get(name, none).and_more(new.get(name, none)) for name in names}


def _unlike(absences: Iterable[Absence]) -> tuple[Absence, ...]:
    """Each thing once; the first time that it is told counts."""
    found: dict[tuple[str, Lacking, object], Absence] = {}
    for one in absences:
        found.setdefault((one.cluster, one.lacking, one.ref), one)
    return tuple(found.values())
