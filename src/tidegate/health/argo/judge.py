"""The health rules of Argo CD, by kind.

The order is that of gitops-engine (`pkg/health/health.go`, Argo CD 3.5.6): an object that is being
deleted, then the Lua scripts of Argo CD (rows, and functions for kinds that rows cannot express),
then the checks that are built into gitops-engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeAlias

from tidegate.documents.precompiled import read_precompiled
from tidegate.health.argo import builtin_kinds, custom_kinds, workloads
from tidegate.health.argo.pods import judge_pod
from tidegate.health.argo.verdicts import PROGRESSING, UNKNOWN, has_hook_finalizer, make_verdict
from tidegate.health.rows import HealthRow, HealthRowIndex, judge_by_health_row, read_health_rows
from tidegate.model.k8s.json_fields import get_value, object_kind
from tidegate.model.k8s.objects import JsonObject, Kind
from tidegate.model.k8s.verdict import Verdict

HealthRule: TypeAlias = Callable[[JsonObject], Verdict]
"""A function that judges an object of one kind."""
HealthRows: TypeAlias = tuple[HealthRow, ...]
DIRECTORY = Path(__file__).parent
PRECOMPILED_FILE = DIRECTORY / "rows.ready"
GATEWAY = "gateway.networking.k8s.io"
ANY_VERSION = "*"
RULES: Mapping[tuple[str, str], Mapping[str, HealthRule]] = {
    ("apps", "Deployment"): {"v1": workloads.judge_deployment},
    ("apps", "ReplicaSet"): {"v1": workloads.judge_replica_set},
    ("apps", "StatefulSet"): {"v1": workloads.judge_stateful_set},
    ("apps", "DaemonSet"): {"v1": workloads.judge_daemon_set},
    ("", "Pod"): {"v1": judge_pod},
    ("", "Service"): {"v1": builtin_kinds.judge_service},
    ("", "PersistentVolumeClaim"): {"v1": builtin_kinds.judge_pvc},
    ("batch", "Job"): {"v1": workloads.judge_job},
    ("batch", "CronJob"): {ANY_VERSION: workloads.judge_cron_job},
    ("networking.k8s.io", "Ingress"): {ANY_VERSION: builtin_kinds.judge_load_balancer},
    ("extensions", "Ingress"): {ANY_VERSION: builtin_kinds.judge_load_balancer},
    ("autoscaling", "HorizontalPodAutoscaler"): {
        "v1": builtin_kinds.judge_autoscaler_v1,
        "v2": builtin_kinds.judge_autoscaler_v2,
    },
    ("policy", "PodDisruptionBudget"): {ANY_VERSION: builtin_kinds.judge_disruption_budget},
    ("apiregistration.k8s.io", "APIService"): {
        "v1": builtin_kinds.judge_api_service,
        "v1beta1": builtin_kinds.judge_api_service,
    },
    ("apiextensions.k8s.io", "CustomResourceDefinition"): {ANY_VERSION: builtin_kinds.judge_crd},
    (GATEWAY, "Gateway"): {ANY_VERSION: custom_kinds.judge_gateway},
    (GATEWAY, "GatewayClass"): {ANY_VERSION: custom_kinds.judge_gateway_class},
    (GATEWAY, "HTTPRoute"): {ANY_VERSION: custom_kinds.judge_route},
    (GATEWAY, "GRPCRoute"): {ANY_VERSION: custom_kinds.judge_route},
    (GATEWAY, "BackendTLSPolicy"): {ANY_VERSION: custom_kinds.judge_backend_policy},
    ("argoproj.io", "Workflow"): {ANY_VERSION: custom_kinds.judge_workflow},
    ("argoproj.io", "Rollout"): {ANY_VERSION: custom_kinds.judge_rollout},
}
"""Rules by group and kind, then by version. gitops-engine knows no other versions of its kinds."""
SHORT_NAMES = {"HorizontalPodAutoscaler": "HPA"}


def judge(body: JsonObject, rows: HealthRowIndex | None = None) -> Verdict | None:
    """Return the health of an object as Argo CD reports it.

    Returns None for a kind without a health check, which Argo CD passes at once. `rows` replaces
    the built-in rows.

    Like `GetResourceHealth` and `GetHealthCheckFunc` in `pkg/health/health.go` of gitops-engine
    (Argo CD 3.5.6).
    """
    if get_value(body, "metadata", "deletionTimestamp") is not None and not has_hook_finalizer(
        body
    ):
        return make_verdict(body, PROGRESSING, "PendingDeletion", "Pending deletion")
    kind = object_kind(body)
    row = (builtin_rows() if rows is None else rows).find(kind.group, kind.name)
    if row is not None:
        return judge_by_health_row(body, row)
    versions = RULES.get((kind.group, kind.name))
    if versions is None:
        return None
    rule = versions.get(kind.version, versions.get(ANY_VERSION))
    return _unsupported_version(body, kind) if rule is None else rule(body)


def _unsupported_version(body: JsonObject, kind: Kind) -> Verdict:
    noun = SHORT_NAMES.get(kind.name, kind.name)
    message = f"unsupported {noun} GVK: {kind.group}/{kind.version}, Kind={kind.name}"
    return make_verdict(body, UNKNOWN, "VersionUnsupported", message)


@cache
def builtin_rows() -> HealthRowIndex:
    """Return the rows that replace the Lua scripts of Argo CD.

    The scripts are `resource_customizations/*/*/health.lua` of Argo CD 3.5.6.
    """
    files = read_row_files()
    return HealthRowIndex.from_rows(
        read_precompiled(PRECOMPILED_FILE.read_bytes(), files, HealthRows) or parse_row_files(files)
    )


def read_row_files() -> dict[str, bytes]:
    """Return the content of the row files by name."""
    return {file.name: file.read_bytes() for file in sorted((DIRECTORY / "rows").glob("*.yaml"))}


def parse_row_files(files: dict[str, bytes]) -> HealthRows:
    """Parse row files by name."""
    return tuple(row for name, content in files.items() for row in read_health_rows(content, name))
