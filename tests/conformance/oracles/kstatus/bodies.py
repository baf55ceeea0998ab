"""The questions: random objects of every kind that kstatus knows, and of kinds that it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from tests.conformance.oracles.kstatus import workloads
from tests.conformance.oracles.kstatus.dice import ABSENT, Dice, Field, built
from tests.conformance.oracles.kstatus.workloads import head, observed, standard
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.times import Ms

SEED = 20
NOW = Ms(1_800_000_000_000)
AGES = (0, 3, 9, 22, 400)
"""Seconds since a pod was made. Not near 15, for kstatus looks at a clock that goes on."""
SPOILT = 0.2
ITS_POD_KEEPS = frozenset({"apiVersion", "kind", "name", "containerStatuses"})
"""A selector finds pods and nothing else; container statuses of a wrong type kill kstatus."""


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object, the pods that its selector matches, and its age in seconds."""

    body: JsonObject
    pods: list[JsonObject] | None = None
    age: int | None = None


def claim(dice: Dice) -> JsonObject:
    status: dict[str, Field] = {"phase": dice.one_of("Bound", "Pending", "Lost", "", ABSENT, None)}
    body = head(dice, "v1", "PersistentVolumeClaim")
    return {**body, "status": built(status)}


def service(dice: Dice) -> JsonObject:
    spec: dict[str, Field] = {
        "type": dice.one_of("LoadBalancer", "LoadBalancer", "ClusterIP", "ExternalName", ABSENT),
        "clusterIP": dice.one_of("10.0.0.1", "None", "", ABSENT, None),
    }
    return {**head(dice, "v1", "Service"), "spec": built(spec), "status": {}}


def seen_only(dice: Dice) -> JsonObject:
    """Kinds of which only the generation, if anything, is looked at."""
    api_version, _, kind = dice.word(
        "policy/v1 PodDisruptionBudget", "v1 ConfigMap", "v1 Secret", "batch/v1 CronJob"
    ).partition(" ")
    body = head(dice, api_version, kind)
    status: dict[str, Field] = {
        "observedGeneration": observed(dice, body),
        "conditions": dice.conditions(
            dice.condition("Ready", reasons=("No",), share=0.3), *standard(dice)
        ),
    }
    return {**body, "status": built(status)}


def definition(dice: Dice) -> JsonObject:
    body = head(dice, "apiextensions.k8s.io/v1", "CustomResourceDefinition")
    refusals = ("Installing", "NotAccepted", "SingularConflict")
    status: dict[str, Field] = {
        "conditions": dice.conditions(
            dice.condition("NamesAccepted", reasons=("NoConflicts", *refusals), share=0.5),
            dice.condition("Established", reasons=("InitialNamesAccepted", *refusals), share=0.3),
            *standard(dice),
        )
    }
    return {**body, "status": built(status)}


def custom(dice: Dice) -> JsonObject:
    """Kinds that no rule knows; some are called as one that a rule does know."""
    api_version, _, kind = dice.word(
        "cert-manager.io/v1 Certificate",
        "kustomize.toolkit.fluxcd.io/v1 Kustomization",
        "argoproj.io/v1alpha1 Rollout",
        "gateway.networking.k8s.io/v1 Gateway",
        "serving.knative.dev/v1 Service",
        "example.com/v1 Deployment",
        "v1 Namespace",
        "autoscaling/v2 HorizontalPodAutoscaler",
        "a/b/c Secret",
        "/v1 ConfigMap",
    ).partition(" ")
    body = head(dice, api_version, kind)
    reasons = ("Succeeded", "DependencyNotReady", "ArtifactFailed")
    status: dict[str, Field] = {
        "observedGeneration": observed(dice, body),
        "conditions": dice.conditions(
            dice.condition("Ready", reasons=reasons, share=0.3),
            dice.condition("Synced", reasons=reasons, share=0.3),
            dice.condition("Ready", reasons=reasons, share=0.3),
            *standard(dice, share=0.4),
        ),
    }
    return {**body, "status": built(status)} if dice.happens(0.95) else body


PLAN: tuple[tuple[Callable[[Dice], JsonObject], int], ...] = (
    (workloads.deployment, 450),
    (workloads.stateful_set, 380),
    (workloads.daemon_set, 260),
    (workloads.replica_set, 220),
    (workloads.pod, 420),
    (workloads.job, 260),
    (claim, 60),
    (service, 80),
    (seen_only, 80),
    (definition, 180),
    (custom, 360),
)
CONTROLLERS = (
    (workloads.stateful_set, 170),
    (workloads.replica_set, 120),
    (workloads.deployment, 30),
    (workloads.daemon_set, 20),
)


def questions(seed: int = SEED) -> Iterator[Question]:
    """Always the same ones for a seed."""
    dice = Dice(seed)
    for draw, times in PLAN:
        for _ in range(times):
            yield _question(dice, draw(dice))
    for draw, times in CONTROLLERS:
        for _ in range(times):
            pods = [_its_pod(dice, number) for number in range(dice.among(0, 3))]
            yield Question(_short(dice, draw(dice)), pods)


def _question(dice: Dice, body: JsonObject) -> Question:
    age = None
    if body["kind"] == "Pod" and dice.happens(0.95):
        age = AGES[dice.among(0, len(AGES) - 1)]
        stamped = _with_creation(body, age)
    else:
        stamped = body
    if dice.happens(SPOILT):
        dice.spoil(stamped, keep=frozenset({"metadata"} if age is not None else ()))
    return Question(stamped, age=age)


def _short(dice: Dice, body: JsonObject) -> JsonObject:
    """Mostly a controller that still waits for replicas."""
    spec = body["spec"]
    if not isinstance(spec, dict) or dice.happens(0.2):
        return body
    return body | {"spec": {**spec, "replicas": 5}}


def _its_pod(dice: Dice, number: int) -> JsonObject:
    body = _with_creation(workloads.pod(dice), 400)
    body = workloads.crash_looping(body) if dice.happens(0.4) else body
    if dice.happens(SPOILT):
        dice.spoil(body, keep=ITS_POD_KEEPS)
    return body | {"metadata": _named(body.get("metadata"), f"web-{number}")}


def _named(metadata: object, name: str) -> JsonObject:
    return {**(metadata if isinstance(metadata, dict) else {}), "name": name}


def _with_creation(body: JsonObject, age: int) -> JsonObject:
    born = datetime.fromtimestamp(NOW // 1000, UTC) - timedelta(seconds=age)
    stamp = born.strftime("%Y-%m-%dT%H:%M:%SZ")
    return body | {"metadata": {**_named(body["metadata"], "web"), "creationTimestamp": stamp}}
