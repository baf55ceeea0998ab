"""Which Services a container calls, and what happens to it when they have no endpoints."""

from __future__ import annotations

import pytest

from tests.support.cluster_client import require_body
from tests.support.objects import an_object
from tests.support.recorded_wording import RecordedWording
from tests.support.stage import SIMPLE, Stage, a_container, a_pod, a_probe, a_stage, at
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.batch.job import JOB_PODS, JOBS, ORPHAN_PODS
from tidegate.sandbox.controllers.selectors import ENDPOINTS
from tidegate.sandbox.node.profile import ContainerRule, ContainerSelector

SERVICE = Kind("", "v1", "Service")
CONFIG_MAP = Kind("", "v1", "ConfigMap")
SECRET = Kind("", "v1", "Secret")
JOB = Kind("batch", "v1", "Job")
BATCH = (JOBS, JOB_PODS, ORPHAN_PODS)


def a_service(name: str = "db", app: str = "db") -> JsonObject:
    ports: Json = [{"port": 5432}]
    return an_object(SERVICE, name, spec={"selector": {"app": app}, "ports": ports})


def a_task(name: str = "migrate", /, **parts: Json) -> JsonObject:
    return a_pod(name, a_container(**parts), restartPolicy="Never")


def env(name: str, value: str) -> dict[str, Json]:
    return {"env": [{"name": name, "value": value}]}


async def failure_of(stage: Stage, name: str = "migrate") -> str:
    """The message of a container that failed; empty if it did not."""
    ended = at(await stage.container(name), "state", "terminated")
    assert isinstance(ended, dict)
    return str(ended.get("message", ""))


@pytest.mark.parametrize(
    "parts",
    [
        env("DB_SERVICE", "db"),
        env("DB", "db:5432"),
        env("BROKERS", "queue.example.com:9092,db:9092"),
        env("DSN", "host=db user=shop dbname=shop"),
        env("DB", "db.shop"),
        env("DB", "db.shop.svc"),
        env("DB", "db.shop.svc.cluster.local"),
        env("DB", "db-0.db.shop.svc.cluster.local:5432"),
        env("DATABASE_URL", "postgres://user:password@db:5432/shop?sslmode=disable"),
        {"command": ["migrate", "--host=db"]},
        {"command": ["migrate", "--db-host", "db"]},
        {"args": ["-h", "db", "-p", "5432"]},
        {"command": ["sh", "-c", "nc -z db 5432"]},
    ],
)
async def test_a_task_that_names_a_service_without_endpoints_fails(parts: JsonObject) -> None:
    stage = await a_stage(ENDPOINTS)
    await stage.create(a_service(), a_task(**parts))

    await stage.at(4)

    assert await stage.phase("migrate") == "Failed"
    assert "Service shop/db" in await failure_of(stage)
    assert "dial-fails" in await failure_of(stage)
    assert await stage.events("Assumed") == [await failure_of(stage)]
    assert (await stage.printed("migrate")).endswith(": no endpoints\n")


@pytest.mark.parametrize(
    "parts",
    [
        env("DB", "database"),
        env("DB", "db.example.com"),
        env("DB", "mydb"),
        env("POSTGRES_DB", "db"),
        env("WEB_HOST", "web"),
        {"command": ["rake", "db:migrate"]},
        {"command": ["db", "migrate"]},
        env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://db:4317"),
        env("DB", "localhost:5432"),
        env("URL", "https://db:12345@shop.example.com/"),
        {"command": ["psql", "-h", "127.0.0.1"]},
        env("REDIS_HOST", "10.0.0.7"),
        env("DB_HOST", "true"),
        env("WP_HOME", "http://db"),
        env("WP_SITEURL", "http://db/wp"),
        env("APP_URL", "http://db"),
    ],
)
async def test_other_values_are_not_hosts_of_services(parts: JsonObject) -> None:
    stage = await a_stage(ENDPOINTS)
    await stage.create(a_service(), a_service("web", app="migrate"), a_task(**parts))

    await stage.at(8)

    assert await stage.phase("migrate") == "Succeeded"


@pytest.mark.parametrize(
    "parts",
    [
        env("DB", "db.shop.svc"),
        env("DATABASE_URL", "postgres://db/shop"),
        env("OTHER_APP_URL", "http://db/"),
        env("DB_HOST", "db"),
    ],
)
async def test_an_unambiguous_host_is_a_service_even_before_it_exists(parts: JsonObject) -> None:
    stage = await a_stage(ENDPOINTS)
    await stage.create(a_task(**parts))

    await stage.at(4)

    assert "Service shop/db" in await failure_of(stage)
    assert "dial-fails" in await failure_of(stage)


async def test_hosts_in_settings_count_too() -> None:
    stage = await a_stage(ENDPOINTS)
    reference: Json = {"secretKeyRef": {"name": "db", "key": "url"}}
    secret = an_object(SECRET, "db", data={"url": "cG9zdGdyZXM6Ly9kYi9zaG9w"})
    task = a_task("one", env=[{"name": "URL", "valueFrom": reference}])
    settings = an_object(CONFIG_MAP, "app", data={"DB_HOST": "db"})
    other = a_task("other", envFrom=[{"configMapRef": {"name": "app"}}])
    await stage.create(secret, settings, task, other)

    await stage.at(4)

    assert "Service shop/db" in await failure_of(stage, "one")
    assert "Service shop/db" in await failure_of(stage, "other")


async def test_a_task_whose_services_respond_completes() -> None:
    stage = await a_stage(ENDPOINTS)
    await stage.create(a_service(), a_pod("db"))
    await stage.at(10)

    await stage.create(a_task(**env("DB_HOST", "db")))
    await stage.at(19)

    assert await stage.phase("migrate") == "Succeeded"


@pytest.mark.parametrize(
    "command",
    [
        "until nc -z db 5432; do sleep 1; done",
        "while ! pg_isready -h db; do sleep 1; done",
        "curl --retry 30 http://db:5432",
        "./wait-for-it.sh db:5432 -- migrate",
    ],
    ids=["until", "while", "retry", "wait-for-it"],
)
async def test_a_command_that_waits_polls_until_the_service_answers(
    command: str, wording: RecordedWording
) -> None:
    stage = await a_stage(ENDPOINTS)
    await stage.create(a_service(), a_task(command=["sh", "-c", command]))
    waiting = await (await stage.at(60)).state("migrate")

    await stage.create(a_pod("db"))
    await stage.at(80)

    assert waiting == "running"
    assert await stage.phase("migrate") == "Succeeded"
    (event,) = await stage.events("Assumed")
    assert "dial-polls" in event
    wording(event)


async def test_a_container_that_waited_does_its_work_when_the_service_answers() -> None:
    stage = await a_stage(ENDPOINTS)
    command: Json = ["sh", "-c", "until nc -z db 5432; do sleep 1; done; migrate"]
    await stage.create(a_service(), a_task(command=command), a_pod("db"))

    before = await (await stage.at(7)).phase("migrate")
    after = await (await stage.at(10)).phase("migrate")

    assert (before, after) == ("Running", "Succeeded")


async def test_an_init_container_dials_and_a_server_does_not() -> None:
    stage = await a_stage(ENDPOINTS)
    init = a_container("wait", command=["nc", "-z", "db", "5432"])
    await stage.create(
        a_service(),
        a_pod("api", a_container(**env("DB_HOST", "db")), initContainers=[init]),
        a_pod("web", a_container(**env("DB_HOST", "db"))),
    )

    await stage.at(30)

    assert await stage.state("api", "wait") == "CrashLoopBackOff"
    assert await stage.phase("web") == "Running"
    assert await stage.condition("Ready", "web") == "True"


async def test_a_server_dials_by_a_rule_of_the_profile() -> None:
    profile = SIMPLE.with_rules([ContainerRule(ContainerSelector(name="web"), {"dials": True})])
    stage = await a_stage(ENDPOINTS, profile=profile)
    await stage.create(a_service(), a_pod("web", a_container(**env("DB_HOST", "db"))))

    crashed = await (await stage.at(30)).state()
    await stage.create(a_pod("db"))
    recovered = await (await stage.at(60)).state()

    assert (crashed, recovered) == ("CrashLoopBackOff", "running")


def a_job(limit: int, **spec: Json) -> JsonObject:
    template: Json = {"spec": {"restartPolicy": "Never", **spec}}
    return an_object(JOB, "migrate", spec={"backoffLimit": limit, "template": template})


async def conditions_of(stage: Stage) -> dict[Json, Json]:
    outcome = await stage.client.get(await stage.client.ref(a_job(1)))
    conditions = at(require_body(outcome), "status", "conditions")
    listed = conditions if isinstance(conditions, list) else []
    return {item["type"]: item["status"] for item in listed if isinstance(item, dict)}


@pytest.mark.parametrize(("limit", "verdict"), [(1, "Failed"), (6, "Complete")])
async def test_a_migration_that_is_applied_with_its_slow_database(
    limit: int, verdict: str, wording: RecordedWording
) -> None:
    profile = SIMPLE.with_rules(
        [ContainerRule(ContainerSelector(name="db"), {"ready": Ms(90 * SECOND)})]
    )
    stage = await a_stage(ENDPOINTS, *BATCH, profile=profile)
    migrate: Json = [a_container(**env("DATABASE_URL", "postgres://db:5432/shop"))]
    database = a_pod("db", a_container(readinessProbe=a_probe(periodSeconds=5)))

    await stage.create(a_service(), database, a_job(limit, containers=migrate))
    await stage.at(900)

    assert (await conditions_of(stage)).get(verdict) == "True"
    (event,) = {*await stage.events("Assumed")}
    assert "DATABASE_URL" in event
    assert "dial-fails" in event
    wording(event)


async def test_a_job_whose_secret_is_created_too_late_uses_up_its_deadline_and_no_retry() -> None:
    stage = await a_stage(ENDPOINTS, *BATCH)
    reference: Json = {"secretKeyRef": {"name": "db", "key": "url"}}
    container = a_container(env=[{"name": "URL", "valueFrom": reference}])
    template: Json = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec: Json = {"backoffLimit": 1, "activeDeadlineSeconds": 120, "template": template}
    job = an_object(JOB, "migrate", spec=spec)

    await stage.create(job)
    held = await (await stage.at(119)).events("Failed")
    await stage.at(130)

    assert held == ['Error: secret "db" not found']
    assert (await conditions_of(stage)).get("Failed") == "True"
