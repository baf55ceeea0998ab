"""The health of built-in kinds without pods in Argo CD.

The checks are those of gitops-engine (`pkg/health`, Argo CD 3.5.6) or of a Lua script that Argo CD
ships.

An Ingress stays Progressing as long as its controller publishes no address.
"""

from __future__ import annotations

import msgspec

from tidegate.health.argo.verdicts import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    UNKNOWN,
    find_condition,
    is_true,
    list_conditions,
    make_error_verdict,
    make_verdict,
)
from tidegate.model.k8s.json_fields import get_list, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.k8s.verdict import Health, Verdict

CONDITIONS_ANNOTATION = "autoscaling.alpha.kubernetes.io/conditions"
"""The annotation that holds the conditions in `autoscaling/v1`, which has none in its status."""
BAD_REASONS = {
    "AbleToScale": ("FailedGetScale", "FailedUpdateScale"),
    "ScalingActive": (
        *("FailedGetResourceMetric", "FailedGetObjectMetric", "FailedGetPodsMetric"),
        *("FailedGetExternalMetric", "FailedComputeMetricsReplicas", "InvalidSelector"),
    ),
}


def judge_service(body: JsonObject) -> Verdict:
    """Return the health of a Service: only a load balancer is waited for.

    Like `getCorev1ServiceHealth` in `pkg/health/health_service.go` of gitops-engine (Argo CD
    3.5.6).
    """
    if get_text(body, "spec", "type") != "LoadBalancer":
        return make_verdict(body, HEALTHY, "NothingToWaitFor", "the Service needs no load balancer")
    return judge_load_balancer(body)


def judge_load_balancer(body: JsonObject) -> Verdict:
    """Return the health of an Ingress or a load balancer: healthy when it has an address.

    Like `getIngressHealth` in `pkg/health/health_ingress.go` and `getCorev1ServiceHealth` in
    `pkg/health/health_service.go` of gitops-engine (Argo CD 3.5.6).
    """
    if not get_list(body, "status", "loadBalancer", "ingress"):
        return make_verdict(
            body, PROGRESSING, "AddressPending", "waiting for the address of the load balancer"
        )
    ingresses = get_mappings(body, "status", "loadBalancer", "ingress")
    addresses = [get_text(ingress, "ip") or get_text(ingress, "hostname") for ingress in ingresses]
    listed = ", ".join(address for address in addresses if address) or "an address"
    return make_verdict(body, HEALTHY, "AddressAssigned", f"load balancer address: {listed}")


def judge_pvc(body: JsonObject) -> Verdict:
    """Return the health of a PersistentVolumeClaim.

    Like `getCorev1PVCHealth` in `pkg/health/health_pvc.go` of gitops-engine (Argo CD 3.5.6).
    """
    match get_text(body, "status", "phase"):
        case "Bound":
            volume = get_text(body, "spec", "volumeName", default="a volume")
            return make_verdict(body, HEALTHY, "Bound", f"bound to {volume}")
        case "Pending":
            return make_verdict(body, PROGRESSING, "Pending", "waiting for a volume")
        case "Lost":
            volume = get_text(body, "spec", "volumeName", default="the volume")
            return make_verdict(
                body, DEGRADED, "Lost", f"the bound {volume} does not exist any more"
            )
        case _:
            return make_verdict(body, UNKNOWN, "PhaseUnknown", "unknown phase")


def judge_api_service(body: JsonObject) -> Verdict:
    """Return the health of an APIService.

    Like `getApiregistrationv1APIServiceHealth` in `pkg/health/health_apiservice.go` of
    gitops-engine (Argo CD 3.5.6).
    """
    available = find_condition(body, "Available")
    if not available:
        return make_verdict(body, PROGRESSING, "NoStatus", "Waiting to be processed")
    health = HEALTHY if is_true(available) else PROGRESSING
    message = f"{get_text(available, 'reason')}: {get_text(available, 'message')}"
    default = "Available" if is_true(available) else "NotAvailable"
    reason = get_text(available, "reason", default=default)
    return make_verdict(body, health, reason, message, condition=available)


def judge_crd(body: JsonObject) -> Verdict:
    """Return the health of a CRD. The first condition with a problem decides.

    Like `resource_customizations/apiextensions.k8s.io/CustomResourceDefinition/health.lua` of Argo
    CD 3.5.6.
    """
    if get_value(body, "metadata", "deletionTimestamp") is not None:
        return make_verdict(body, PROGRESSING, "Terminating", "CRD is terminating")
    if get_value(body, "status") is None:
        return make_error_verdict(body, "a CRD without a status")
    if not list_conditions(body):
        return make_verdict(body, PROGRESSING, "NoStatus", "Status conditions not found")
    for condition in list_conditions(body):
        problem = _crd_problem(condition)
        if problem is not None:
            health, reason, message = problem
            return make_verdict(body, health, reason, message, condition=condition)
    established = [
        condition
        for condition in list_conditions(body)
        if _has_status(condition, "Established", "True")
    ]
    if not established:
        return make_verdict(body, DEGRADED, "NotEstablished", "CRD is not established")
    return make_verdict(body, HEALTHY, "Established", "CRD is healthy", condition=established[0])


def _crd_problem(condition: JsonObject) -> tuple[Health, str, str] | None:
    detail = get_text(condition, "message")
    if _has_status(condition, "Terminating", "True"):
        return PROGRESSING, "Terminating", f"CRD is terminating: {detail}"
    if _has_status(condition, "NamesAccepted", "False"):
        return DEGRADED, "NamesNotAccepted", f"CRD names have not been accepted: {detail}"
    if _has_status(condition, "NonStructuralSchema", "True"):
        return DEGRADED, "NonStructuralSchema", f"Schema violations found: {detail}"
    is_installing = condition.get("reason") == "Installing" and not is_true(condition)
    if condition.get("type") == "Established" and is_installing:
        return PROGRESSING, "Installing", "CRD is being installed"
    return None


def _has_status(condition: JsonObject, type_: str, status: str) -> bool:
    return condition.get("type") == type_ and condition.get("status") == status


def judge_autoscaler_v2(body: JsonObject) -> Verdict:
    """Return the health of an HPA of `autoscaling/v2`.

    Like `getAutoScalingV2HPAHealth` in `pkg/health/health_hpa.go` of gitops-engine (Argo CD 3.5.6).
    """
    return _judge_conditions(body, list_conditions(body))


def judge_autoscaler_v1(body: JsonObject) -> Verdict:
    """Return the health of an HPA of `autoscaling/v1`, with its conditions in an annotation.

    Like `getAutoScalingV1HPAHealth` in `pkg/health/health_hpa.go` of gitops-engine (Argo CD 3.5.6).
    """
    annotation = get_value(body, "metadata", "annotations", CONDITIONS_ANNOTATION)
    if not isinstance(annotation, str):
        return _judge_conditions(body, [])
    try:
        conditions = msgspec.json.decode(annotation, type=list[dict[str, str | None]] | None)
    except (msgspec.DecodeError, msgspec.ValidationError):
        message = "failed to convert conditions annotation to typed"
        return make_verdict(body, UNKNOWN, "NotUnderstood", message)
    # Go reads the keys of JSON in any case.
    lower_case = [
        {key.lower(): value for key, value in condition.items()} for condition in conditions or []
    ]
    return _judge_conditions(body, [*lower_case])


def _judge_conditions(body: JsonObject, conditions: list[JsonObject]) -> Verdict:
    for condition in conditions:
        reason = get_text(condition, "reason")
        if reason in BAD_REASONS.get(get_text(condition, "type"), ()):
            return make_verdict(body, DEGRADED, reason, get_text(condition, "message") or reason)
    for condition in conditions:
        if is_true(condition) and condition.get("type") in ("AbleToScale", "ScalingLimited"):
            message = get_text(condition, "message") or "the autoscaler is active"
            return make_verdict(
                body, HEALTHY, get_text(condition, "reason", default="AbleToScale"), message
            )
    return make_verdict(body, PROGRESSING, "WaitingToAutoscale", "Waiting to Autoscale")


def judge_disruption_budget(body: JsonObject) -> Verdict:
    """Return the health of a PodDisruptionBudget.

    It is Degraded if it cannot be computed, and healthy if it forbids every eviction.

    Like `resource_customizations/policy/PodDisruptionBudget/health.lua` of Argo CD 3.5.6.
    """
    verdict = make_verdict(body, PROGRESSING, "NoStatus", "Waiting for status")
    for condition in list_conditions(body):
        reason = get_text(condition, "reason")
        if get_value(condition, "reason") is None:
            return make_error_verdict(body, "a condition without a reason")
        is_bad = condition.get("status") == "False" and reason != "InsufficientPods"
        health = DEGRADED if is_bad else HEALTHY
        message = f"PodDisruptionBudget has {reason}"
        verdict = make_verdict(body, health, reason, message, condition=condition)
        if is_bad:
            break
    return verdict
