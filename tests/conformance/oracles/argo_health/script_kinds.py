"""Objects of third-party kinds for which Argo CD has scripts."""

from __future__ import annotations

from collections.abc import Sequence

from tests.conformance.oracles.argo_health.shapes import (
    ABSENT,
    ConditionShape,
    Fields,
    Maker,
    Shape,
    conditions,
    items,
    maybe,
    mixed,
    one_condition,
)

YES = ConditionShape()
SUSPEND = [ABSENT, ABSENT, ABSENT, False, True]
CNPG_PHASES = [
    "Cluster in healthy state",
    "Setting up primary",
    "Waiting for the instances to become active",
    "Switchover in progress",
    "Applying configuration",
    "Unable to create required cluster objects",
    "Something new",
    ABSENT,
]


def list_results(api_version: str, kinds: Sequence[str], amount: int, maker: Maker) -> list[Shape]:
    """Kinds whose conditions tell all."""
    fields: Fields = {"status.conditions": maybe(maker)}
    return [Shape(api_version, kind, amount, fields) for kind in kinds]


def phased(
    api_version: str, kind: str, path: str, phases: Sequence[object], **more: object
) -> Shape:
    """A kind whose health depends on one field."""
    fixed = {name.replace("__", "."): [value] for name, value in more.items()}
    return Shape(api_version, kind, 6 * len(phases), {**fixed, path: phases})


def gateway() -> list[Shape]:
    group = "gateway.networking.k8s.io/v1"
    says = ConditionShape(generations=(None, 1, 2, 2, 2), messages=("as it is", "", "not so"))
    listed = conditions(Accepted=says, ResolvedRefs=says, Programmed=says)
    mostly = ConditionShape(
        statuses=("True", "True", "True", "False", "Unknown"), generations=(2, 2, 2, 1, None)
    )
    well = conditions(Accepted=mostly, ResolvedRefs=mostly, Programmed=mostly)
    generation = [ABSENT, 1, 2, 2, 2]
    gateways: Fields = {
        "metadata.generation": generation,
        "status": [ABSENT, {}, {}],
        "status.conditions": maybe(well, 0.3),
        "status.listeners": maybe(items(mixed(name=["http"], conditions=maybe(well))), 0.3),
    }
    parents = items(mixed(parentRef=[{"name": "edge"}, {}], conditions=well), 3)
    odd_parents = items(mixed(parentRef=[{"name": "edge"}], conditions=maybe(listed)))
    ancestors = items(mixed(ancestorRef=[{"name": "edge"}, {}], conditions=well))
    return [
        Shape(group, "Gateway", 300, gateways),
        Shape(
            group,
            "GatewayClass",
            100,
            {
                "metadata.generation": generation,
                "status.conditions": maybe(conditions(Accepted=says, Other=says)),
            },
        ),
        Shape(
            group,
            "HTTPRoute",
            300,
            {"metadata.generation": generation, "status.parents": maybe(parents)},
        ),
        Shape(
            group,
            "GRPCRoute",
            120,
            {"metadata.generation": generation, "status.parents": odd_parents},
        ),
        Shape(
            group,
            "BackendTLSPolicy",
            200,
            {"metadata.generation": generation, "status.ancestors": maybe(ancestors)},
        ),
    ]


def flux() -> list[Shape]:
    reconciled = maybe(
        conditions(
            Ready=ConditionShape(reasons=("Succeeded", "Progressing"), share=0.9),
            Reconciling=ConditionShape(
                reasons=("NewGeneration", "Scanning", "ApplyingPolicy", "Other")
            ),
            ArtifactInStorage=YES,
            Released=YES,
            TestSuccess=ConditionShape(share=0.4),
        )
    )
    fields: Fields = {"spec.suspend": SUSPEND, "status.conditions": reconciled}
    kinds = {
        "kustomize.toolkit.fluxcd.io/v1": ["Kustomization"],
        "helm.toolkit.fluxcd.io/v2": ["HelmRelease", "HelmRelease"],
        "notification.toolkit.fluxcd.io/v1": ["Receiver"],
        "image.toolkit.fluxcd.io/v1": ["ImagePolicy", "ImageRepository", "ImageUpdateAutomation"],
        "source.toolkit.fluxcd.io/v1": ["GitRepository", "Bucket", "HelmChart", "OCIRepository"],
    }
    named = [(version, kind) for version, all_kinds in kinds.items() for kind in all_kinds]
    oci: Fields = {**fields, "spec.type": [ABSENT, "default", "oci"]}
    return [
        *[Shape(version, kind, 150, fields) for version, kind in named],
        Shape("source.toolkit.fluxcd.io/v1", "HelmRepository", 80, oci),
    ]


def ready_or_not() -> list[Shape]:
    ready = conditions(Ready=ConditionShape(share=0.9), Other=YES)
    strimzi = one_condition(Ready=YES, NotReady=ConditionShape(reasons=("Creating", "Broken")))
    topology = conditions(
        Ready=ConditionShape(reasons=("SuccessfulCreateOrUpdate", "FailedCreateOrUpdate", "Other"))
    )
    external = ["ExternalSecret", "SecretStore", "ClusterSecretStore", "PushSecret"]
    queues = ["Binding", "Exchange", "Permission", "Policy", "Queue", "Shovel", "User", "Vhost"]
    kafka = ["Kafka", "KafkaBridge", "KafkaConnect", "KafkaConnector", "KafkaTopic", "KafkaUser"]
    return [
        *list_results(
            "cert-manager.io/v1", ["Certificate"], 60, conditions(Ready=YES, Issuing=YES)
        ),
        *list_results("cert-manager.io/v1", ["Issuer", "ClusterIssuer"], 20, ready),
        *list_results("external-secrets.io/v1", external, 20, ready),
        *list_results(
            "external-secrets.io/v1",
            ["ClusterExternalSecret"],
            80,
            one_condition(
                Ready=ConditionShape(share=1),
                PartiallyReady=ConditionShape(share=1),
                NotReady=ConditionShape(share=1),
            ),
        ),
        *list_results("bitnami.com/v1alpha1", ["SealedSecret"], 20, conditions(Synced=YES)),
        *list_results("onepassword.com/v1", ["OnePasswordItem"], 20, ready),
        *list_results("karpenter.sh/v1", ["NodePool"], 20, ready),
        *list_results("karpenter.k8s.aws/v1", ["EC2NodeClass"], 20, ready),
        *list_results("k8s.mariadb.com/v1alpha1", ["Database", "Grant", "User"], 20, ready),
        *list_results("kafka.strimzi.io/v1", kafka, 80, strimzi),
        *list_results("rabbitmq.com/v1beta1", queues, 60, topology),
        *list_results(
            "rabbitmq.com/v1beta1",
            ["RabbitmqCluster"],
            100,
            conditions(ClusterAvailable=YES, AllReplicasReady=YES, ReconcileSuccess=YES),
        ),
        *list_results("argoproj.io/v1alpha1", ["EventBus"], 20, conditions(Deployed=YES)),
        *list_results(
            "argoproj.io/v1alpha1",
            ["CronWorkflow"],
            40,
            one_condition(SpecError=YES, SubmissionError=YES, Completed=YES),
        ),
    ]


def platform() -> list[Shape]:
    kyverno = conditions(
        Ready=ConditionShape(reasons=("Succeeded", "Failed"), messages=("Ready", "Broken"))
    )
    paused = conditions(
        Ready=YES, Paused=YES, Fallback=ConditionShape(statuses=("True", "False", "False"))
    )
    available = conditions(
        Available=ConditionShape(
            statuses=("True", "False", "Degraded", "Unknown"),
            reasons=("SomePodsNotReady", "NoPodReady", ""),
        ),
        Reconciled=YES,
    )
    atlas = conditions(
        Ready=ConditionShape(
            reasons=("Reconciling", "Broken"), messages=("Reconciling", "GettingDevDB", "x")
        )
    )
    claims: Fields = {
        "metadata.generation": [ABSENT, 1, 2],
        "status.observedGeneration": [ABSENT, 1, 2],
        "status.conditions": maybe(
            conditions(
                Ready=YES,
                Disrupting=ConditionShape(share=0.3),
                Launched=YES,
                Registered=YES,
                Initialized=YES,
            )
        ),
    }
    snapshot: Fields = {
        "status": [ABSENT, {}, {}],
        "status.readyToUse": [ABSENT, True, False],
        "status.error": [ABSENT, ABSENT, {"message": "no driver"}],
    }
    clusters: Fields = {
        "spec.paused": SUSPEND,
        "status.phase": [ABSENT, "Pending", "Provisioned", "Failed"],
        "status.conditions": [
            ABSENT,
            *[
                [{"type": "Ready", "status": status, "severity": severity, "message": "m"}]
                for status in ("True", "False")
                for severity in ("Info", "Error")
            ],
        ],
    }
    return [
        *list_results("kyverno.io/v1", ["Policy"], 100, kyverno),
        *list_results("keda.sh/v1alpha1", ["ScaledObject", "ScaledJob"], 80, paused),
        *list_results("monitoring.coreos.com/v1", ["Prometheus"], 60, available),
        *list_results("db.atlasgo.io/v1alpha1", ["AtlasMigration", "AtlasSchema"], 40, atlas),
        *list_results(
            "datadoghq.com/v1alpha1", ["DatadogMetric"], 40, conditions(Error=YES, Valid=YES)
        ),
        Shape("karpenter.sh/v1", "NodeClaim", 150, claims),
        Shape("snapshot.storage.k8s.io/v1", "VolumeSnapshot", 30, snapshot),
        Shape("snapshot.storage.k8s.io/v1", "VolumeSnapshotContent", 30, snapshot),
        Shape("cluster.x-k8s.io/v1beta1", "Cluster", 100, clusters),
        Shape(
            "cluster.x-k8s.io/v1beta1",
            "MachineDeployment",
            60,
            {**clusters, "status.phase": [ABSENT, "Running", "ScalingUp", "Failed"]},
        ),
        Shape(
            "operator.victoriametrics.com/v1beta1",
            "VMSingle",
            80,
            {
                "metadata.generation": [1, 2],
                "status": [ABSENT, {}],
                "status.observedGeneration": [ABSENT, 1, 2],
                "status.updateStatus": [ABSENT, "operational", "expanding", "paused", "failed"],
                "status.reason": [ABSENT, "", "so it is"],
            },
        ),
    ]


def databases() -> list[Shape]:
    hibernation = conditions(cnpg_io__hibernation=ConditionShape(share=0.15), Ready=YES)
    cnpg: Fields = {
        "metadata.annotations.cnpg!io/reconciliationLoop": [
            ABSENT,
            ABSENT,
            ABSENT,
            "disabled",
            "enabled",
        ],
        "status.phase": CNPG_PHASES,
        "status.phaseReason": [ABSENT, "as it is"],
        "status.conditions": maybe(hibernation),
    }
    canary = {
        "status__canaryWeight": 0,
        "status__conditions": [{"type": "Promoted", "message": "m"}],
    }
    nodes = {"status__ready": 1, "status__size": 3, "status__message": ["disk"]}
    percona = [ABSENT, "initializing", "ready", "error", "stopping", "paused", "odd"]
    altinity = [ABSENT, "Completed", "InProgress", "Aborted"]
    return [
        Shape("postgresql.cnpg.io/v1", "Cluster", 200, cnpg),
        Shape("postgresql.cnpg.io/v1", "Cluster", 1),
        phased(
            "acid.zalan.do/v1",
            "postgresql",
            "status.PostgresClusterStatus",
            [ABSENT, "Running", "Creating", "Updating", "SyncFailed"],
        ),
        phased(
            "psmdb.percona.com/v1", "PerconaServerMongoDB", "status.state", percona[1:], **nodes
        ),
        phased("pxc.percona.com/v1", "PerconaXtraDBCluster", "status.state", percona, **nodes),
        phased("clickhouse.altinity.com/v1", "ClickHouseInstallation", "status.status", altinity),
        phased(
            "clickhouse-keeper.altinity.com/v1",
            "ClickHouseKeeperInstallation",
            "status.status",
            altinity,
        ),
        phased(
            "minio.min.io/v2",
            "Tenant",
            "status.currentState",
            [
                ABSENT,
                "Initialized",
                "Provisioning MinIO",
                "Waiting for pods",
                "Odd",
                "Pool Decommissioning Not Allowed",
            ],
        ),
        phased(
            "jaegertracing.io/v1", "Jaeger", "status.phase", [ABSENT, "Running", "Failed", "Odd"]
        ),
        phased(
            "logstash.k8s.elastic.co/v1alpha1",
            "Logstash",
            "status.health",
            [ABSENT, "green", "yellow", "red", "odd"],
        ),
        phased(
            "objectbucket.io/v1alpha1",
            "ObjectBucketClaim",
            "status.phase",
            [ABSENT, "Bound", "Failed", "Pending"],
        ),
        phased(
            "flagger.app/v1beta1",
            "Canary",
            "status.phase",
            ["Failed", "Progressing", "Promoting", "Succeeded", "Initialized", "Waiting"],
            **canary,
        ),
        phased("elasticsearch.k8s.elastic.co/v1", "Elasticsearch", "status.phase", ["Ready"]),
    ]


def crossplane() -> list[Shape]:
    managed = maybe(
        conditions(
            Synced=ConditionShape(statuses=("True", "True", "False")),
            Ready=YES,
            LastAsyncOperation=ConditionShape(share=0.3),
            Healthy=ConditionShape(share=0.3),
            Established=ConditionShape(share=0.3),
        )
    )
    package = maybe(
        conditions(Installed=ConditionShape(share=0.9), Healthy=ConditionShape(share=0.9))
    )
    return [
        Shape("pkg.crossplane.io/v1", "Provider", 80, {"status.conditions": package}),
        Shape("pkg.crossplane.io/v1", "Function", 60, {"status.conditions": managed}),
        Shape("apiextensions.crossplane.io/v1", "Composition", 60, {"status.conditions": managed}),
        Shape("ec2.aws.upbound.io/v1beta1", "VPC", 60, {"status.conditions": managed}),
        Shape("aws.upbound.io/v1beta1", "ProviderConfig", 60, {"status.conditions": managed}),
    ]
