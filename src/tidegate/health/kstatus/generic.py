"""The rules of kstatus for every object, and for built-in kinds without pods.

Before the rule of a kind: deletion, observed generation, conditions `Reconciling` and `Stalled`.
For a kind without a rule: the condition `Ready`.
"""

from __future__ import annotations

from tidegate.health.kstatus import fields
from tidegate.health.kstatus.fields import current, failed, in_progress
from tidegate.model.k8s.json_fields import get_text, get_value
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.k8s.verdict import Health, Verdict

NO_KNOWN_CONDITION = Verdict(Health.HEALTHY, "NothingSaid", "Resource is current", is_checked=False)
"""The verdict without a condition that kstatus knows: Current, but not checked."""


def judge_common_rules(body: JsonObject) -> Verdict | None:
    """Apply the rules that precede those of a kind. Returns None if none applies.

    Like `checkGenericProperties` in `pkg/kstatus/status/generic.go` of fluxcd/cli-utils 1.2.3.
    """
    if fields.get_typed_text(body, "metadata", "deletionTimestamp"):
        return in_progress("Terminating", "Resource scheduled for deletion")
    return _judge_generation(body) or _judge_abnormal_conditions(body)


def judge_ready_condition(body: JsonObject) -> Verdict | None:
    """Return the verdict of the condition `Ready`, or None if it has no known status.

    Like `checkReadyCondition` in `pkg/kstatus/status/status.go` of fluxcd/cli-utils 1.2.3.
    """
    for condition in fields.read_conditions(body):
        if condition.type != "Ready":
            continue
        if condition.is_true:
            return current("Ready", "Resource is Ready", condition=condition)
        if condition.status in {"False", "Unknown"}:
            return in_progress(
                condition.reason or "NotReady", condition.message, condition=condition
            )
    return None


def _judge_generation(body: JsonObject) -> Verdict | None:
    generation = fields.get_typed_int(body, "metadata", "generation")
    if generation is None:
        return None
    observed = fields.get_typed_int(body, "status", "observedGeneration")
    if observed is None or observed == generation:
        return None
    message = (
        f"{get_text(body, 'kind')} generation is {generation}, "
        f"but latest observed generation is {observed}"
    )
    return in_progress("LatestGenerationNotObserved", message)


def _judge_abnormal_conditions(body: JsonObject) -> Verdict | None:
    for condition in fields.read_conditions(body):
        if condition.type == "Reconciling" and condition.is_true:
            return in_progress(
                condition.reason or "Reconciling", condition.message, condition=condition
            )
        if condition.type == "Stalled" and condition.is_true:
            return failed(condition.reason or "Stalled", condition.message, condition=condition)
    return None


def judge_always_ready(_: JsonObject) -> Verdict:
    """Return Current, for kinds that are ready when they exist.

    Like `alwaysReady` in `pkg/kstatus/status/core.go` of fluxcd/cli-utils 1.2.3.
    """
    return current("AlwaysReady", "Resource is always ready")


def judge_pvc(body: JsonObject) -> Verdict:
    """Return the health of a PersistentVolumeClaim.

    Like `pvcConditions` in `pkg/kstatus/status/core.go` of fluxcd/cli-utils 1.2.3.
    """
    phase = get_value(body, "status", "phase")
    if phase != "Bound":
        shown = phase if isinstance(phase, str) else "unknown"
        return in_progress("NotBound", f"PVC is not Bound. phase: {shown}")
    return current("Bound", "PVC is Bound")


def judge_service(body: JsonObject) -> Verdict:
    """Return the health of a Service. The address of a load balancer is not waited for.

    Like `serviceConditions` in `pkg/kstatus/status/core.go` of fluxcd/cli-utils 1.2.3.
    """
    if get_text(body, "spec", "type") == "LoadBalancer" and not get_text(body, "spec", "clusterIP"):
        return in_progress("NoIPAssigned", "ClusterIP not set. Service type: LoadBalancer")
    return current("ServiceReady", "Service is ready")


def judge_disruption_budget(_: JsonObject) -> Verdict:
    """Return Current: the common rules have already checked the observed generation.

    Like `pdbConditions` in `pkg/kstatus/status/core.go` of fluxcd/cli-utils 1.2.3.
    """
    return current("DisruptionsComputed", "AllowedDisruptions has been computed.")


def judge_crd(body: JsonObject) -> Verdict:
    """Return the health of a CRD. Rejected names and a failed establishment are failures.

    Like `crdConditions` in `pkg/kstatus/status/core.go` of fluxcd/cli-utils 1.2.3.
    """
    for condition in fields.read_conditions(body):
        is_false = condition.status == "False"
        if condition.type == "NamesAccepted" and is_false:
            return failed(
                condition.reason or "NamesNotAccepted", condition.message, condition=condition
            )
        if condition.type != "Established":
            continue
        if is_false and condition.reason != "Installing":
            return failed(
                condition.reason or "NotEstablished", condition.message, condition=condition
            )
        if condition.is_true:
            return current("Established", "CRD is established", condition=condition)
    return in_progress("Installing", "Install in progress")
