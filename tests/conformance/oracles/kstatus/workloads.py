"""Random objects of the kinds that run pods."""

from __future__ import annotations

from tests.conformance.oracles.kstatus.dice import ABSENT, Dice, Field, built
from tidegate.model.k8s.objects import Json, JsonObject


def head(dice: Dice, api_version: str, kind: str) -> JsonObject:
    """A kind, a name, and perhaps a generation and a time of deletion."""
    leaving = dice.happens(0.03)
    metadata: dict[str, Field] = {
        "name": "web",
        "namespace": "shop",
        "generation": dice.one_of(1, 2, 2, 2) if dice.happens(0.9) else dice.one_of(ABSENT, None),
        "deletionTimestamp": dice.one_of("2026-01-01T00:00:00Z", "", None) if leaving else ABSENT,
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": built(metadata)}


def observed(dice: Dice, body: JsonObject) -> Field:
    """Mostly the generation that is there."""
    metadata = body["metadata"]
    seen = metadata.get("generation", ABSENT) if isinstance(metadata, dict) else ABSENT
    if dice.happens(0.85):
        return seen
    return dice.one_of(ABSENT, ABSENT, 1, 1, 3, 3, "2", None, 2.0, 2**63)


def standard(dice: Dice, share: float = 0.06) -> list[JsonObject]:
    """The conditions that speak for every kind, now and then."""
    if not dice.happens(share):
        return []
    reasons = ("Progressing", "Waiting", "PodNotScheduled", "Terminating")
    return [
        dice.condition("Reconciling", reasons=reasons, share=0.5),
        dice.condition("Stalled", reasons=reasons, share=0.5),
    ]


def deployment(dice: Dice) -> JsonObject:
    body = head(dice, dice.word("apps/v1", "apps/v1", "extensions/v1beta1"), "Deployment")
    expected = dice.among(0, 3)
    spec: dict[str, Field] = {
        "replicas": expected if expected != 1 else dice.one_of(1, ABSENT),
        "progressDeadlineSeconds": dice.one_of(600, 600, ABSENT, 2147483647, "600"),
        "selector": {"matchLabels": {"app": "web"}},
    }
    progress = ("NewReplicaSetAvailable",) * 4 + ("ReplicaSetUpdated", "ProgressDeadlineExceeded")
    status: dict[str, Field] = {
        "observedGeneration": observed(dice, body),
        "replicas": dice.near(expected, share=0.9),
        "updatedReplicas": dice.near(expected, share=0.9),
        "availableReplicas": dice.near(expected, share=0.9),
        "readyReplicas": dice.near(expected, share=0.9),
        "conditions": dice.conditions(
            dice.condition("Progressing", reasons=progress, share=0.85),
            dice.condition("Available", reasons=("MinimumReplicasAvailable",), share=0.85),
            *standard(dice),
        ),
    }
    return {**body, "spec": built(spec), "status": built(status)}


def stateful_set(dice: Dice) -> JsonObject:
    body = head(dice, dice.word("apps/v1", "apps/v1", "apps/v1beta2"), "StatefulSet")
    expected = dice.among(0, 3)
    strategy: dict[str, Field] = {
        "type": dice.one_of(*["RollingUpdate"] * 8, "OnDelete", ABSENT),
        "rollingUpdate": {"partition": dice.among(-1, 2)} if dice.happens(0.4) else ABSENT,
    }
    spec: dict[str, Field] = {
        "replicas": expected if expected != 1 else dice.one_of(1, ABSENT),
        "updateStrategy": built(strategy),
        "selector": {"matchLabels": {"app": "web"}},
    }
    status: dict[str, Field] = {
        "observedGeneration": observed(dice, body),
        "replicas": dice.near(expected, share=0.9),
        "readyReplicas": dice.near(expected, share=0.9),
        "currentReplicas": dice.near(expected, share=0.85),
        "updatedReplicas": dice.near(expected, share=0.4),
        "currentRevision": dice.one_of("web-1", "web-1", ABSENT),
        "updateRevision": dice.one_of("web-1", "web-1", "web-2", ABSENT),
        "conditions": dice.conditions(*standard(dice)),
    }
    return {**body, "spec": built(spec), "status": built(status)}


def daemon_set(dice: Dice) -> JsonObject:
    body = head(dice, dice.word("apps/v1", "apps/v1", "extensions/v1beta1"), "DaemonSet")
    expected = dice.among(0, 3)
    status: dict[str, Field] = {
        "observedGeneration": observed(dice, body),
        "desiredNumberScheduled": expected if dice.happens(0.9) else dice.one_of(ABSENT, -1),
        "currentNumberScheduled": dice.near(expected, share=0.9),
        "updatedNumberScheduled": dice.near(expected, share=0.85),
        "numberAvailable": dice.near(expected, share=0.85),
        "numberReady": dice.near(expected, share=0.8),
        "conditions": dice.conditions(*standard(dice)),
    }
    return {**body, "spec": {"selector": {}}, "status": built(status)}


def replica_set(dice: Dice) -> JsonObject:
    body = head(dice, dice.word("apps/v1", "apps/v1", "extensions/v1beta1"), "ReplicaSet")
    expected = dice.among(0, 3)
    status: dict[str, Field] = {
        "observedGeneration": observed(dice, body),
        "replicas": dice.near(expected, share=0.85),
        "fullyLabeledReplicas": dice.near(expected, share=0.85),
        "availableReplicas": dice.near(expected, share=0.85),
        "readyReplicas": dice.near(expected, share=0.85),
        "conditions": dice.conditions(*standard(dice), *_replica_failure(dice)),
    }
    spec: dict[str, Field] = {
        "replicas": expected if expected != 1 else dice.one_of(1, ABSENT),
        "selector": {"matchLabels": {"app": "web"}},
    }
    return {**body, "spec": built(spec), "status": built(status)}


def pod(dice: Dice) -> JsonObject:
    body = head(dice, "v1", "Pod")
    running = ("Running",) * 5 + ("Pending",) * 4
    status: dict[str, Field] = {
        "phase": dice.one_of(*running, "Succeeded", "Failed", "Unknown", "", ABSENT),
        "observedGeneration": observed(dice, body) if dice.happens(0.5) else ABSENT,
        "containerStatuses": [_container(dice, name) for name in ("app", "proxy")],
        "conditions": dice.conditions(
            dice.condition("Ready", reasons=("ContainersNotReady",), share=0.1),
            _scheduling(dice),
            *standard(dice),
        ),
    }
    return {**body, "status": built(status)}


def job(dice: Dice) -> JsonObject:
    body = head(dice, dice.word("batch/v1", "batch/v1beta1"), "Job")
    spec: dict[str, Field] = {
        "parallelism": dice.one_of(ABSENT, 1, 2, 0),
        "completions": dice.one_of(ABSENT, ABSENT, 1, 3),
        "suspend": dice.one_of(ABSENT, ABSENT, False, True, "true", None),
    }
    status: dict[str, Field] = {
        "observedGeneration": dice.one_of(ABSENT, 1, "2"),
        "startTime": dice.one_of("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "", ABSENT, None),
        "active": dice.one_of(ABSENT, 0, 1),
        "succeeded": dice.one_of(ABSENT, 1, 2),
        "failed": dice.one_of(ABSENT, 1, 6),
        "conditions": dice.conditions(
            dice.condition("Complete", reasons=("CompletionsReached",), share=0.2),
            dice.condition("Failed", reasons=("BackoffLimitExceeded",), share=0.2),
            dice.condition("SuccessCriteriaMet", reasons=("CompletionsReached",)),
            *standard(dice),
        ),
    }
    return {**body, "spec": built(spec), "status": built(status)}


def crash_looping(body: JsonObject) -> JsonObject:
    """A pod that runs and falls, whatever else is said of it."""
    status = body.get("status")
    state: Json = {"waiting": {"reason": "CrashLoopBackOff"}}
    fallen: JsonObject = {
        "phase": "Running",
        "containerStatuses": [{"name": "app", "state": state}],
    }
    return {**body, "status": {**(status if isinstance(status, dict) else {}), **fallen}}


def _replica_failure(dice: Dice) -> list[JsonObject]:
    if not dice.happens(0.25):
        return []
    return [dice.condition("ReplicaFailure", reasons=("FailedCreate",), share=0.5)]


def _scheduling(dice: Dice) -> JsonObject:
    status = "False" if dice.happens(0.7) else "True"
    reason = dice.word("Unschedulable", "Unschedulable", "SchedulingGated")
    return {"type": "PodScheduled", "status": status, "reason": reason}


def _container(dice: Dice, name: str) -> Json:
    waiting: dict[str, Field] = {
        "reason": dice.one_of("CrashLoopBackOff", "ImagePullBackOff", "ContainerCreating", ABSENT)
    }
    state: dict[str, Field] = {
        "waiting": built(waiting) if dice.happens(0.5) else ABSENT,
        "running": {} if dice.happens(0.3) else ABSENT,
    }
    entry: dict[str, Field] = {
        "name": name if dice.happens(0.95) else ABSENT,
        "state": built(state) if dice.happens(0.95) else ABSENT,
    }
    return built(entry)
