"""The rules of kstatus by kind, in their order.

A verdict has the generation that it is for: `status.observedGeneration`, else that of the deciding
condition, else 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import msgspec

from tidegate.health.kstatus import generic, workloads
from tidegate.health.kstatus.fields import UnreadableError
from tidegate.health.kstatus.pods import (
    NOT_SCHEDULED,
    is_unschedulable,
    judge_pod,
    scheduling_deadline,
)
from tidegate.model.k8s.json_fields import get_int, get_text, object_kind
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.times import Ms

GroupKind = tuple[str, str]
POD: GroupKind = ("", "Pod")
JOB: GroupKind = ("batch", "Job")
KINDS_JUDGED_BY_PODS: frozenset[GroupKind] = frozenset(
    {("apps", "StatefulSet"), ("apps", "ReplicaSet")}
)
"""Kinds whose failed pods make them Failed in Flux."""
RULES: Mapping[GroupKind, Callable[[JsonObject], Verdict]] = MappingProxyType(
    {
        ("", "ConfigMap"): generic.judge_always_ready,
        ("", "PersistentVolumeClaim"): generic.judge_pvc,
        ("", "Secret"): generic.judge_always_ready,
        ("", "Service"): generic.judge_service,
        ("apiextensions.k8s.io", "CustomResourceDefinition"): generic.judge_crd,
        ("apps", "DaemonSet"): workloads.judge_daemon_set,
        ("apps", "Deployment"): workloads.judge_deployment,
        ("apps", "ReplicaSet"): workloads.judge_replica_set,
        ("apps", "StatefulSet"): workloads.judge_stateful_set,
        ("batch", "CronJob"): generic.judge_always_ready,
        ("extensions", "DaemonSet"): workloads.judge_daemon_set,
        ("extensions", "Deployment"): workloads.judge_deployment,
        ("extensions", "ReplicaSet"): workloads.judge_replica_set,
        ("policy", "PodDisruptionBudget"): generic.judge_disruption_budget,
    }
)


def judge(body: JsonObject, now: Ms) -> Verdict:
    """Return the health of an object. `now` matters only for a Pod that cannot be scheduled.

    Like `Compute` in `pkg/kstatus/status/status.go` of fluxcd/cli-utils 1.2.3.
    """
    return _judge_as(_kind_of(body), body, now)


def judge_with_pods(body: JsonObject, pods: Iterable[JsonObject], now: Ms) -> Verdict:
    """Return the health of an object, considering the `pods` that its selector matches.

    Applies to StatefulSets and ReplicaSets. Pods that are being deleted or cannot be scheduled are
    not failures: an autoscaler may still add a node.

    Like `pkg/kstatus/polling/statusreaders/pod_controller.go` of fluxcd/cli-utils 1.2.3.
    """
    verdict = judge(body, now)
    if _kind_of(body) not in KINDS_JUDGED_BY_PODS or verdict.health is not Health.PROGRESSING:
        return verdict
    is_deleting = bool(get_text(body, "metadata", "deletionTimestamp"))
    failures = 0 if is_deleting else sum(_has_failed(pod, now) for pod in pods)
    if not failures:
        return verdict
    message = f"{failures} pods have failed"
    return Verdict(
        Health.DEGRADED, "PodsFailed", message, observed_generation=verdict.observed_generation
    )


def next_verdict_change(body: JsonObject, now: Ms) -> Ms | None:
    """Return when the verdict changes though the object does not, or None for most objects."""
    if _kind_of(body) != POD or judge(body, now).reason != NOT_SCHEDULED:
        return None
    limit = scheduling_deadline(body)
    return limit if limit is not None and limit > now else None


def _judge_as(kind: GroupKind, body: JsonObject, now: Ms) -> Verdict:
    try:
        verdict = _apply_rules(kind, body, now)
    except UnreadableError as error:
        verdict = Verdict(Health.UNKNOWN, "Unreadable", str(error))
    observed = get_int(body, "status", "observedGeneration")
    return msgspec.structs.replace(verdict, observed_generation=observed) if observed else verdict


def _apply_rules(kind: GroupKind, body: JsonObject, now: Ms) -> Verdict:
    if kind == JOB:
        return workloads.judge_job(body)
    first = generic.judge_common_rules(body)
    if first is not None:
        return first
    if kind == POD:
        return judge_pod(body, now)
    rule = RULES.get(kind)
    return rule(body) if rule else generic.judge_ready_condition(body) or generic.NO_KNOWN_CONDITION


def _has_failed(pod: JsonObject, now: Ms) -> bool:
    """Return whether a pod failed. Items of a list have no kind, so the kind is given."""
    return _judge_as(POD, pod, now).health is Health.DEGRADED and not is_unschedulable(pod)


def _kind_of(body: JsonObject) -> GroupKind:
    kind = object_kind(body)
    return kind.group, kind.name
