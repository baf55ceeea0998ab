"""What the templates of a release look up in their cluster: asked for, round by round.

A worker renders, and says what its templates ask a cluster for. That is asked, and it renders
again with the answers, until nothing new is asked for. Without a cluster nothing is found, as with
`helm template`, and that is told.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import msgspec
from msgspec.structs import replace

from tidegate.errors import RenderError
from tidegate.flows.rendering.outcome import Rendered
from tidegate.flows.rendering.trees import data_of
from tidegate.flows.rendering.unsealing import conceal, secrets_of
from tidegate.flows.rendering.workshop import Setting
from tidegate.model.objects import Json
from tidegate.model.reading import mappings, text
from tidegate.model.release import NOT_THERE, LookedUp, Release
from tidegate.model.unit import Unit
from tidegate.render.helm import LookupsError
from tidegate.render.lookups import find_lookups, may_look_up

NOBODY = "`lookup` finds nothing here, as in `helm template`: no cluster is asked"
SIMULATED = "`lookup` sees the simulated cluster; a real one may have more"
NOT_YET = "it cannot be rendered while something that it looks up is not there"
ROUNDS = 20
"""A chart that asks for something new each time is never done."""


class Lookups:
    """Of one unit. `secrets` gets what is found in Secrets: nobody may see it."""

    def __init__(self, unit: Unit, setting: Setting, secrets: set[str]) -> None:
        self._unit = unit
        self._ask = setting.ask_lookup
        self._simulates = setting.simulates
        self._secrets = secrets

    async def render(
        self, release: Release, render: Callable[[Release], Awaitable[Rendered]]
    ) -> tuple[Release, Rendered]:
        """The objects, and the release with all that was looked up for them."""
        if not may_look_up(release):
            return release, await render(release)
        if self._ask is None:
            return release, _noted(await render(release), release, NOBODY)
        left = ROUNDS
        while True:
            release = replace(release, lookups=release.lookups or {})
            try:
                return release, self._told(await render(release), release)
            except LookupsError as error:
                left -= 1
                if not left:
                    raise
                found = {path: await self._ask(self._unit, path) for path in error.paths}
            except RenderError as error:
                if not any(map(is_vain, (release.lookups or {}).values())):
                    raise
                conceal(error, self._secrets)
                return release, _unmet(error)
            self._secrets |= {one for answer in found.values() for one in _secrets_in(answer)}
            release = replace(release, lookups={**(release.lookups or {}), **found})

    def _told(self, rendered: Rendered, release: Release) -> Rendered:
        return _noted(rendered, release, SIMULATED) if self._simulates else rendered


def is_vain(answer: LookedUp) -> bool:
    """Whether nothing was found."""
    if answer.status == NOT_THERE.status:
        return True
    body: dict[str, Json] = msgspec.json.decode(answer.body)
    return "items" in body and not body["items"]


def _unmet(error: RenderError) -> Rendered:
    problem = f"{NOT_YET}: {error.problem}"
    note = RenderError("render.lookup", problem, where=error.where, hint=error.hint)
    return Rendered(documents=(), hidden=(), notes=(note,), unmet=error)


def _noted(rendered: Rendered, release: Release, problem: str) -> Rendered:
    """With a note for each template that looks something up: it may come to something else."""
    hint = "`sync` and `plan --context` ask the cluster, as helm-controller does"
    notes = (
        RenderError("render.lookup", problem, where=place, hint=hint)
        for place in find_lookups(release)
    )
    return replace(rendered, notes=(*rendered.notes, *notes))


def _secrets_in(answer: LookedUp) -> Iterator[str]:
    body: dict[str, Json] = msgspec.json.decode(answer.body)
    kind = text(body, "kind")
    if kind in ("Secret", "SecretList"):
        # What stands in a list need not say what it is.
        for one in mappings(body, "items") if kind == "SecretList" else (body,):
            yield from secrets_of(data_of({**one, "kind": "Secret"}))
