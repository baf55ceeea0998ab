"""What a gate makes of one object: it opens, it waits, or it fails, and why."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.engine.fences import Doubt, Proof, doubt, is_probed, proof_of
from tidegate.engine.turns.rollout import ItemRun
from tidegate.engine.vocabulary import Stand
from tidegate.model.moment import Ms
from tidegate.model.plan import AWAITED, Deed
from tidegate.model.semantics import Semantics
from tidegate.model.verdict import Health, Verdict


class Weight(StrEnum):
    OPENS = "opens"
    WAITS = "waits"
    PROBES = "probes"
    """All is well but for what only asking can tell; the answer says what it waits for."""
    FAILS = "fails"


class Weighed(msgspec.Struct, frozen=True, gc=False):
    """`until`: when a wait must be looked at again though nothing happens."""

    weight: Weight
    reason: str = ""
    sentence: str = ""
    until: Ms | None = None
    final: bool = False
    by_time: bool = False
    """It fails since it has been so for too long, as far as is known."""
    doubt: Doubt | None = None
    """What is left unproven where a gate opens all the same."""


OPEN = Weighed(Weight.OPENS)
UNKNOWN = Weighed(Weight.WAITS, "NoVerdict", "nothing is known of it yet")

ABSENT = Weighed(Weight.WAITS, "Missing", "it is not there yet")
PRESENT = Weighed(Weight.WAITS, "Present", "it is still there")


def weigh(run: ItemRun, now: Ms) -> Weighed:
    """Weigh the last verdict of an object that is written, or awaited."""
    rules = run.step.rules
    if run.item.deed in AWAITED:
        return _weigh_awaited(run, rules, now)
    if run.judged is None or run.written is None:
        return UNKNOWN
    verdict = run.judged.verdict
    unproven = None
    if rules.fenced:
        unproven = doubt(run.written, run.judged, lapses=Ms(run.at + rules.proof))
        if unproven is not None and (unproven.until is None or now < unproven.until):
            run.bad_since = None
            return Weighed(Weight.WAITS, unproven.reason, unproven.sentence, unproven.until)
    if not verdict.checked and not rules.falls_back:
        return OPEN
    return _weigh_health(run, verdict, rules, now, unproven)


def _weigh_awaited(run: ItemRun, rules: Semantics, now: Ms) -> Weighed:
    """What is not ours must be there, and its status must speak of the text that it has."""
    if run.item.deed is Deed.AWAIT_ABSENT:
        is_gone = run.judged is None and run.stand is Stand.ABSENT
        return OPEN if is_gone else PRESENT
    if run.judged is None:
        return ABSENT
    if run.item.deed is Deed.AWAIT_PRESENT:
        return OPEN
    verdict = run.judged.verdict
    seen, kind = verdict.speaks_of, run.item.ref.kind
    tells = bool(seen) or proof_of(kind) is Proof.OBSERVED
    if rules.fenced and tells and seen < run.judged.generation:
        return Weighed(Weight.WAITS, "NotObserved", "its controller has not seen its last change")
    if not verdict.checked and not rules.falls_back:
        return OPEN
    return _weigh_health(run, verdict, rules, now, None)


def _weigh_health(
    run: ItemRun, verdict: Verdict, rules: Semantics, now: Ms, unproven: Doubt | None
) -> Weighed:
    match verdict.health:
        case Health.HEALTHY:
            run.bad_since = None
            if is_probed(run.item.ref.kind) and rules.fenced and not run.probed:
                return Weighed(Weight.PROBES)
            return Weighed(Weight.OPENS, doubt=unproven)
        case Health.SUSPENDED if run.item.suspends and rules.passes_paused:
            return Weighed(Weight.OPENS, doubt=unproven)
        case Health.SUSPENDED:
            return _hold(run, verdict, rules.suspended, now)
        case Health.DEGRADED:
            return _weigh_degraded(run, verdict, rules, now)
        case Health.PROGRESSING | Health.MISSING | Health.UNKNOWN:
            run.bad_since = None
            lost = verdict.health is Health.UNKNOWN and run.item.hook is not None
            weight = Weight.FAILS if lost else Weight.WAITS
            return Weighed(weight, verdict.reason, verdict.sentence)


def _weigh_degraded(run: ItemRun, verdict: Verdict, rules: Semantics, now: Ms) -> Weighed:
    if rules.forbears and run.step.step.last and run.item.hook is None:
        return Weighed(Weight.WAITS, verdict.reason, verdict.sentence)
    if verdict.final or not rules.settle:
        return Weighed(Weight.FAILS, verdict.reason, verdict.sentence, final=verdict.final)
    return _hold(run, verdict, Ms(0) if verdict.starts else rules.settle, now)


def _hold(run: ItemRun, verdict: Verdict, limit: Ms, now: Ms) -> Weighed:
    """A bad state counts when it has held for so long; with no limit it only waits."""
    if run.bad_since is None:
        run.bad_since = now
    if not limit:
        return Weighed(Weight.WAITS, verdict.reason, verdict.sentence)
    held = Ms(run.bad_since + limit)
    if now >= held:
        return Weighed(Weight.FAILS, verdict.reason, verdict.sentence, by_time=True)
    return Weighed(Weight.WAITS, verdict.reason, verdict.sentence, until=held)
