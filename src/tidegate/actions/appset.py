"""Generation of ApplicationSets: their Applications and parameters."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.errors import Location, PlanError
from tidegate.model.finding import Finding
from tidegate.model.views.appset import GeneratedApplication
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.discovery.appsets import ExpandedAppSet
from tidegate.workspace.discovery.discover import find_appsets
from tidegate.workspace.request import LoadRequest


class GeneratedAppSets(msgspec.Struct, frozen=True):
    """Generated Applications, in the order of the sets and their generators."""

    rows: tuple[GeneratedApplication, ...]
    findings: tuple[Finding, ...] = ()


async def generate_appsets(
    request: LoadRequest, render_settings: RenderSettings
) -> GeneratedAppSets:
    """Generate the ApplicationSets in a file or directory. Raises PlanError if there are none."""
    generated_sets, findings = await find_appsets(request, render_settings)
    if not generated_sets and not findings:
        hint = "list ApplicationSets of charts and overlays with `tidegate units`"
        problem = "no ApplicationSet found"
        raise PlanError("plan.appsets", problem, location=Location(request.path_or_url), hint=hint)
    return GeneratedAppSets(
        tuple(row for generated_set in generated_sets for row in _set_rows(generated_set)), findings
    )


def _set_rows(generated_set: ExpandedAppSet) -> Iterator[GeneratedApplication]:
    steps = {
        unit.id.name: unit.rolling_sync_step.number
        for unit in generated_set.declared.units
        if unit.rolling_sync_step
    }
    for application in generated_set.generated.applications:
        yield GeneratedApplication(
            appset=generated_set.appset.tracking_id,
            generator=int(application.path[-1]),
            number=application.number,
            step=steps.get(application.name),
            params=application.params,
            body=application.body,
        )
