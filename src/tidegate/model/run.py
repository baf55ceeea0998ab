"""A run record: what a rollout was to do, what had to wait for what, and what it told.

The head is a plan without texts: names of objects, and edges. The events behind it are those that
people and programs are told.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.model.event import Event
from tidegate.model.moment import Ms
from tidegate.model.objects import Ref
from tidegate.model.plan import Deed, Edge, Plan, Step, items_of, public_digest
from tidegate.model.unit import UnitId

RUN = "TidegateRun"
RUN_VERSION = 1


class RunObject(msgspec.Struct, frozen=True, gc=False):
    """An object of a step. `hook`: it is run, not kept. `gates`: what comes behind waits for it."""

    ref: Ref
    deed: Deed = Deed.APPLY
    hook: bool = False
    gates: bool = True


class RunStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a unit; one without objects joins others, and is passed when they are."""

    id: str
    unit: UnitId
    cluster: str = ""
    phase: str = "sync"
    wave: int = 0
    stage: str = ""
    part: int = 0
    objects: tuple[RunObject, ...] = ()


class RunUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit; `wave` is that of its own object in its parent. `manager`: whose fields it writes.

    `sparing`: it leaves out what is as wanted already.
    """

    id: UnitId
    cluster: str = ""
    parent: UnitId | None = None
    wave: int | None = None
    manager: str = ""
    sparing: bool = False


class RunHead(msgspec.Struct, frozen=True, kw_only=True):
    """What was to be done. `target`: the clusters as people know them; `at`: when it was told.

    A simulated cluster is gone with the command that made it (`is_simulated`).
    """

    digest: str = ""
    at: Ms = Ms(0)
    target: tuple[str, ...] = ()
    is_simulated: bool = False
    units: tuple[RunUnit, ...] = ()
    steps: tuple[RunStep, ...] = ()
    edges: tuple[Edge, ...] = ()

    @classmethod
    def of(cls, plan: Plan, waves: Mapping[UnitId, int | None]) -> RunHead:
        """A plan without its texts."""
        return cls(
            digest=public_digest(plan),
            units=tuple(
                RunUnit(
                    id=one.id,
                    cluster=one.cluster,
                    parent=one.parent,
                    wave=waves.get(one.id),
                    manager=one.policy.manager,
                    sparing=one.policy.changed_only,
                )
                for one in plan.units
            ),
            steps=tuple(map(_step, plan.steps)),
            edges=plan.edges,
        )


class RunRecord(msgspec.Struct, frozen=True):
    """A record that was read. `cut`: how many lines at its end are not whole."""

    head: RunHead
    events: tuple[Event, ...] = ()
    cut: int = 0


def _step(step: Step) -> RunStep:
    return RunStep(
        id=step.id,
        unit=step.unit,
        cluster=step.cluster,
        phase=step.phase,
        wave=step.wave,
        stage=step.stage,
        part=step.part,
        objects=tuple(
            RunObject(one.ref, one.deed, one.hook is not None, one.gates) for one in items_of(step)
        ),
    )
