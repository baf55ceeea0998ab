"""Display names of steps and units."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.model.plans.graph import GraphStep
from tidegate.model.plans.plan import Step
from tidegate.model.rollouts.run import RunStep
from tidegate.model.units.unit import UnitId

PHASE_NAMES = {
    "sync": "",
    "presync": "PreSync",
    "postsync": "PostSync",
    "syncfail": "SyncFail",
    "predelete": "PreDelete",
    "delete": "",
    "postdelete": "PostDelete",
}


def phase_title(*phases: str) -> str:
    """Return the name of the first phase that Argo CD shows, or `Sync`."""
    return next((PHASE_NAMES[phase] for phase in phases if PHASE_NAMES.get(phase)), "Sync")


def step_name(step: Step | GraphStep | RunStep) -> str:
    """Return the name of a step without its unit: `wave -2`, `PreSync`, `PostSync wave 1`."""
    name = step.stage or wave_name(step.phase, step.wave)
    return f"{name} part {step.part}" if step.part else name


def step_name_from_id(step_id: str) -> str:
    """Return the name of a step from the end of its id: `sync/-2`."""
    phase, _, wave = step_id.partition("/")
    return wave_name(phase, int(wave)) if wave.removeprefix("-").isdecimal() else step_id


def unit_name(unit: UnitId, cluster: str) -> str:
    """Return a unit with the cluster of its objects, unless its id names the cluster."""
    return f"{cluster}/{unit}" if cluster not in {"", unit.cluster} else str(unit)


def relative_unit_name(viewer: UnitId, other: UnitId) -> str:
    """Return a unit as another unit refers to it.

    Only the name is returned for a unit of the same kind, cluster and namespace.
    """
    is_same_scope = (viewer.kind, viewer.cluster, viewer.namespace) == (
        other.kind,
        other.cluster,
        other.namespace,
    )
    return other.name if is_same_scope else str(other)


def wave_name(phase: str, wave: int) -> str:
    """Return the name of a wave of a phase: `wave -2`, `PreSync`, `PostSync wave 1`."""
    name = PHASE_NAMES.get(phase, phase)
    if not name:
        return f"wave {wave}"
    return f"{name} wave {wave}" if wave else name


def shorten_unit_names(units: Iterable[str]) -> dict[str, str]:
    """Return unit names without a common namespace; the name of a single unit is empty."""
    names = list(dict.fromkeys(units))
    if len(names) == 1:
        return {names[0]: ""}
    prefixes = {unit.rpartition("/")[0] for unit in names}
    return {unit: unit.rpartition("/")[2] if len(prefixes) == 1 else unit for unit in names}
