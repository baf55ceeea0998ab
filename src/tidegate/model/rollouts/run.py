"""Run record: the plan of a rollout without manifests, and its events.

The head holds names of objects, and edges. It is followed by the events that users saw.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.plan import Edge, ItemAction, Plan, Step, public_digest, step_items
from tidegate.model.rollouts.event import Event
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId

RUN_KIND = "TidegateRun"
RUN_VERSION = 2


class RunObject(msgspec.Struct, frozen=True, gc=False):
    """An object of a step."""

    ref: Ref
    action: ItemAction = ItemAction.APPLY
    is_hook: bool = False
    is_gating: bool = True
    """Whether the steps after its step wait for it."""


class RunStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a unit. A step without objects passes when the steps before it have passed."""

    id: str
    unit: UnitId
    cluster: str = ""
    phase: str = "sync"
    wave: int = 0
    stage: str = ""
    part: int = 0
    objects: tuple[RunObject, ...] = ()


class RunUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit."""

    id: UnitId
    cluster: str = ""
    parent: UnitId | None = None
    wave: int | None = None
    """The wave of its unit resource in the parent."""
    manager: str = ""
    """The field manager of its writes."""
    out_of_sync_only: bool = False
    """Whether it skips objects that are in sync."""


class RunHead(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a rollout, without manifests."""

    digest: str = ""
    at: Ms = Ms(0)
    """When the record was started."""
    target: tuple[str, ...] = ()
    """The clusters, as shown to the user."""
    is_simulated: bool = False
    """Whether the clusters were simulated, and so no longer exist."""
    units: tuple[RunUnit, ...] = ()
    steps: tuple[RunStep, ...] = ()
    edges: tuple[Edge, ...] = ()

    @classmethod
    def from_plan(cls, plan: Plan, waves: Mapping[UnitId, int | None]) -> RunHead:
        """Return the head for a plan."""
        return cls(
            digest=public_digest(plan),
            units=tuple(
                RunUnit(
                    id=unit.id,
                    cluster=unit.cluster,
                    parent=unit.parent,
                    wave=waves.get(unit.id),
                    manager=unit.policy.manager,
                    out_of_sync_only=unit.policy.apply_out_of_sync_only,
                )
                for unit in plan.units
            ),
            steps=tuple(map(_run_step, plan.steps)),
            edges=plan.edges,
        )


class RunRecord(msgspec.Struct, frozen=True):
    """A run record that was read from a file."""

    head: RunHead
    events: tuple[Event, ...] = ()
    truncated_lines: int = 0
    """The number of incomplete lines at the end."""


def _run_step(step: Step) -> RunStep:
    return RunStep(
        id=step.id,
        unit=step.unit,
        cluster=step.cluster,
        phase=step.phase,
        wave=step.wave,
        stage=step.stage,
        part=step.part,
        objects=tuple(
            RunObject(item.ref, item.action, item.hook is not None, item.is_gating)
            for item in step_items(step)
        ),
    )
