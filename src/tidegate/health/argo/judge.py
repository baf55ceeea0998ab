"""One object, judged as Argo CD judges it: which rule is for which kind.

The order is Argo CD's: an object that is being deleted, then what its scripts cover (rows, and the
kinds below that rows cannot express), then what its engine knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeAlias

from tidegate.documents.precompiled import read_precompiled
from tidegate.health.argo import projects, provided, workloads
from tidegate.health.argo.pods import judge_pod
from tidegate.health.argo.verdicts import PROGRESSING, UNKNOWN, is_held, say
from tidegate.health.rows import HealthRow, Rows, judge_cases, read_health_rows
from tidegate.model.k8s.json_fields import get_text, get_value
from tidegate.model.k8s.objects import JsonObject, Kind
from tidegate.model.k8s.verdict import Verdict

Judge: TypeAlias = Callable[[JsonObject], Verdict]
Brought: TypeAlias = tuple[HealthRow, ...]
HERE = Path(__file__).parent
READY = HERE / "rows.ready"
GATEWAY = "gateway.networking.k8s.io"
ANY = "*"
RULES: Mapping[tuple[str, str], Mapping[str, Judge]] = {
    ("apps", "Deployment"): {"v1": workloads.judge_deployment},
    ("apps", "ReplicaSet"): {"v1": workloads.judge_replica_set},
    ("apps", "StatefulSet"): {"v1": workloads.judge_stateful_set},
    ("apps", "DaemonSet"): {"v1": workloads.judge_daemon_set},
    ("", "Pod"): {"v1": judge_pod},
    ("", "Service"): {"v1": provided.judge_service},
    ("", "PersistentVolumeClaim"): {"v1": provided.judge_claim},
    ("batch", "Job"): {"v1": workloads.judge_job},
    ("batch", "CronJob"): {ANY: workloads.judge_cron_job},
    ("networking.k8s.io", "Ingress"): {ANY: provided.judge_address},
    ("extensions", "Ingress"): {ANY: provided.judge_address},
    ("autoscaling", "HorizontalPodAutoscaler"): {
        "v1": provided.judge_old_autoscaler,
        "v2": provided.judge_autoscaler,
    },
    ("policy", "PodDisruptionBudget"): {ANY: provided.judge_budget},
    ("apiregistration.k8s.io", "APIService"): {
        "v1": provided.judge_api_service,
        "v1beta1": provided.judge_api_service,
    },
    ("apiextensions.k8s.io", "CustomResourceDefinition"): {ANY: provided.judge_definition},
    (GATEWAY, "Gateway"): {ANY: projects.judge_gateway},
    (GATEWAY, "GatewayClass"): {ANY: projects.judge_gateway_class},
    (GATEWAY, "HTTPRoute"): {ANY: projects.judge_route},
    (GATEWAY, "GRPCRoute"): {ANY: projects.judge_route},
    (GATEWAY, "BackendTLSPolicy"): {ANY: projects.judge_backend_policy},
    ("argoproj.io", "Workflow"): {ANY: projects.judge_workflow},
    ("argoproj.io", "Rollout"): {ANY: projects.judge_rollout},
}
"""By group and kind, then by version: Argo CD's engine knows no other versions of its own kinds."""
SHORT_NAMES = {"HorizontalPodAutoscaler": "HPA"}


def judge(body: JsonObject, rows: Rows | None = None) -> Verdict | None:
    """What Argo CD says of an object; None where it has no check and passes it at once.

    `rows` stand for the rows that tidegate brings.
    """
    if get_value(body, "metadata", "deletionTimestamp") is not None and not is_held(body):
        return say(body, PROGRESSING, "PendingDeletion", "Pending deletion")
    kind = Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))
    row = (builtin_rows() if rows is None else rows).find(kind.group, kind.name)
    if row is not None:
        return judge_cases(body, row)
    known = RULES.get((kind.group, kind.name))
    if known is None:
        return None
    rule = known.get(kind.version, known.get(ANY))
    return _unsupported(body, kind) if rule is None else rule(body)


def _unsupported(body: JsonObject, kind: Kind) -> Verdict:
    noun = SHORT_NAMES.get(kind.name, kind.name)
    sentence = f"unsupported {noun} GVK: {kind.group}/{kind.version}, Kind={kind.name}"
    return say(body, UNKNOWN, "VersionUnsupported", sentence)


@cache
def builtin_rows() -> Rows:
    """The rows that stand for scripts which Argo CD brings."""
    texts = row_texts()
    return Rows.of(read_precompiled(READY.read_bytes(), texts, Brought) or read_rows(texts))


def row_texts() -> dict[str, bytes]:
    """The files of these rows, by name."""
    return {file.name: file.read_bytes() for file in sorted((HERE / "rows").glob("*.yaml"))}


def read_rows(texts: dict[str, bytes]) -> Brought:
    return tuple(row for name, text in texts.items() for row in read_health_rows(text, name))
