"""Gate evaluation of one object: the gate opens, waits or fails, and why."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.engine.fences import (
    FenceReason,
    FreshnessCheck,
    check_fence,
    freshness_check,
    needs_probe,
)
from tidegate.engine.messages import CompareResult, Override
from tidegate.engine.state.rollout import ItemRun
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.plans.plan import AWAIT_ACTIONS, ItemAction
from tidegate.model.times import Ms
from tidegate.model.units.semantics import Semantics


class GateDecision(StrEnum):
    """Decision of a gate about one object."""

    OPENS = "opens"
    WAITS = "waits"
    PROBES = "probes"
    """The object is healthy, but its service must be probed; the probe reports the reason."""
    FAILS = "fails"


class GateResult(msgspec.Struct, frozen=True, gc=False):
    """Decision of a gate with its reason."""

    decision: GateDecision
    reason: str = ""
    message: str = ""
    recheck_at: Ms | None = None
    """Time at which a wait must be checked again even if nothing happens."""
    final: bool = False
    is_timeout: bool = False
    """Whether the object fails because it has been unhealthy for too long, as far as is known."""
    unproven: FenceReason | None = None
    """The unproven part if the gate opens without proof."""


OVERRIDDEN = "Overridden"
"""Reason of an object that is healthy only because of a field that another client set."""
OPEN = GateResult(GateDecision.OPENS)
NO_VERDICT = GateResult(GateDecision.WAITS, "NoVerdict", "health is unknown")
ABSENT = GateResult(GateDecision.WAITS, "Missing", "does not exist yet")
PRESENT = GateResult(GateDecision.WAITS, "StillExists", "still exists")


def evaluate_gate(run: ItemRun, now: Ms) -> GateResult:
    """Evaluate the last verdict of an object that is written or awaited."""
    semantics = run.step.semantics
    if run.item.action in AWAIT_ACTIONS:
        return _evaluate_awaited(run, semantics, now)
    if run.health is None or run.written is None:
        return NO_VERDICT
    verdict = run.health.verdict
    unproven = None
    if semantics.fenced:
        unproven = check_fence(
            run.written, run.health, accept_after=Ms(run.written_at + semantics.status_wait)
        )
        if unproven is not None and (unproven.until is None or now < unproven.until):
            run.unhealthy_since = None
            return GateResult(GateDecision.WAITS, unproven.reason, unproven.message, unproven.until)
    if not verdict.is_checked and not semantics.uses_generic_health:
        return OPEN
    return _evaluate_health(run, verdict, semantics, now, unproven)


def _evaluate_awaited(run: ItemRun, semantics: Semantics, now: Ms) -> GateResult:
    """Evaluate an object of another unit: it must exist, and its status must be current."""
    if run.item.action is ItemAction.AWAIT_ABSENT:
        is_gone = run.health is None and run.compare_result is CompareResult.ABSENT
        return OPEN if is_gone else PRESENT
    if run.health is None:
        return ABSENT
    if run.item.action is ItemAction.AWAIT_PRESENT:
        return OPEN
    verdict = run.health.verdict
    observed, kind = verdict.observed_generation, run.item.ref.kind
    reports_generation = (
        bool(observed) or freshness_check(kind) is FreshnessCheck.OBSERVED_GENERATION
    )
    if semantics.fenced and reports_generation and observed < run.health.generation:
        return GateResult(
            GateDecision.WAITS, "NotObserved", "its controller has not observed the last change"
        )
    if not verdict.is_checked and not semantics.uses_generic_health:
        return OPEN
    return _evaluate_health(run, verdict, semantics, now, None)


def _evaluate_health(
    run: ItemRun, verdict: Verdict, semantics: Semantics, now: Ms, unproven: FenceReason | None
) -> GateResult:
    match verdict.health:
        case Health.HEALTHY:
            run.unhealthy_since = None
            return _evaluate_healthy(run, semantics, unproven)
        case Health.SUSPENDED if run.item.is_suspended and semantics.passes_paused:
            return GateResult(GateDecision.OPENS, unproven=unproven)
        case Health.SUSPENDED:
            return _evaluate_unhealthy(run, verdict, semantics.suspended_timeout, now)
        case Health.DEGRADED:
            return _evaluate_degraded(run, verdict, semantics, now)
        case Health.PROGRESSING | Health.MISSING | Health.UNKNOWN:
            run.unhealthy_since = None
            is_failed_hook = verdict.health is Health.UNKNOWN and run.item.hook is not None
            decision = GateDecision.FAILS if is_failed_hook else GateDecision.WAITS
            return GateResult(decision, verdict.reason, verdict.message)


def _evaluate_healthy(
    run: ItemRun, semantics: Semantics, unproven: FenceReason | None
) -> GateResult:
    override = find_override(run)
    if override is not None and override.is_certain:
        return GateResult(GateDecision.WAITS, OVERRIDDEN, override.message)
    if override is not None and unproven is None:
        unproven = FenceReason(OVERRIDDEN, override.message)
    if needs_probe(run.item.ref.kind) and semantics.fenced and not run.probe_passed:
        return GateResult(GateDecision.PROBES)
    return GateResult(GateDecision.OPENS, unproven=unproven)


def find_override(run: ItemRun) -> Override | None:
    """Return the field of others by which an object is healthy without the applied template.

    An object whose gate has opened for this manifest before has run it.
    """
    written, health = run.written, run.health
    if written is None or health is None or (written.has_passed and not written.changed):
        return None
    return health.override if run.step.semantics.fenced else None


def _evaluate_degraded(run: ItemRun, verdict: Verdict, semantics: Semantics, now: Ms) -> GateResult:
    if semantics.tolerates_last_degraded and run.step.step.is_last and run.item.hook is None:
        return GateResult(GateDecision.WAITS, verdict.reason, verdict.message)
    if verdict.is_final or not semantics.settle_time:
        return GateResult(
            GateDecision.FAILS, verdict.reason, verdict.message, final=verdict.is_final
        )
    return _evaluate_unhealthy(
        run, verdict, Ms(0) if verdict.is_starting else semantics.settle_time, now
    )


def _evaluate_unhealthy(run: ItemRun, verdict: Verdict, limit: Ms, now: Ms) -> GateResult:
    """Fail an object that has been unhealthy for the limit; without a limit it only waits."""
    if run.unhealthy_since is None:
        run.unhealthy_since = now
    if not limit:
        return GateResult(GateDecision.WAITS, verdict.reason, verdict.message)
    fails_at = Ms(run.unhealthy_since + limit)
    if now >= fails_at:
        return GateResult(GateDecision.FAILS, verdict.reason, verdict.message, is_timeout=True)
    return GateResult(GateDecision.WAITS, verdict.reason, verdict.message, recheck_at=fails_at)
