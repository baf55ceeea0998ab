"""What people call things: steps, amounts and spans of time."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice

from tidegate.model.graph import GraphStep
from tidegate.model.moment import HOUR, MINUTE, SECOND, Ms
from tidegate.model.objects import Ref
from tidegate.model.patterns import late
from tidegate.model.plan import Step
from tidegate.model.run import RunStep
from tidegate.model.unit import UnitId

PHASES = {
    "sync": "",
    "presync": "PreSync",
    "postsync": "PostSync",
    "syncfail": "SyncFail",
    "predelete": "PreDelete",
    "delete": "",
    "postdelete": "PostDelete",
}
TENTHS = Ms(10 * SECOND)
"""Up to here, a running time is told in tenths of a second; they only flicker beyond."""
WORDY = ("Waiting for rollout to finish: ", "Waiting for ")
_REFUSED = late(r'Error creating: (?:pods "[^"]*" is forbidden: )?')
_DENIED = late(r'admission webhook "(?P<name>[^"]+)" denied the request: (?P<why>.*)')


def name_step(step: Step | GraphStep | RunStep) -> str:
    """A step without its unit: `wave -2`, `PreSync`, `PostSync wave 1`."""
    told = step.stage or _name(step.phase, step.wave)
    return f"{told} part {step.part}" if step.part else told


def name_spot(spot: str) -> str:
    """The same of a step of which only the end of its id is known: `sync/-2`."""
    phase, _, wave = spot.partition("/")
    return _name(phase, int(wave)) if wave.removeprefix("-").isdecimal() else spot


def name_unit(unit: UnitId, cluster: str) -> str:
    """A unit with the cluster its objects go to, where that is not said already."""
    return f"{cluster}/{unit}" if cluster not in {"", unit.cluster} else str(unit)


def name_from(own: UnitId, other: UnitId) -> str:
    """A unit as another one sees it: the name alone, of one of the same kind in the same place."""
    is_near = (own.kind, own.cluster, own.namespace) == (other.kind, other.cluster, other.namespace)
    return other.name if is_near else str(other)


def _name(phase: str, wave: int) -> str:
    told = PHASES.get(phase, phase)
    if not told:
        return f"wave {wave}"
    return f"{told} wave {wave}" if wave else told


def short_units(units: Iterable[str]) -> dict[str, str]:
    """Units without the namespace that all of them share; a single one needs no name."""
    known = list(dict.fromkeys(units))
    if len(known) == 1:
        return {known[0]: ""}
    spaces = {unit.rpartition("/")[0] for unit in known}
    return {unit: unit.rpartition("/")[2] if len(spaces) == 1 else unit for unit in known}


def count(amount: int, noun: str) -> str:
    """`1 object`, `1,200 objects`."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def seconds(span: int) -> str:
    """A span that is over: `0.1s`, `102.0s`."""
    return f"{span / SECOND:.1f}s"


def running(span: int) -> str:
    """A span that still grows: `3.2s`, `42s`, `1m42s`, `2h05m`."""
    if span < TENTHS:
        return f"{max(0, span) / SECOND:.1f}s"
    if span < MINUTE:
        return f"{span // SECOND}s"
    if span < HOUR:
        return f"{span // MINUTE}m{span % MINUTE // SECOND:02}s"
    return f"{span // HOUR}h{span % HOUR // MINUTE:02}m"


def limit(span: int) -> str:
    """A span that is allowed: `10m`, `90s`, `1m30s`."""
    if span >= MINUTE and span % MINUTE < SECOND:
        return f"{span // MINUTE}m" if span < HOUR else running(span)
    return running(span)


def core(cause: str) -> str:
    """A cause, with what decides first: a row may have no room for who told whom."""
    found = _REFUSED.sub("", cause)
    return _DENIED.sub(r"denied by a webhook: \g<why> (\g<name>)", found)


def brief(sentence: str) -> str:
    """A reason to wait without the words that say that something is waited for."""
    for words in WORDY:
        if sentence.startswith(words):
            sentence = sentence.removeprefix(words)
            break
    return sentence.removesuffix("...")


def listing(refs: Collection[Ref | UnitId], most: int) -> str:
    """Objects by name, at most so many: `Secret a/b, ConfigMap a/c and 12 more`."""
    return fold(map(str, refs), len(refs), most)


def fold(names: Iterable[str], amount: int, most: int) -> str:
    """The first of these names, and how many there are besides."""
    shown = ", ".join(islice(names, most))
    return shown if amount <= most else f"{shown} and {amount - most:,} more"
