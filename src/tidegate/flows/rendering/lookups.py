"""Lookups of templates in their cluster, answered round by round."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import msgspec
from msgspec.structs import replace

from tidegate.errors import RenderError
from tidegate.flows.rendering.outcome import RenderResult
from tidegate.flows.rendering.trees import decode_data
from tidegate.flows.rendering.unsealing import redact_error, secret_texts
from tidegate.flows.rendering.workshop import RenderSettings
from tidegate.model.objects import Json
from tidegate.model.reading import get_mappings, get_text
from tidegate.model.release import LOOKUP_NOT_FOUND, ChartRequest, LookupResult
from tidegate.model.unit import Unit
from tidegate.render.helm import LookupsError
from tidegate.render.lookups import find_lookups, may_look_up

NO_CLUSTER_NOTE = "`lookup` finds nothing here, as in `helm template`: no cluster is asked"
SIMULATED_NOTE = "`lookup` sees the simulated cluster; a real one may have more"
MISSING_OBJECT_NOTE = "it cannot be rendered while something that it looks up is not there"
MAX_ROUNDS = 20
"""Limit for a chart that looks up something new each time."""


class LookupRenderer:
    """Renders the chart of a unit with the objects that its templates look up.

    A worker renders, and reports what its templates look up. That is read from the cluster, and the
    worker renders again with the responses, until nothing new is looked up. Without a cluster
    nothing is found, as with `helm template`, and that is reported. `secrets` collects the contents
    of Secrets, which must never be shown.
    """

    def __init__(self, unit: Unit, settings: RenderSettings, secrets: set[str]) -> None:
        self._unit = unit
        self._look_up = settings.look_up
        self._is_simulated = settings.is_simulated
        self._secrets = secrets

    async def render(
        self,
        request: ChartRequest,
        render_objects: Callable[[ChartRequest], Awaitable[RenderResult]],
    ) -> tuple[ChartRequest, RenderResult]:
        """Return the request with the responses to all its lookups, and its objects."""
        if not may_look_up(request):
            return request, await render_objects(request)
        if self._look_up is None:
            return request, _with_lookup_notes(
                await render_objects(request), request, NO_CLUSTER_NOTE
            )
        rounds_left = MAX_ROUNDS
        while True:
            request = replace(request, lookups=request.lookups or {})
            try:
                return request, self._with_simulation_note(await render_objects(request), request)
            except LookupsError as error:
                rounds_left -= 1
                if not rounds_left:
                    raise
                responses = {path: await self._look_up(self._unit, path) for path in error.paths}
            except RenderError as error:
                if not any(map(is_empty_response, (request.lookups or {}).values())):
                    raise
                redact_error(error, self._secrets)
                return request, _missing_object_result(error)
            self._secrets |= {
                secret for response in responses.values() for secret in _secrets_in(response)
            }
            request = replace(request, lookups={**(request.lookups or {}), **responses})

    def _with_simulation_note(self, result: RenderResult, request: ChartRequest) -> RenderResult:
        return _with_lookup_notes(result, request, SIMULATED_NOTE) if self._is_simulated else result


def is_empty_response(response: LookupResult) -> bool:
    """Whether a lookup found nothing."""
    if response.status == LOOKUP_NOT_FOUND.status:
        return True
    body: dict[str, Json] = msgspec.json.decode(response.body)
    return "items" in body and not body["items"]


def _missing_object_result(error: RenderError) -> RenderResult:
    problem = f"{MISSING_OBJECT_NOTE}: {error.problem}"
    note = RenderError("render.lookup", problem, location=error.location, hint=error.hint)
    return RenderResult(documents=(), secret_fields=(), notes=(note,), lookup_error=error)


def _with_lookup_notes(result: RenderResult, request: ChartRequest, problem: str) -> RenderResult:
    """Add a note for each template with a lookup, as it may render something else in a cluster."""
    hint = "`sync` and `plan --context` ask the cluster, as helm-controller does"
    notes = (
        RenderError("render.lookup", problem, location=location, hint=hint)
        for location in find_lookups(request)
    )
    return replace(result, notes=(*result.notes, *notes))


def _secrets_in(response: LookupResult) -> Iterator[str]:
    body: dict[str, Json] = msgspec.json.decode(response.body)
    kind = get_text(body, "kind")
    if kind in ("Secret", "SecretList"):
        # What stands in a list need not say what it is.
        for secret in get_mappings(body, "items") if kind == "SecretList" else (body,):
            yield from secret_texts(decode_data({**secret, "kind": "Secret"}))
