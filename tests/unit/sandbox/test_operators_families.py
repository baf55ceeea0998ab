"""Operators of databases, logins, gateways, queues and volumes."""

from __future__ import annotations

import pytest

from tests.support.objects import CONFIG_MAP, PVC, SECRET, SERVICE, a_service, an_object
from tests.support.operator_stage import OperatorStage, an_operator
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Propagation, Ref
from tidegate.model.times import MINUTE, SECOND, Ms

DB_INSTANCE = Kind("kinda.rocks", "v1beta1", "DbInstance")
DATABASE = Kind("kinda.rocks", "v1beta1", "Database")
DB_USER = Kind("kinda.rocks", "v1beta1", "DbUser")
CLUSTER = Kind("postgresql.cnpg.io", "v1", "Cluster")
CNPG_DATABASE = Kind("postgresql.cnpg.io", "v1", "Database")
KEYCLOAK = Kind("k8s.keycloak.org", "v2alpha1", "Keycloak")
REALM = Kind("k8s.keycloak.org", "v2alpha1", "KeycloakRealmImport")
GATEWAY_CLASS = Kind("gateway.networking.k8s.io", "v1", "GatewayClass")
GATEWAY = Kind("gateway.networking.k8s.io", "v1", "Gateway")
ROUTE = Kind("gateway.networking.k8s.io", "v1", "HTTPRoute")
KAFKA = Kind("kafka.strimzi.io", "v1beta2", "Kafka")
KAFKA_USER = Kind("kafka.strimzi.io", "v1beta2", "KafkaUser")
TEMPORAL = Kind("temporal.io", "v1beta1", "TemporalCluster")
TEMPORAL_NAMESPACE = Kind("temporal.io", "v1beta1", "TemporalNamespace")
SNAPSHOT = Kind("snapshot.storage.k8s.io", "v1", "VolumeSnapshot")
CONTENT = Kind("snapshot.storage.k8s.io", "v1", "VolumeSnapshotContent")
REPLICATION = Kind("volsync.backube", "v1alpha1", "ReplicationSource")
FLUX = Kind("kustomize.toolkit.fluxcd.io", "v1", "Kustomization")
REDIS = Kind("databases.spotahome.com", "v1", "RedisFailover")
CLICKHOUSE = Kind("clickhouse.altinity.com", "v1", "ClickHouseInstallation")
TENANT = Kind("minio.min.io", "v2", "Tenant")
PROMETHEUS = Kind("monitoring.coreos.com", "v1", "Prometheus")
SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice")

CNPG = an_operator("cnpg", "registry.example/cloudnative-pg/cloudnative-pg:1.27")
ENVOY = an_operator("envoy-gateway", "registry.example/envoyproxy/gateway:v1")
STRIMZI = an_operator("strimzi-cluster-operator", "registry.example/strimzi/operator:0.48")


def a_secret(name: str) -> JsonObject:
    return an_object(SECRET, name, stringData={"password": "x"})


@pytest.mark.parametrize(
    ("engine", "keys"),
    [
        ("postgres", {"POSTGRES_DB", "POSTGRES_USER", "POSTGRES_PASSWORD", "URL"}),
        ("mysql", {"DB", "USER", "PASSWORD", "URL"}),
    ],
)
async def test_a_database_waits_for_its_instance_and_creates_its_secret(
    engine: str, keys: set[str]
) -> None:
    stage = await OperatorStage().start(DB_INSTANCE, DATABASE)
    await stage.operate(an_operator("db-operator"))
    templates: list[Json] = [{"name": "URL", "secret": True}, {"name": "HOST", "secret": False}]
    spec: JsonObject = {
        "instance": "main",
        "secretName": "web-db",
        "credentials": {"templates": templates},
    }
    database = await stage.make(DATABASE, "web", spec)
    admin: JsonObject = {"Name": "admin", "Namespace": "shop"}
    await stage.make(DB_INSTANCE, "main", {"engine": engine, "adminSecretRef": admin})
    await stage.wait(Ms(MINUTE))

    waiting = await stage.status(database)
    await stage.add(a_secret("admin"))
    await stage.wait(Ms(15 * SECOND))

    assert waiting["status"] is False
    assert (await stage.status(database))["status"] is True
    assert (await stage.status(database))["engine"] == engine
    assert set(await stage.secret("web-db")) == keys
    config = await stage.body(Ref(CONFIG_MAP, "shop", "web-db"))
    assert set(get_mapping(config, "data")) == {
        "DB_CONN",
        "DB_PORT",
        "DB_PUBLIC_IP",
        "SSL_MODE",
        "HOST",
    }


async def test_a_postgres_cluster_answers_at_its_services_once_it_is_healthy() -> None:
    stage = await OperatorStage().start(CLUSTER)
    await stage.operate(CNPG)
    cluster = await stage.make(CLUSTER, "db", {"instances": 3, "enableSuperuserAccess": True})
    await stage.wait(Ms(5 * SECOND))

    begun = await stage.status(cluster)
    services = [await stage.exists(SERVICE, f"db-{name}") for name in ("rw", "ro", "r")]
    answers_early = await stage.exists(SLICE, "db-rw-simulated")
    await stage.wait(Ms(MINUTE))
    healthy = await stage.status(cluster)

    assert (begun["phase"], services, answers_early) == ("Setting up primary", [True] * 3, False)
    assert (healthy["phase"], healthy["readyInstances"]) == ("Cluster in healthy state", 3)
    assert await stage.exists(SLICE, "db-rw-simulated")
    assert {"username", "password", "uri", "host"} <= set(await stage.secret("db-app"))
    assert (await stage.secret("db-superuser"))["username"] == "postgres"


async def test_a_postgres_cluster_writes_its_address_into_the_secret_of_the_application() -> None:
    stage = await OperatorStage().start(CLUSTER)
    await stage.operate(CNPG)
    initdb: JsonObject = {"database": "orders", "owner": "ann"}

    await stage.make(CLUSTER, "db", {"instances": 1, "bootstrap": {"initdb": initdb}})
    await stage.wait(Ms(5 * SECOND))

    secret = await stage.secret("db-app")
    assert secret["uri"] == "postgresql://ann:simulated@db-rw.shop:5432/orders"
    assert secret["pgpass"] == "db-rw:5432:orders:ann:simulated"


async def test_a_database_without_its_postgres_cluster_has_no_status() -> None:
    stage = await OperatorStage().start(CLUSTER, CNPG_DATABASE)
    await stage.operate(CNPG)
    database = await stage.make(CNPG_DATABASE, "orders", {"cluster": {"name": "db"}})
    await stage.wait(Ms(MINUTE))

    alone = await stage.status(database)
    await stage.make(CLUSTER, "db", {"instances": 1})
    await stage.wait(Ms(MINUTE))

    assert alone == {}
    assert (await stage.status(database))["applied"] is True


@pytest.mark.parametrize(("cleanup", "left"), [(True, 0), (False, 1), (None, 1)])
async def test_the_secret_of_a_database_is_deleted_with_it_only_with_cleanup(
    cleanup: Json, left: int
) -> None:
    stage = await OperatorStage().start(DB_INSTANCE, DATABASE)
    await stage.operate(an_operator("db-operator"))
    await stage.make(DB_INSTANCE, "main", {"engine": "postgres"})
    spec: JsonObject = {"instance": "main", "secretName": "web-db", "cleanup": cleanup}
    database = await stage.make(DATABASE, "web", spec)
    await stage.wait(Ms(MINUTE))

    await stage.client.delete(database, propagation=Propagation.BACKGROUND)
    await stage.wait(Ms(10 * SECOND))

    assert await stage.exists(SECRET, "web-db") == bool(left)


async def test_a_user_of_a_database_gets_the_keys_of_its_engine() -> None:
    stage = await OperatorStage().start(DB_INSTANCE, DATABASE, DB_USER)
    await stage.operate(an_operator("db-operator"))
    await stage.make(DB_INSTANCE, "main", {"engine": "mysql"})
    credentials: JsonObject = {"secretName": "web-db"}
    await stage.make(DATABASE, "web", {"instance": "main", "credentials": credentials})
    await stage.make(DB_USER, "reader", {"databaseRef": "web", "secretName": "reader"})

    await stage.wait(Ms(MINUTE))

    assert await stage.secret("web-db") == {
        "DB": "shop-web",
        "USER": "shop-web",
        "PASSWORD": "simulated",
    }
    assert (await stage.secret("reader"))["DB"] == "shop-web"


async def test_a_postgres_cluster_creates_no_superuser_by_default() -> None:
    stage = await OperatorStage().start(CLUSTER)
    await stage.operate(CNPG)

    await stage.make(CLUSTER, "db", {"instances": 1})
    await stage.wait(Ms(MINUTE))

    assert await stage.exists(SECRET, "db-app")
    assert not await stage.exists(SECRET, "db-superuser")


async def test_a_login_waits_for_its_credentials_and_a_realm_for_its_login() -> None:
    stage = await OperatorStage().start(KEYCLOAK, REALM)
    await stage.operate(an_operator("keycloak-operator"))
    secret: JsonObject = {"name": "db-app", "key": "password"}
    keycloak = await stage.make(KEYCLOAK, "login", {"db": {"passwordSecret": secret}})
    realm = await stage.make(REALM, "shop", {"keycloakCRName": "login"})
    await stage.wait(Ms(2 * MINUTE))

    waiting = await stage.condition(keycloak, "Ready")
    errors = await stage.condition(keycloak, "HasErrors")
    not_done = await stage.condition(realm, "Done")
    await stage.add(a_secret("db-app"))
    await stage.wait(Ms(2 * MINUTE))

    assert (waiting["status"], waiting["message"]) == ("False", "Waiting for more replicas")
    assert "CreateContainerConfigError" in str(errors["message"])
    assert not_done["status"] == "False"
    assert (await stage.condition(keycloak, "Ready"))["status"] == "True"
    assert (await stage.condition(realm, "Done"))["status"] == "True"
    assert set(await stage.secret("login-initial-admin")) == {"username", "password"}
    assert await stage.exists(SLICE, "login-service-simulated")


async def test_a_gateway_is_accepted_before_it_is_programmed() -> None:
    stage = await OperatorStage().start(GATEWAY_CLASS, GATEWAY)
    await stage.operate(ENVOY)
    await stage.make(GATEWAY_CLASS, "envoy", {"controllerName": "example.com/gateway"})
    listener: JsonObject = {"name": "web", "port": 80, "protocol": "HTTP"}
    spec: JsonObject = {"gatewayClassName": "envoy", "listeners": [listener]}
    gateway = await stage.make(GATEWAY, "edge", spec)

    await stage.wait(Ms(5 * SECOND))
    early = await stage.condition(gateway, "Programmed")
    accepted = await stage.condition(gateway, "Accepted")
    await stage.wait(Ms(10 * SECOND))

    assert (accepted["status"], early["status"]) == ("True", "False")
    assert (await stage.condition(gateway, "Programmed"))["status"] == "True"


async def test_a_route_reports_that_its_gateway_or_its_backend_is_missing() -> None:
    stage = await OperatorStage().start(GATEWAY, ROUTE)
    await stage.operate(ENVOY)
    spec: JsonObject = {
        "parentRefs": [{"name": "edge"}],
        "rules": [{"backendRefs": [{"name": "web", "port": 80}]}],
    }
    route = await stage.make(ROUTE, "web", spec)

    reasons = []
    for make in (None, stage.make(GATEWAY, "edge", {}), stage.add(a_service("web"))):
        if make is not None:
            await make
        await stage.wait(Ms(10 * SECOND))
        parents = (await stage.status(route))["parents"]
        assert isinstance(parents, list)
        assert isinstance(parents[0], dict)
        conditions = parents[0]["conditions"]
        assert isinstance(conditions, list)
        reasons.append(
            [condition["reason"] for condition in conditions if isinstance(condition, dict)]
        )

    assert reasons == [
        ["NoMatchingParent"],
        ["Accepted", "BackendNotFound"],
        ["Accepted", "ResolvedRefs"],
    ]


async def test_a_kafka_user_waits_for_its_cluster_and_gets_the_keys_of_its_login() -> None:
    stage = await OperatorStage().start(KAFKA, KAFKA_USER)
    await stage.operate(STRIMZI)
    labels: JsonObject = {"strimzi.io/cluster": "bus"}
    spec: JsonObject = {"authentication": {"type": "scram-sha-512"}}
    user = await stage.make(KAFKA_USER, "web", spec, labels=labels)
    await stage.wait(Ms(10 * SECOND))
    early = await stage.status(user)

    listener: JsonObject = {"name": "tls", "port": 9093}
    kafka = await stage.make(KAFKA, "bus", {"kafka": {"listeners": [listener]}})
    await stage.wait(Ms(10 * SECOND))
    creating = await stage.condition(kafka, "NotReady")
    await stage.wait(Ms(2 * MINUTE))

    assert early == {}
    assert creating["reason"] == "Creating"
    assert await stage.condition(kafka, "NotReady") == {}
    assert await stage.exists(SLICE, "bus-kafka-bootstrap-simulated")
    assert set(await stage.secret("web")) == {"password", "sasl.jaas.config"}


async def test_a_temporal_namespace_waits_for_a_running_cluster() -> None:
    stage = await OperatorStage().start(TEMPORAL, TEMPORAL_NAMESPACE)
    await stage.operate(an_operator("temporal-operator-controller-manager"))
    namespace = await stage.make(TEMPORAL_NAMESPACE, "orders", {"clusterRef": {"name": "prod"}})
    await stage.make(TEMPORAL, "prod", {"version": "1.24.0"})

    await stage.wait(Ms(20 * SECOND))
    waiting = await stage.status(namespace)
    await stage.wait(Ms(MINUTE))

    assert waiting == {}
    assert (await stage.condition(namespace, "ReconcileSuccess"))["status"] == "True"


@pytest.mark.parametrize(
    ("kind", "operator", "service"),
    [
        (REDIS, "redisoperator", "rfs-it"),
        (CLICKHOUSE, "clickhouse-operator", "clickhouse-it"),
        (TENANT, "minio-operator", "minio"),
        (PROMETHEUS, "prometheus-operator/prometheus-operator", "prometheus-operated"),
    ],
)
async def test_a_server_of_an_operator_has_endpoints_once_it_is_ready(
    kind: Kind, operator: str, service: str
) -> None:
    stage = await OperatorStage().start(kind)
    name = operator.partition("/")[0]
    await stage.operate(an_operator(name, f"registry.example/{operator}:1"))
    await stage.make(kind, "it", {})

    await stage.wait(Ms(5 * SECOND))
    early = await stage.exists(SLICE, f"{service}-simulated")
    await stage.wait(Ms(MINUTE))

    assert not early
    assert await stage.exists(SERVICE, service)
    assert await stage.exists(SLICE, f"{service}-simulated")


async def test_a_snapshot_waits_for_its_claim() -> None:
    stage = await OperatorStage().start(SNAPSHOT, CONTENT)
    await stage.operate(an_operator("snapshot-controller"))
    spec: JsonObject = {"source": {"persistentVolumeClaimName": "files"}}
    snapshot = await stage.make(SNAPSHOT, "nightly", spec)
    await stage.wait(Ms(30 * SECOND))

    waiting = await stage.status(snapshot)
    claim: JsonObject = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    await stage.add(an_object(PVC, "files", spec=claim))
    await stage.wait(Ms(30 * SECOND))
    usable = await stage.status(snapshot)

    assert waiting["readyToUse"] is False
    assert "error" in waiting
    assert usable["readyToUse"] is True
    assert await stage.exists(CONTENT, str(usable["boundVolumeSnapshotContentName"]), "")


async def test_a_copy_of_a_volume_reports_that_its_repository_is_missing() -> None:
    stage = await OperatorStage().start(REPLICATION)
    await stage.operate(an_operator("volsync", "registry.example/backube/volsync:0.14"))
    source = await stage.make(REPLICATION, "files", {"restic": {"repository": "bucket"}})
    await stage.wait(Ms(30 * SECOND))

    waiting = await stage.condition(source, "Synchronizing")
    await stage.add(a_secret("bucket"))
    await stage.wait(Ms(MINUTE))

    assert waiting["reason"] == "Error"
    assert (await stage.condition(source, "Synchronizing"))["reason"] == "WaitingForSchedule"


async def test_a_manual_copy_has_the_name_of_its_trigger() -> None:
    stage = await OperatorStage().start(REPLICATION)
    await stage.operate(an_operator("volsync", "registry.example/backube/volsync:0.14"))

    source = await stage.make(REPLICATION, "files", {"trigger": {"manual": "before-update"}})
    await stage.wait(Ms(MINUTE))

    assert (await stage.status(source))["lastManualSync"] == "before-update"
    assert (await stage.condition(source, "Synchronizing"))["reason"] == "WaitingForManual"


async def test_a_kafka_user_that_does_not_log_in_gets_no_secret() -> None:
    stage = await OperatorStage().start(KAFKA, KAFKA_USER)
    await stage.operate(STRIMZI)
    await stage.make(KAFKA, "bus", {"kafka": {"listeners": []}})

    user = await stage.make(KAFKA_USER, "web", {}, labels={"strimzi.io/cluster": "bus"})
    await stage.wait(Ms(2 * MINUTE))

    assert (await stage.condition(user, "Ready"))["status"] == "True"
    assert "secret" not in await stage.status(user)
    assert not await stage.exists(SECRET, "web")


async def test_a_flux_kustomization_of_another_flux_waits_for_its_dependencies() -> None:
    stage = await OperatorStage().start(FLUX)
    await stage.operate(an_operator("kustomize-controller"))
    web = await stage.make(FLUX, "web", {"dependsOn": [{"name": "db"}]})
    await stage.wait(Ms(30 * SECOND))

    waiting = await stage.condition(web, "Ready")
    await stage.make(FLUX, "db", {})
    await stage.wait(Ms(30 * SECOND))

    assert waiting["message"] == "dependency 'shop/db' is not ready"
    assert (await stage.condition(web, "Ready"))["reason"] == "ReconciliationSucceeded"
    assert await stage.exists(FLUX, "db")
    assert web == Ref(FLUX, "shop", "web")
