"""Display names of steps and units, amounts and durations."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice

from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.graph import GraphStep
from tidegate.model.plans.plan import Step
from tidegate.model.rollouts.run import RunStep
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.times import HOUR, MINUTE, SECOND, Ms
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
TENTHS_LIMIT = Ms(10 * SECOND)
"""Below this limit a running duration is shown with tenths of a second."""
WAIT_PREFIXES = ("Waiting for rollout to finish: ", "Waiting for ")
_CREATE_ERROR = lazy_regex(r'Error creating: (?:pods "[^"]*" is forbidden: )?')
_WEBHOOK_DENIAL = lazy_regex(r'admission webhook "(?P<name>[^"]+)" denied the request: (?P<why>.*)')


def step_name(step: Step | GraphStep | RunStep) -> str:
    """Return the name of a step without its unit: `wave -2`, `PreSync`, `PostSync wave 1`."""
    name = step.stage or _wave_name(step.phase, step.wave)
    return f"{name} part {step.part}" if step.part else name


def step_name_from_id(step_id: str) -> str:
    """Return the name of a step from the end of its id: `sync/-2`."""
    phase, _, wave = step_id.partition("/")
    return _wave_name(phase, int(wave)) if wave.removeprefix("-").isdecimal() else step_id


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


def _wave_name(phase: str, wave: int) -> str:
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


def count_noun(amount: int, singular: str) -> str:
    """Return an amount with its noun: `1 object`, `1,200 objects`."""
    return f"{amount:,} {singular}" if amount == 1 else f"{amount:,} {singular}s"


def format_seconds(duration: int) -> str:
    """Format a finished duration: `0.1s`, `102.0s`."""
    return f"{duration / SECOND:.1f}s"


def format_running(duration: int) -> str:
    """Format a growing duration: `3.2s`, `42s`, `1m42s`, `2h05m`."""
    if duration < TENTHS_LIMIT:
        return f"{max(0, duration) / SECOND:.1f}s"
    if duration < MINUTE:
        return f"{duration // SECOND}s"
    if duration < HOUR:
        return f"{duration // MINUTE}m{duration % MINUTE // SECOND:02}s"
    return f"{duration // HOUR}h{duration % HOUR // MINUTE:02}m"


def format_limit(duration: int) -> str:
    """Format a time limit: `10m`, `90s`, `1m30s`."""
    if duration >= MINUTE and duration % MINUTE < SECOND:
        return f"{duration // MINUTE}m" if duration < HOUR else format_running(duration)
    return format_running(duration)


def shorten_cause(cause: str) -> str:
    """Return a cause with its decisive part first, for rows with little space."""
    text = _CREATE_ERROR.sub("", cause)
    return _WEBHOOK_DENIAL.sub(r"denied by a webhook: \g<why> (\g<name>)", text)


def shorten_wait_message(message: str) -> str:
    """Return a message of a wait without its introductory words."""
    for prefix in WAIT_PREFIXES:
        if message.startswith(prefix):
            message = message.removeprefix(prefix)
            break
    return message.removesuffix("...")


def join_refs(refs: Collection[Ref | UnitId], limit: int) -> str:
    """Join objects by name up to a limit: `Secret a/b, ConfigMap a/c and 12 more`."""
    return join_limited(map(str, refs), len(refs), limit)


def join_limited(names: Iterable[str], amount: int, limit: int) -> str:
    """Join the first names and add how many more there are."""
    shown = ", ".join(islice(names, limit))
    return shown if amount <= limit else f"{shown} and {amount - limit:,} more"
