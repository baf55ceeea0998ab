"""What is not asked about a server would take: two objects with the same open part are as good.

Good objects are changed at the places that rules here settle, with all kinds of texts. Where
nothing new is open and nothing looks wrong, the server finds nothing. (It may miss something: a pod
is refused while its account is not there.)
"""

from __future__ import annotations

import itertools
from random import Random

import pytest

from plane import ControlPlane
from tests.e2e.test_schemas import answers, kind_of
from tests.support.builders import make_object
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.schema.server_checked import server_checked_digest
from tidegate.schema.violations import SchemaViolations, find_schema_violations
from tidegate.world.messages import Invalid, ServerError
from tidegate.world.requests import Verb

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

TRIED = 3_000
HOLE = "hole"
"""Placeholder for a value that is replaced."""
KEY = "key-hole"
"""The same for keys."""
RBAC = "rbac.authorization.k8s.io/v1"
SUBJECT: JsonObject = {"kind": "ServiceAccount", "name": HOLE, "namespace": HOLE}
BINDING: JsonObject = {"subjects": [SUBJECT]}
ROLE: JsonObject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": HOLE}
CONTAINER: JsonObject = {
    "name": HOLE,
    "image": HOLE,
    "command": [HOLE],
    "args": [HOLE],
    "env": [
        {"name": "A", "value": HOLE},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": HOLE, "key": "a"}}},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": HOLE, "key": "a"}}},
    ],
    "envFrom": [{"secretRef": {"name": HOLE}}, {"configMapRef": {"name": HOLE}}],
}
POD: JsonObject = {
    "containers": [CONTAINER],
    "initContainers": [{**CONTAINER, "name": "before"}],
    "serviceAccountName": HOLE,
    "imagePullSecrets": [{"name": HOLE}],
    "volumes": [
        {"name": "a", "secret": {"secretName": HOLE}},
        {"name": "b", "configMap": {"name": HOLE}},
        {"name": "c", "persistentVolumeClaim": {"claimName": HOLE}},
    ],
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": HOLE}}, "topologyKey": "a"}
            ]
        }
    },
}
TEMPLATE: JsonObject = {
    "metadata": {"labels": {"app": HOLE}, "annotations": {KEY: HOLE}},
    "spec": POD,
}
ONE_SHOT: JsonObject = {**TEMPLATE, "spec": {**POD, "restartPolicy": "Never"}}
WORKLOAD: JsonObject = {"selector": {"matchLabels": {"app": HOLE}}, "template": TEMPLATE}
BACKEND: JsonObject = {"service": {"name": HOLE, "port": {"number": 80}}}
PATH: JsonObject = {"path": "/", "pathType": "Prefix", "backend": BACKEND}
RULE: JsonObject = {"host": HOLE, "http": {"paths": [PATH]}}
TARGET: JsonObject = {"apiVersion": "apps/v1", "kind": "Deployment", "name": HOLE}
SPECS: dict[str, JsonObject] = {
    "v1 Pod": POD,
    "apps/v1 Deployment": WORKLOAD,
    "apps/v1 StatefulSet": {**WORKLOAD, "serviceName": "a"},
    "apps/v1 DaemonSet": WORKLOAD,
    "batch/v1 Job": {"template": ONE_SHOT},
    "batch/v1 CronJob": {
        "schedule": "* * * * *",
        "jobTemplate": {"spec": {"template": ONE_SHOT}},
    },
    "v1 Service": {"ports": [{"port": 80}], "selector": {"app": HOLE}},
    "networking.k8s.io/v1 Ingress": {
        "defaultBackend": BACKEND,
        "rules": [RULE],
        "tls": [{"hosts": [HOLE], "secretName": HOLE}],
    },
    "networking.k8s.io/v1 NetworkPolicy": {"podSelector": {"matchLabels": {"app": HOLE}}},
    "policy/v1 PodDisruptionBudget": {
        "minAvailable": 1,
        "selector": {"matchLabels": {"app": HOLE}},
    },
    "autoscaling/v2 HorizontalPodAutoscaler": {"scaleTargetRef": TARGET, "maxReplicas": 3},
}
PARTS: dict[str, JsonObject] = {
    "v1 ConfigMap": {"data": {KEY: HOLE}, "binaryData": {}},
    "v1 Secret": {"stringData": {KEY: HOLE}, "type": HOLE},
    "v1 ServiceAccount": {"imagePullSecrets": [{"name": HOLE}], "secrets": [{"name": HOLE}]},
    "v1 Namespace": {},
    f"{RBAC} RoleBinding": {**BINDING, "roleRef": ROLE},
    **{kind: {"spec": spec} for kind, spec in SPECS.items()},
}
ODD = (
    *("", "A", "a.b", "-a", "a-", "1a", "a_b", "é", "10.0.0.1", "a..b", "*.a.b", "a" * 50),
    *(
        "a" * 51,
        "a" * 63,
        "a" * 64,
        "a.b." * 20 + "a",
        "a b",
        " a",
        "a:1",
        "a/b",
        "A.b/C",
        "..",
        ".",
    ),
    *(
        "a\nb",
        "true",
        "0",
        "a" * 253,
        "kubernetes.io/a",
        "a.k8s.io/b",
        "a/b/c",
        "kubernetes.io/tls",
    ),
)
LETTERS = "ab-._/:AZ09 é"


def a_text(chance: Random) -> str:
    if chance.random() < 0.5:
        return chance.choice(ODD)
    return "a" + "".join(chance.choices(LETTERS[: chance.choice((3, 4, len(LETTERS)))], k=5)) + "a"


def whole(kind: str) -> JsonObject:
    body = make_object(kind, HOLE, namespace="", **PARTS[kind])
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    return {
        **body,
        "metadata": {**metadata, "labels": {KEY: HOLE}, "annotations": {KEY: HOLE}},
    }


def fill(body: JsonObject, texts: list[str], every: int) -> JsonObject:
    """Put texts into one of several placeholders; the others get a plain one."""
    places = itertools.count(1)

    def text(hole: str) -> str:
        if hole not in {HOLE, KEY}:
            return hole
        place = next(places)
        return texts[place % len(texts)] if texts and place % every == 0 else "plain"

    def filled(value: Json) -> Json:
        match value:
            case dict():
                return {text(key): filled(inner) for key, inner in value.items()}
            case list():
                return [filled(inner) for inner in value]
            case str():
                return text(value)
            case _:
                return value

    return {name: filled(part) for name, part in body.items()}


def test_changes_outside_server_checked_parts_are_accepted_by_the_server(
    plane: ControlPlane,
) -> None:
    chance = Random(7)
    requests = [
        fill(whole(kind), [a_text(chance) for _ in range(4)], chance.randint(1, 25))
        for kind in chance.choices([*PARTS], k=TRIED)
    ]
    silent = [body for body in requests if _is_silent(body)]

    outcomes = answers(plane, Verb.CREATE, *silent)

    assert len(silent) > TRIED // 5
    for body, outcome in zip(silent, outcomes, strict=True):
        assert not isinstance(outcome, Invalid | ServerError), (body, outcome)


def _is_silent(body: JsonObject) -> bool:
    """Whether an object gets through without a question, as another one like it was taken."""
    kind = kind_of(body)
    good = fill(whole(f"{kind.api_version} {kind.name}"), [], 1)
    is_right = find_schema_violations(kind, body) == SchemaViolations()
    return is_right and server_checked_digest(kind, body, None) in (
        b"",
        server_checked_digest(kind, good, None),
    )


def test_the_unchanged_objects_are_valid(plane: ControlPlane) -> None:
    bodies = [fill(whole(kind), [], 1) for kind in PARTS]

    outcomes = answers(plane, Verb.CREATE, *bodies)

    assert [outcome for outcome in outcomes if isinstance(outcome, Invalid | ServerError)] == []
