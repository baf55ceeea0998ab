"""Names that somebody may be about to type, in a repository and a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.dialect.masters import MASTERS
from tidegate.flows.entering import find
from tidegate.flows.lineage import is_kind
from tidegate.flows.named import all_named
from tidegate.flows.pointing import Pointed
from tidegate.flows.render import own_setting
from tidegate.flows.session import Session, Target, open_session
from tidegate.flows.standing import kind_of
from tidegate.health.argo.verdicts import is_hook
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import text
from tidegate.plan.rerun import JOB
from tidegate.world.ask import ask
from tidegate.world.calls import List, Selection, View
from tidegate.world.facts import Listed

PATIENCE = Ms(2 * SECOND)
"""Somebody has pressed a key, and looks at the cursor."""


async def names_here(place: str, kinds: Sequence[str]) -> list[str]:
    """Those of a repository; nothing is fetched."""
    found = await find(Pointed(what=place), own_setting(offline=True), only_units=True)
    return [one.id.name for one in all_named(found.families) if one.id.kind in kinds]


async def objects_here(place: str, word: str) -> list[str]:
    """Names of objects that a repository brings: of a kind, as people call it."""
    return [ref.name for ref, _ in await _brought(place) if is_kind(ref.kind, word)]


async def kinds_here(place: str) -> list[str]:
    """The kinds of what a repository brings, as people type them."""
    return [*dict.fromkeys(ref.kind.name.lower() for ref, _ in await _brought(place))]


async def runs_here(place: str) -> list[str]:
    """Names of Jobs and hooks that a repository brings."""
    return [
        ref.name
        for ref, body in await _brought(place)
        if (ref.kind.group, ref.kind.name) == JOB or is_hook(body)
    ]


async def _brought(place: str) -> list[tuple[Ref, dict[str, Json]]]:
    """All that units of a repository render to; nothing is fetched."""
    found = await find(Pointed(what=place), own_setting(offline=True))
    bodies = (
        one.body
        for family in found.families
        for member in family.members
        for one in member.documents
    )
    return [
        (Ref(kind_of(one), text(one, "metadata", "namespace"), text(one, "metadata", "name")), one)
        for one in bodies
    ]


async def objects_living(target: Target, word: str) -> list[str]:
    """Names of objects of a kind in a cluster, as far as it answers at once."""
    async with open_session(target, own_setting(offline=True)) as session:
        served = {one.kind for one in await session.kinds() if is_kind(one.kind, word)}
        return await _listed(session, sorted(served))


async def names_living(target: Target, kinds: Sequence[str]) -> list[str]:
    """Those of a cluster, as far as it answers at once."""
    groups = {(MASTERS[kind].group, kind) for kind in kinds if kind in MASTERS}
    async with open_session(target, own_setting(offline=True)) as session:
        served = [one.kind for one in await session.kinds()]
        wanted = {(one.group, one.name): one for one in reversed(served)}
        return await _listed(session, [wanted[one] for one in sorted(groups) if one in wanted])


async def _listed(session: Session, kinds: Sequence[Kind]) -> list[str]:
    asked = [List(Selection(kind, view=View.METADATA)) for kind in kinds]
    pages = await ask(session.world, *asked, within=PATIENCE)
    return [one.ref.name for page in pages if isinstance(page, Listed) for one in page.items]
