"""What kstatus asks of every object, and of the built-in kinds that run no pods.

Before the rule of its kind: is it being deleted, has its controller seen it, does a condition
`Reconciling` or `Stalled` speak. Where no rule knows the kind: what does `Ready` say.
"""

from __future__ import annotations

from tidegate.health.kstatus import fields
from tidegate.health.kstatus.fields import current, failed, in_progress
from tidegate.model.k8s.json_fields import get_text, get_value
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.k8s.verdict import Health, Verdict

NOTHING_SAID = Verdict(Health.HEALTHY, "NothingSaid", "Resource is current", is_checked=False)
"""No condition that kstatus knows: it takes the object for current, which proves nothing."""


def judge_first(body: JsonObject) -> Verdict | None:
    """The rules that come before any rule of a kind."""
    if fields.stated_text(body, "metadata", "deletionTimestamp"):
        return in_progress("Terminating", "Resource scheduled for deletion")
    return _unseen(body) or _outspoken(body)


def judge_ready(body: JsonObject) -> Verdict | None:
    """What the condition `Ready` says, where it says anything that is known."""
    for condition in fields.conditions_of(body):
        if condition.name != "Ready":
            continue
        if condition.holds:
            return current("Ready", "Resource is Ready", by=condition)
        if condition.status in {"False", "Unknown"}:
            return in_progress(condition.reason or "NotReady", condition.message, by=condition)
    return None


def _unseen(body: JsonObject) -> Verdict | None:
    generation = fields.stated_number(body, "metadata", "generation")
    if generation is None:
        return None
    observed = fields.stated_number(body, "status", "observedGeneration")
    if observed is None or observed == generation:
        return None
    sentence = (
        f"{get_text(body, 'kind')} generation is {generation}, "
        f"but latest observed generation is {observed}"
    )
    return in_progress("LatestGenerationNotObserved", sentence)


def _outspoken(body: JsonObject) -> Verdict | None:
    for condition in fields.conditions_of(body):
        if condition.name == "Reconciling" and condition.holds:
            return in_progress(condition.reason or "Reconciling", condition.message, by=condition)
        if condition.name == "Stalled" and condition.holds:
            return failed(condition.reason or "Stalled", condition.message, by=condition)
    return None


def judge_at_once(_: JsonObject) -> Verdict:
    return current("AlwaysReady", "Resource is always ready")


def judge_claim(body: JsonObject) -> Verdict:
    phase = get_value(body, "status", "phase")
    if phase != "Bound":
        shown = phase if isinstance(phase, str) else "unknown"
        return in_progress("NotBound", f"PVC is not Bound. phase: {shown}")
    return current("Bound", "PVC is Bound")


def judge_service(body: JsonObject) -> Verdict:
    """An address inside the cluster is enough; a load balancer's own is not awaited."""
    if get_text(body, "spec", "type") == "LoadBalancer" and not get_text(body, "spec", "clusterIP"):
        return in_progress("NoIPAssigned", "ClusterIP not set. Service type: LoadBalancer")
    return current("ServiceReady", "Service is ready")


def judge_disruption_budget(_: JsonObject) -> Verdict:
    """That its controller has seen it was asked before."""
    return current("DisruptionsComputed", "AllowedDisruptions has been computed.")


def judge_definition(body: JsonObject) -> Verdict:
    """Names that are taken, or a definition that will not be established, have failed."""
    for condition in fields.conditions_of(body):
        refused = condition.status == "False"
        if condition.name == "NamesAccepted" and refused:
            return failed(condition.reason or "NamesNotAccepted", condition.message, by=condition)
        if condition.name != "Established":
            continue
        if refused and condition.reason != "Installing":
            return failed(condition.reason or "NotEstablished", condition.message, by=condition)
        if condition.holds:
            return current("Established", "CRD is established", by=condition)
    return in_progress("Installing", "Install in progress")
