"""What the ApplicationSets of a file generate: the Applications, and the parameters behind them."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.errors import Place, PlanError
from tidegate.flows.discover import find_sets
from tidegate.flows.discover.sets import GeneratedSet
from tidegate.flows.pointing import Pointed
from tidegate.flows.rendering import Setting
from tidegate.model.finding import Finding
from tidegate.report.sets import SetRow


class SetsOfFile(msgspec.Struct, frozen=True):
    """All that was generated, in the order of the sets and their generators."""

    rows: tuple[SetRow, ...]
    findings: tuple[Finding, ...] = ()


async def generate_sets(pointed: Pointed, setting: Setting) -> SetsOfFile:
    """Generate the sets that stand in a file, or below a directory. Raises where there are none."""
    found, findings = await find_sets(pointed, setting)
    if not found and not findings:
        hint = "what a chart or an overlay brings is shown by `tidegate units`"
        problem = "there is no ApplicationSet"
        raise PlanError("plan.sets", problem, where=Place(pointed.what), hint=hint)
    return SetsOfFile(tuple(row for one in found for row in _rows(one)), findings)


def _rows(one: GeneratedSet) -> Iterator[SetRow]:
    steps = {unit.id.name: unit.rollout.number for unit in one.declared.units if unit.rollout}
    for made in one.generated.applications:
        yield SetRow(
            set=one.set.mark,
            generator=int(made.path[-1]),
            number=made.number,
            step=steps.get(made.name),
            params=made.params,
            body=made.body,
        )
