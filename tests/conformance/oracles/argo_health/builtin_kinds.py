"""Shapes of Kubernetes' and Argo's own kinds."""

from __future__ import annotations

from tests.conformance.oracles.argo_health.shapes import (
    ABSENT,
    ConditionShape,
    Fields,
    Shape,
    conditions,
    items,
    maybe,
    mixed,
)

FEW = [ABSENT, 0, 1, 2, 3]
SEEN = [ABSENT, 1, 2, 3]
DELETED = [ABSENT] * 30 + ["2026-01-01T00:00:00Z"]
FINALIZERS = [ABSENT] * 20 + [["argocd.argoproj.io/hook-finalizer"], ["other/finalizer"]]
GENERATION: Fields = {"metadata.generation": [ABSENT, 1, 2], "status.observedGeneration": SEEN}
META: Fields = {"metadata.deletionTimestamp": DELETED, "metadata.finalizers": FINALIZERS}
DYING: Fields = {
    "metadata.deletionTimestamp": [ABSENT, "2026-01-01T00:00:00Z"],
    "metadata.finalizers": [ABSENT, ["argocd.argoproj.io/hook-finalizer"], ["other/finalizer"]],
}
EVERY_SORT = [
    ("v1", "ConfigMap"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("cert-manager.io/v1", "Certificate"),
]
TIMES = [ABSENT, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2025-12-31T23:59:59Z"]

STATE = mixed(
    waiting=[
        ABSENT,
        ABSENT,
        {"reason": "ImagePullBackOff", "message": "back-off pulling"},
        {"reason": "ErrImagePull", "message": "no such image"},
        {"reason": "CreateContainerConfigError", "message": ""},
        {"reason": "ContainerCreating"},
        {},
    ],
    terminated=[
        ABSENT,
        ABSENT,
        {"exitCode": 0, "reason": "Completed"},
        {"exitCode": 3, "reason": "Error"},
        {"exitCode": 137, "reason": "OOMKilled"},
        {"exitCode": 1, "reason": "Error", "message": "no database"},
    ],
)
CONTAINER = mixed(name=["web", "side"], ready=[True, False], state=STATE, lastState=STATE)
POD: Fields = {
    "metadata.annotations.argocd!argoproj!io/hook": [ABSENT, ABSENT, ABSENT, "PreSync", "Skip", ""],
    "spec.restartPolicy": ["Always", "Always", "Always", "OnFailure", "Never", ABSENT],
    "status.phase": [
        "Pending",
        "Running",
        "Running",
        "Running",
        "Succeeded",
        "Failed",
        "Unknown",
        ABSENT,
    ],
    "status.message": [ABSENT, ABSENT, "The node was low on memory"],
    "status.reason": [ABSENT, "Evicted"],
    "status.containerStatuses": items(CONTAINER),
    "status.initContainerStatuses": items(CONTAINER, 1),
    "status.conditions": conditions(
        Ready=ConditionShape(),
        PodScheduled=ConditionShape(reasons=("Unschedulable", "")),
        Initialized=ConditionShape(),
    ),
}
AUTOSCALER_SAYS = {
    "AbleToScale": ConditionShape(
        reasons=("ReadyForNewScale", "FailedGetScale", "FailedUpdateScale")
    ),
    "ScalingActive": ConditionShape(
        reasons=(
            "ValidMetricFound",
            "FailedGetResourceMetric",
            "InvalidSelector",
            "ScalingDisabled",
        )
    ),
    "ScalingLimited": ConditionShape(reasons=("DesiredWithinRange", "TooFewReplicas")),
}
OLD_CONDITIONS = [
    ABSENT,
    "[]",
    "null",
    "not json",
    '[{"type":"AbleToScale","status":"True","reason":"SucceededGetScale","message":"well"}]',
    '[{"type":"AbleToScale","status":"False","reason":"FailedGetScale","message":"no scale"}]',
    '[{"Type":"ScalingLimited","Status":"True","Reason":"TooFewReplicas","Message":"few"}]',
    '[{"type":"ScalingActive","status":"False","reason":"FailedGetPodsMetric","message":"x"}]',
    '[{"type":"ScalingActive","status":"True","reason":"ValidMetricFound"}]',
    "{}",
    "[1]",
]
AUTOSCALER = "HorizontalPodAutoscaler"
ROLLOUT: Fields = {
    "metadata.generation": [1, 2],
    "metadata.annotations.rollout!argoproj!io/workload-generation": [ABSENT, ABSENT, "1", "2"],
    "spec.workloadRef": [ABSENT, ABSENT, {"kind": "Deployment"}],
    "spec.replicas": [ABSENT, 1, 2],
    "spec.paused": [ABSENT, ABSENT, ABSENT, False, True],
    "spec.strategy": [
        {"canary": {}},
        {"canary": {}},
        {"blueGreen": {}},
        {"blueGreen": {}},
        {},
        ABSENT,
    ],
    "status.observedGeneration": [ABSENT, "1", "2", "3", "6d8c4b", 2],
    "status.workloadObservedGeneration": [ABSENT, "1", "2"],
    "status.replicas": [ABSENT, 1, 2, 3],
    "status.updatedReplicas": [ABSENT, 1, 2],
    "status.availableReplicas": [ABSENT, 1, 2],
    "status.currentPodHash": [ABSENT, "abc", "abc", "abc", "abc"],
    "status.stableRS": [ABSENT, "", "abc", "abc", "def"],
    "status.canary": [ABSENT, {}, {"stableRS": "abc"}],
    "status.blueGreen": [ABSENT, {}, {"activeSelector": "abc"}, {"activeSelector": "abc"}],
    "status.pauseConditions": [ABSENT, ABSENT, ABSENT, [], [{"reason": "CanaryPauseStep"}]],
    "status.message": [ABSENT, "more replicas need to be updated"],
}
BAD_ROLLOUT = conditions(
    InvalidSpec=ConditionShape(share=0.05),
    Progressing=ConditionShape(
        reasons=("RolloutAborted", "ProgressDeadlineExceeded", "Fine", "Fine", "Fine", "Fine")
    ),
    Available=ConditionShape(),
)
RUN_PHASES = ["Pending", "Running", "Successful", "Failed", "Error", "Inconclusive", "New", ABSENT]


def workloads() -> list[Shape]:
    progress = conditions(
        Progressing=ConditionShape(
            reasons=("NewReplicaSetAvailable", "NewReplicaSetAvailable", "ProgressDeadlineExceeded")
        ),
        Available=ConditionShape(),
    )
    counts: Fields = {
        f"status.{name}": FEW for name in ("replicas", "updatedReplicas", "availableReplicas")
    }
    deployment: Fields = {
        **META,
        **GENERATION,
        **counts,
        "spec.replicas": FEW,
        "spec.paused": [ABSENT, ABSENT, ABSENT, False, True],
        "status.conditions": progress,
    }
    replica_set: Fields = {
        **META,
        **GENERATION,
        "spec.replicas": FEW,
        "status.availableReplicas": FEW,
        "status.conditions": conditions(
            ReplicaFailure=ConditionShape(share=0.4, messages=("quota is used up",))
        ),
    }
    stateful_set: Fields = {
        **META,
        **GENERATION,
        "spec.replicas": FEW,
        "spec.updateStrategy": [
            ABSENT,
            {"type": "OnDelete"},
            {"type": "RollingUpdate"},
            {"type": "RollingUpdate", "rollingUpdate": {}},
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
        ],
        **{
            f"status.{name}": FEW
            for name in ("readyReplicas", "updatedReplicas", "currentReplicas")
        },
        "status.currentRevision": [ABSENT, "web-1", "web-2"],
        "status.updateRevision": [ABSENT, "web-1", "web-2"],
    }
    daemon_set: Fields = {
        **META,
        **GENERATION,
        "spec.updateStrategy": [ABSENT, {"type": "OnDelete"}, {"type": "RollingUpdate"}],
        "status.updatedNumberScheduled": FEW,
        "status.desiredNumberScheduled": FEW,
        "status.numberAvailable": FEW,
    }
    return [
        Shape("apps/v1", "Deployment", 500, deployment),
        Shape("apps/v1", "ReplicaSet", 250, replica_set),
        Shape("apps/v1", "StatefulSet", 500, stateful_set),
        Shape("apps/v1", "DaemonSet", 250, daemon_set),
        Shape("v1", "Pod", 700, {**META, **POD}),
        *[Shape("apps/v1beta1", kind, 2) for kind in ("Deployment", "StatefulSet", "DaemonSet")],
        Shape("v2", "Pod", 2),
        Shape("extensions/v1beta1", "Deployment", 2),
    ]


def others() -> list[Shape]:
    ended = ConditionShape(share=0.3, reasons=("BackoffLimitExceeded", "DeadlineExceeded", ""))
    job: Fields = {
        **META,
        "spec.completions": [ABSENT, 1, 3],
        **{f"status.{name}": FEW for name in ("active", "succeeded", "failed")},
        "status.conditions": conditions(
            Failed=ended,
            Complete=ended,
            Suspended=ended,
            FailureTarget=ended,
            SuccessCriteriaMet=ended,
        ),
    }
    cron_job: Fields = {
        "spec.suspend": [ABSENT, ABSENT, False, True],
        "status": [ABSENT, {}, {}, {}, {}, {}],
        "status.lastScheduleTime": TIMES,
        "status.lastSuccessfulTime": TIMES,
        "status.active": [ABSENT, [], [{"kind": "Job", "name": "web-1"}]],
    }
    address = [
        ABSENT,
        {},
        {"ingress": []},
        {"ingress": [{"ip": "192.0.2.1"}]},
        {"ingress": [{"hostname": "a.example"}]},
    ]
    definition: Fields = {
        **META,
        "status.conditions": maybe(
            conditions(
                Established=ConditionShape(
                    reasons=("Installing", "InitialNamesAccepted", "NotAccepted"), share=0.8
                ),
                NamesAccepted=ConditionShape(statuses=("True", "True", "False")),
                NonStructuralSchema=ConditionShape(share=0.2),
                Terminating=ConditionShape(share=0.2),
            )
        ),
    }
    return [
        Shape("batch/v1", "Job", 400, job),
        Shape("batch/v1beta1", "Job", 2),
        Shape("batch/v1", "CronJob", 250, cron_job),
        Shape("batch/v1", "CronJob", 1),
        Shape(
            "v1",
            "Service",
            60,
            {"spec.type": [ABSENT, "ClusterIP", "LoadBalancer"], "status.loadBalancer": address},
        ),
        *[
            Shape(version, "Ingress", 30, {"status.loadBalancer": address})
            for version in ("networking.k8s.io/v1", "extensions/v1beta1")
        ],
        Shape(
            "v1",
            "PersistentVolumeClaim",
            30,
            {**META, "status.phase": [ABSENT, "Bound", "Pending", "Lost", "Odd"]},
        ),
        Shape(
            "autoscaling/v2", AUTOSCALER, 250, {"status.conditions": conditions(**AUTOSCALER_SAYS)}
        ),
        Shape(
            "autoscaling/v1",
            AUTOSCALER,
            80,
            {"metadata.annotations.autoscaling!alpha!kubernetes!io/conditions": OLD_CONDITIONS},
        ),
        Shape("autoscaling/v2beta2", AUTOSCALER, 2),
        Shape(
            "policy/v1",
            "PodDisruptionBudget",
            80,
            {
                "status.conditions": conditions(
                    DisruptionAllowed=ConditionShape(
                        reasons=("SufficientPods", "InsufficientPods", "SyncFailed")
                    ),
                    Other=ConditionShape(share=0.2),
                )
            },
        ),
        Shape(
            "apiregistration.k8s.io/v1",
            "APIService",
            60,
            {
                "status.conditions": conditions(
                    Available=ConditionShape(reasons=("Passed", "MissingEndpoints", ""))
                )
            },
        ),
        Shape("apiregistration.k8s.io/v1alpha1", "APIService", 2),
        Shape("apiextensions.k8s.io/v1", "CustomResourceDefinition", 400, definition),
        Shape("apiextensions.k8s.io/v1", "CustomResourceDefinition", 1),
        *[Shape(version, kind, 8, DYING) for version, kind in EVERY_SORT],
        Shape("argoproj.io/v1alpha1", "Application", 3, META),
    ]


def argo() -> list[Shape]:
    group = "argoproj.io/v1alpha1"
    phases = ["Pending", "Running", "Succeeded", "Failed", "Error", "Odd", ABSENT]
    phased = ["Healthy", "Degraded", "Progressing", "Paused", "Odd"]
    run: Fields = {
        "status": [ABSENT, {}, {}, {}, {}],
        "status.phase": RUN_PHASES,
        "status.message": [ABSENT, "as measured"],
    }
    rolls: Fields = {**ROLLOUT, "status.conditions": BAD_ROLLOUT}
    return [
        Shape(
            group,
            "Workflow",
            60,
            {"status.phase": phases, "status.message": [ABSENT, "step failed"]},
        ),
        Shape(group, "Rollout", 900, rolls),
        Shape(group, "Rollout", 20, ROLLOUT),
        Shape(group, "Rollout", 200, {**rolls, "status.phase": phased}),
        Shape(group, "Rollout", 3, {"metadata.generation": [1]}),
        Shape(group, "AnalysisRun", 40, run),
        Shape(group, "AnalysisRun", 1),
        Shape(
            group,
            "Experiment",
            40,
            {
                **run,
                "status.phase": [
                    run_phase for run_phase in RUN_PHASES if run_phase != "Inconclusive"
                ],
            },
        ),
        Shape(
            group,
            "ApplicationSet",
            200,
            {
                "status.conditions": maybe(
                    conditions(
                        ErrorOccurred=ConditionShape(statuses=("True", "False", "False")),
                        ResourcesUpToDate=ConditionShape(),
                        RolloutProgressing=ConditionShape(),
                        ParametersGenerated=ConditionShape(),
                    )
                )
            },
        ),
    ]
