"""What kstatus asks of the built-in kinds that run no pods."""

from __future__ import annotations

from tidegate.health.kstatus.fields import Body, conditions_of, text_or
from tidegate.health.kstatus.verdicts import current, failed, in_progress
from tidegate.model.verdict import Verdict


def judge_at_once(_: Body) -> Verdict:
    return current("AlwaysReady", "Resource is always ready")


def judge_claim(body: Body) -> Verdict:
    phase = text_or(body, "status", "phase", default="unknown")
    if phase != "Bound":
        return in_progress("NotBound", f"PVC is not Bound. phase: {phase}")
    return current("Bound", "PVC is Bound")


def judge_service(body: Body) -> Verdict:
    """An address inside the cluster is enough; a load balancer's own is not awaited."""
    if text_or(body, "spec", "type") == "LoadBalancer" and not text_or(body, "spec", "clusterIP"):
        return in_progress("NoIPAssigned", "ClusterIP not set. Service type: LoadBalancer")
    return current("ServiceReady", "Service is ready")


def judge_disruption_budget(_: Body) -> Verdict:
    """That its controller has seen it was asked before."""
    return current("DisruptionsComputed", "AllowedDisruptions has been computed.")


def judge_definition(body: Body) -> Verdict:
    """Names that are taken, or a definition that will not be established, have failed."""
    for condition in conditions_of(body):
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
