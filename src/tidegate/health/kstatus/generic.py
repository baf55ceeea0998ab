"""What kstatus asks of every object, whatever its kind.

Before the rule of its kind: is it being deleted, has its controller seen it, does a condition
`Reconciling` or `Stalled` speak. Where no rule knows the kind: what does `Ready` say.
"""

from __future__ import annotations

from tidegate.health.kstatus.fields import Body, conditions_of, stated_number, stated_text, text_or
from tidegate.health.kstatus.verdicts import current, failed, in_progress
from tidegate.model.verdict import Health, Verdict

NOTHING_SAID = Verdict(Health.HEALTHY, "NothingSaid", "Resource is current", checked=False)
"""No condition that kstatus knows: it takes the object for current, which proves nothing."""


def judge_first(body: Body) -> Verdict | None:
    """The rules that come before any rule of a kind."""
    if stated_text(body, "metadata", "deletionTimestamp"):
        return in_progress("Terminating", "Resource scheduled for deletion")
    return _unseen(body) or _outspoken(body)


def judge_ready(body: Body) -> Verdict | None:
    """What the condition `Ready` says, where it says anything that is known."""
    for condition in conditions_of(body):
        if condition.name != "Ready":
            continue
        if condition.holds:
            return current("Ready", "Resource is Ready", by=condition)
        if condition.status in {"False", "Unknown"}:
            return in_progress(condition.reason or "NotReady", condition.message, by=condition)
    return None


def _unseen(body: Body) -> Verdict | None:
    generation = stated_number(body, "metadata", "generation")
    if generation is None:
        return None
    observed = stated_number(body, "status", "observedGeneration")
    if observed is None or observed == generation:
        return None
    sentence = (
        f"{text_or(body, 'kind')} generation is {generation}, "
        f"but latest observed generation is {observed}"
    )
    return in_progress("LatestGenerationNotObserved", sentence)


def _outspoken(body: Body) -> Verdict | None:
    for condition in conditions_of(body):
        if condition.name == "Reconciling" and condition.holds:
            return in_progress(condition.reason or "Reconciling", condition.message, by=condition)
        if condition.name == "Stalled" and condition.holds:
            return failed(condition.reason or "Stalled", condition.message, by=condition)
    return None
