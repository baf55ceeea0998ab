"""Names that somebody may be about to type: of units and sources, in a repository and a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.dialect.masters import MASTERS
from tidegate.flows.entering import find
from tidegate.flows.named import all_named
from tidegate.flows.pointing import Pointed
from tidegate.flows.render import own_setting
from tidegate.flows.session import Target, open_session
from tidegate.model.moment import SECOND, Ms
from tidegate.world.ask import ask
from tidegate.world.calls import List, Selection, View
from tidegate.world.facts import Listed

PATIENCE = Ms(2 * SECOND)
"""Somebody has pressed a key, and looks at the cursor."""


async def names_here(place: str, kinds: Sequence[str]) -> list[str]:
    """Those of a repository; nothing is fetched."""
    found = await find(Pointed(what=place), own_setting(offline=True), only_units=True)
    return [one.id.name for one in all_named(found.families) if one.id.kind in kinds]


async def names_living(target: Target, kinds: Sequence[str]) -> list[str]:
    """Those of a cluster, as far as it answers at once."""
    groups = {(MASTERS[kind].group, kind) for kind in kinds if kind in MASTERS}
    async with open_session(target, own_setting(offline=True)) as session:
        served = [one.kind for one in await session.kinds()]
        wanted = {(one.group, one.name): one for one in reversed(served)}
        asked = [
            List(Selection(wanted[one], view=View.METADATA)) for one in groups if one in wanted
        ]
        pages = await ask(session.world, *asked, within=PATIENCE)
        return [one.ref.name for page in pages if isinstance(page, Listed) for one in page.items]
