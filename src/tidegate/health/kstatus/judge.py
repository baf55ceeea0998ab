"""One object, judged as Flux judges it: the rules in their order, and who asks which.

A verdict says of which generation it speaks: `status.observedGeneration`, else what the deciding
condition observed, else 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import msgspec

from tidegate.health.kstatus import generic, workloads
from tidegate.health.kstatus.fields import UnreadableError
from tidegate.health.kstatus.pods import NOT_SCHEDULED, is_unschedulable, judge_pod, schedule_limit
from tidegate.model.k8s.json_fields import get_int, get_text
from tidegate.model.k8s.objects import JsonObject, Kind
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.times import Ms

GroupKind = tuple[str, str]
POD: GroupKind = ("", "Pod")
JOB: GroupKind = ("batch", "Job")
ASKS_ITS_PODS: frozenset[GroupKind] = frozenset({("apps", "StatefulSet"), ("apps", "ReplicaSet")})
RULES: Mapping[GroupKind, Callable[[JsonObject], Verdict]] = MappingProxyType(
    {
        ("", "ConfigMap"): generic.judge_at_once,
        ("", "PersistentVolumeClaim"): generic.judge_claim,
        ("", "Secret"): generic.judge_at_once,
        ("", "Service"): generic.judge_service,
        ("apiextensions.k8s.io", "CustomResourceDefinition"): generic.judge_definition,
        ("apps", "DaemonSet"): workloads.judge_daemon_set,
        ("apps", "Deployment"): workloads.judge_deployment,
        ("apps", "ReplicaSet"): workloads.judge_replica_set,
        ("apps", "StatefulSet"): workloads.judge_stateful_set,
        ("batch", "CronJob"): generic.judge_at_once,
        ("extensions", "DaemonSet"): workloads.judge_daemon_set,
        ("extensions", "Deployment"): workloads.judge_deployment,
        ("extensions", "ReplicaSet"): workloads.judge_replica_set,
        ("policy", "PodDisruptionBudget"): generic.judge_disruption_budget,
    }
)


def judge(body: JsonObject, now: Ms) -> Verdict:
    """How an object is. `now` matters only to a pod that finds no place."""
    return _judge_as(_kind_of(body), body, now)


def judge_with_pods(body: JsonObject, pods: Iterable[JsonObject], now: Ms) -> Verdict:
    """How an object is that also answers for its pods: those that its selector selects.

    Only StatefulSets and ReplicaSets do. Pods that are being deleted or have no place are no
    failures: the first are on their way out, an autoscaler may help the others.
    """
    verdict = judge(body, now)
    if _kind_of(body) not in ASKS_ITS_PODS or verdict.health is not Health.PROGRESSING:
        return verdict
    leaving = bool(get_text(body, "metadata", "deletionTimestamp"))
    failures = 0 if leaving else sum(_has_failed(pod, now) for pod in pods)
    if not failures:
        return verdict
    sentence = f"{failures} pods have failed"
    return Verdict(
        Health.DEGRADED, "PodsFailed", sentence, observed_generation=verdict.observed_generation
    )


def look_again(body: JsonObject, now: Ms) -> Ms | None:
    """When the verdict changes though the object does not; None for nearly every object."""
    if _kind_of(body) != POD or judge(body, now).reason != NOT_SCHEDULED:
        return None
    limit = schedule_limit(body)
    return limit if limit is not None and limit > now else None


def _judge_as(kind: GroupKind, body: JsonObject, now: Ms) -> Verdict:
    try:
        verdict = _ask(kind, body, now)
    except UnreadableError as error:
        verdict = Verdict(Health.UNKNOWN, "Unreadable", str(error))
    observed = get_int(body, "status", "observedGeneration")
    return msgspec.structs.replace(verdict, observed_generation=observed) if observed else verdict


def _ask(kind: GroupKind, body: JsonObject, now: Ms) -> Verdict:
    if kind == JOB:
        return workloads.judge_job(body)
    first = generic.judge_first(body)
    if first is not None:
        return first
    if kind == POD:
        return judge_pod(body, now)
    rule = RULES.get(kind)
    return rule(body) if rule else generic.judge_ready(body) or generic.NOTHING_SAID


def _has_failed(pod: JsonObject, now: Ms) -> bool:
    """Items of a list do not name their kind, so a pod is taken for one."""
    return _judge_as(POD, pod, now).health is Health.DEGRADED and not is_unschedulable(pod)


def _kind_of(body: JsonObject) -> GroupKind:
    kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
    return kind.group, kind.name
