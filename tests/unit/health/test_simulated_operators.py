"""The last status that simulated operators write is Healthy by the rule that opens gates."""

from __future__ import annotations

from typing import cast

import pytest

from tidegate.health.argo import builtin_rows
from tidegate.health.judge import Judge
from tidegate.knowledge.catalog import KindCatalog
from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.knowledge.templates import NOW, make_scope, render
from tidegate.model.k8s.objects import Json, Kind
from tidegate.model.k8s.verdict import Health
from tidegate.model.operators.rows import WILDCARD, KindRow
from tidegate.model.times import Ms

KNOWN = KindCatalog.from_rows(load_builtin_knowledge().rows)
JUDGE = Judge(KNOWN)
ROLLING: Json = {"updateStrategy": {"partition": 0, "rollingUpdate": {"partition": 0}}}
SPECS: dict[str, Json] = {
    "CloneSet": ROLLING,
    "ClusterResourceBinding": {"clusters": [{"name": "east"}]},
    "DaemonSet": ROLLING,
    "Elasticsearch": {"nodeSets": [{"count": 3}, {"count": 2}]},
    "ExecHook": {"enabled": True},
    "PromotionStrategy": {"environments": [{"branch": "dev"}, {"branch": "live"}]},
    "ResourceBinding": {"clusters": [{"name": "east"}]},
    "StatefulSet": ROLLING,
    **{kind: {"parentRefs": [{"name": "door"}]} for kind in ("TCPRoute", "TLSRoute", "UDPRoute")},
}
"""What a kind must ask for to become Healthy at all."""
NOT_SIMULATED = {
    "Shoot": "its health is a label",
    "VolumeSnapshotContent": "its creator writes its status",
}
ARGO = sorted(key for key in builtin_rows().named if "*" not in "".join(key))
WITH_CASES = [row for row in load_builtin_knowledge().rows if row.cases]


def a_body(group: str, kind: str, status: Json) -> dict[str, Json]:
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": "it", "namespace": "shop", "generation": 2},
        "spec": SPECS.get(kind, {}),
        "status": status,
    }


def a_status(row: KindRow, group: str, kind: str, stage: int) -> Json:
    scope = make_scope(a_body(group, kind, None), Kind(group, "v1", kind))
    made = render(row.stages[stage].writes, scope)
    known = cast("dict[str, Json]", made if isinstance(made, dict) else {})
    return {key: "2026-01-01T00:00:00Z" if item == NOW else item for key, item in known.items()}


@pytest.mark.parametrize(("group", "kind"), [key for key in ARGO if key[1] not in NOT_SIMULATED])
def test_a_kind_of_argo_cds_is_healthy_when_its_operator_is_done(group: str, kind: str) -> None:
    row = KNOWN.find_row(Kind(group, "v1", kind)) or KNOWN.rows[WILDCARD, WILDCARD]

    verdict = JUDGE.judge(a_body(group, kind, a_status(row, group, kind, -1)), Ms(0))

    assert (verdict.health, verdict.is_checked) == (Health.HEALTHY, True)


@pytest.mark.parametrize("row", WITH_CASES, ids=lambda row: f"{row.kinds[0]}.{row.group}")
def test_no_stage_of_a_row_matches_its_failure_cases(row: KindRow) -> None:
    kind = row.kinds[-1]
    states = [
        JUDGE.judge(a_body(row.group, kind, a_status(row, row.group, kind, place)), Ms(0)).health
        for place in range(len(row.stages))
    ]

    assert states[-1] is Health.HEALTHY
    assert set(states[:-1]) <= {Health.PROGRESSING}


def an_object(kind: str, **status: Json) -> dict[str, Json]:
    return {"metadata": {"name": "it", "generation": 1}, "status": {**status}, "kind": kind}


def condition(name: str, status: str, reason: str = "Because") -> list[Json]:
    return [{"type": name, "status": status, "reason": reason, "message": "as it is"}]


@pytest.mark.parametrize(
    ("body", "group", "state"),
    [
        (
            an_object("PipelineRun", conditions=condition("Succeeded", "False")),
            "tekton.dev",
            "Degraded",
        ),
        (
            an_object("TaskRun", conditions=condition("Succeeded", "Unknown")),
            "tekton.dev",
            "Progressing",
        ),
        (an_object("Backup", phase="PartiallyFailed"), "velero.io", "Degraded"),
        (an_object("Restore", phase="InProgress"), "velero.io", "Progressing"),
        (an_object("BackupStorageLocation", phase="Unavailable"), "velero.io", "Degraded"),
        (an_object("CephBlockPool", phase="Failure"), "ceph.rook.io", "Degraded"),
        (
            an_object("ClusterServiceVersion", phase="Failed"),
            "operators.coreos.com",
            "Degraded",
        ),
        (
            an_object("InstallPlan", phase="RequiresApproval"),
            "operators.coreos.com",
            "Suspended",
        ),
        (an_object("Kibana", health="red"), "kibana.k8s.elastic.co", "Progressing"),
        (an_object("PerconaPGCluster", state="paused"), "pgv2.percona.com", "Suspended"),
        (
            an_object("PerconaServerMongoDBBackup", state="error"),
            "psmdb.percona.com",
            "Degraded",
        ),
        (
            an_object("Revision", conditions=condition("Ready", "False")),
            "serving.knative.dev",
            "Degraded",
        ),
        (
            an_object("Sensor", conditions=condition("DependenciesProvided", "False")),
            "argoproj.io",
            "Degraded",
        ),
        (an_object("Backup", phase="failed"), "postgresql.cnpg.io", "Degraded"),
        (
            an_object("Database", applied=False, message="no role"),
            "postgresql.cnpg.io",
            "Degraded",
        ),
        (
            an_object("KeycloakRealmImport", conditions=condition("HasErrors", "True")),
            "k8s.keycloak.org",
            "Degraded",
        ),
        (
            an_object("Alertmanager", conditions=condition("Available", "False", "NoPodReady")),
            "monitoring.coreos.com",
            "Progressing",
        ),
        (an_object("Volume", robustness="faulted"), "longhorn.io", "Degraded"),
        (an_object("ClusterPolicy", state="notReady"), "nvidia.com", "Progressing"),
        (an_object("ClusterPolicy", state="disabled"), "nvidia.com", "Suspended"),
        (
            an_object(
                "CiliumLoadBalancerIPPool", conditions=condition("cilium.io/PoolConflict", "True")
            ),
            "cilium.io",
            "Degraded",
        ),
        (
            an_object("ReplicationSource", latestMoverStatus={"result": "Failed"}),
            "volsync.backube",
            "Degraded",
        ),
        (
            an_object("CertificateRequest", conditions=condition("Ready", "False", "Denied")),
            "cert-manager.io",
            "Degraded",
        ),
        (
            an_object("KafkaMirrorMaker2", conditions=condition("NotReady", "True")),
            "kafka.strimzi.io",
            "Degraded",
        ),
        (
            an_object("GrafanaContactPoint", conditions=condition("Any", "False")),
            "grafana.integreatly.org",
            "Degraded",
        ),
    ],
)
def test_a_kind_that_argo_cd_does_not_judge_has_its_states(
    body: dict[str, Json], group: str, state: str
) -> None:
    verdict = JUDGE.judge({"apiVersion": f"{group}/v1", **body}, Ms(0))

    assert (verdict.health, verdict.is_checked) == (state, False)
