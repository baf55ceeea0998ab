"""The head of a run record, as programs read it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.plan import Deed, Edge
from tidegate.model.run import RUN, RUN_VERSION, RunHead, RunObject, RunStep, RunUnit
from tidegate.model.unit import UnitId
from tidegate.report.rollout.documents import ObjectName


class RunObjectOut(ObjectName, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """An object of a step, as `RunObject` has it."""

    deed: Deed = Deed.APPLY
    hook: bool = False
    gates: bool = True


class RunStepOut(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A step, as `RunStep` has it."""

    id: str
    unit: str
    cluster: str = ""
    phase: str = "sync"
    wave: int = 0
    stage: str = ""
    part: int = 0
    objects: tuple[RunObjectOut, ...] = ()


class RunUnitOut(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, rename="camel"):
    """A unit by its id, and the parts of that; `home`: the cluster that has its own object."""

    unit: str
    kind: str = ""
    home: str = ""
    namespace: str = ""
    name: str = ""
    cluster: str = ""
    brought_by: str = ""
    wave: int | None = None
    manager: str = ""
    sparing: bool = False


class RunHeadOut(msgspec.Struct, frozen=True, kw_only=True):
    """The first line."""

    kind: str = RUN
    version: int = RUN_VERSION
    digest: str = ""
    at: Ms = Ms(0)
    target: tuple[str, ...] = ()
    simulated: bool = False
    units: tuple[RunUnitOut, ...] = ()
    steps: tuple[RunStepOut, ...] = ()
    edges: tuple[Edge, ...] = ()


def head_out(head: RunHead) -> RunHeadOut:
    return RunHeadOut(
        digest=head.digest,
        at=head.at,
        target=head.target,
        simulated=head.is_simulated,
        units=tuple(map(_unit_out, head.units)),
        steps=tuple(map(_step_out, head.steps)),
        edges=head.edges,
    )


def _unit_out(unit: RunUnit) -> RunUnitOut:
    name = unit.id
    return RunUnitOut(
        unit=str(name),
        kind=name.kind,
        home=name.cluster,
        namespace=name.namespace,
        name=name.name,
        cluster=unit.cluster,
        brought_by=str(unit.parent) if unit.parent else "",
        wave=unit.wave,
        manager=unit.manager,
        sparing=unit.sparing,
    )


def _step_out(step: RunStep) -> RunStepOut:
    objects = tuple(
        RunObjectOut(
            **msgspec.structs.asdict(ObjectName.of(one.ref)),
            deed=one.deed,
            hook=one.hook,
            gates=one.gates,
        )
        for one in step.objects
    )
    return RunStepOut(
        id=step.id,
        unit=str(step.unit),
        cluster=step.cluster,
        phase=step.phase,
        wave=step.wave,
        stage=step.stage,
        part=step.part,
        objects=objects,
    )


def head_in(out: RunHeadOut) -> RunHead:
    """The head that was written so. Raises KeyError for a unit that is not in it."""
    known = {one.unit: UnitId(one.kind, one.home, one.namespace, one.name) for one in out.units}
    return RunHead(
        digest=out.digest,
        at=out.at,
        target=out.target,
        is_simulated=out.simulated,
        units=tuple(_unit_in(one, known) for one in out.units),
        steps=tuple(_step_in(one, known) for one in out.steps),
        edges=out.edges,
    )


def _unit_in(one: RunUnitOut, known: Mapping[str, UnitId]) -> RunUnit:
    return RunUnit(
        id=known[one.unit],
        cluster=one.cluster,
        parent=known.get(one.brought_by),
        wave=one.wave,
        manager=one.manager,
        sparing=one.sparing,
    )


def _step_in(step: RunStepOut, known: Mapping[str, UnitId]) -> RunStep:
    return RunStep(
        id=step.id,
        unit=known[step.unit],
        cluster=step.cluster,
        phase=step.phase,
        wave=step.wave,
        stage=step.stage,
        part=step.part,
        objects=tuple(RunObject(one.ref, one.deed, one.hook, one.gates) for one in step.objects),
    )
