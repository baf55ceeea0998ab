"""The migration: once for each revision, and never without what it needs."""

from __future__ import annotations

import pytest

from tests.charts.rendering import (
    WAVE,
    Chart,
    Rendering,
    Values,
    annotations_of,
    laid_over,
    setting,
)
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject

pytestmark = pytest.mark.asyncio(loop_scope="module")

ON = setting("migration.enabled", value=True)
EXTERNAL = setting(
    "database.external", {"host": "db.example.com", "existingSecret": "db-credentials"}
)
COMMANDS = {
    Chart.LARAVEL: ["php", "artisan", "migrate", "--force"],
    Chart.YII2: ["php", "yii", "migrate", "--interactive=0"],
    Chart.BEDROCK: ["wp", "core", "update-db"],
}
HOOK = "argocd.argoproj.io/hook"
POLICY = "argocd.argoproj.io/hook-delete-policy"
HELM_HOOK = "helm.sh/hook"


async def migration(rendering: Rendering, chart: Chart, *values: Values) -> JsonObject:
    objects = await rendering.everything(chart, *values)
    (job,) = (body for name, body in objects.items() if name.startswith("Job"))
    return job


def name_of(body: JsonObject) -> str:
    return get_text(body, "metadata", "name")


def container_of(job: JsonObject) -> dict[str, Json]:
    (container,) = get_mappings(job, "spec", "template", "spec", "containers")
    return container


def variables_of(job: JsonObject) -> dict[str, dict[str, Json]]:
    return {get_text(each, "name"): each for each in get_mappings(container_of(job), "env")}


def sources_of(job: JsonObject) -> list[str]:
    """The ConfigMaps and Secrets that a pod takes all its variables from."""
    mappings = get_mappings(container_of(job), "envFrom")
    return [get_text(get_value(each, kind), "name") for each in mappings for kind in each]


async def test_the_migration_runs_the_command_of_the_framework(
    chart: Chart, rendering: Rendering
) -> None:
    job = await migration(rendering, chart)

    assert container_of(job)["command"] == COMMANDS[chart]


async def test_only_wordpress_disables_the_migration_by_default(
    chart: Chart, rendering: Rendering
) -> None:
    objects = await rendering.objects(chart)

    assert ("Job *-migrate-#" in objects) is (chart is not Chart.BEDROCK)


CHANGES: dict[str, tuple[Values, bool]] = {
    "nothing": ({}, False),
    "another image": (setting("image.tag", "2.0.0"), True),
    "another command": (setting("migration.args", ["--pretend"]), True),
    "another variable": (setting("extraEnv", [{"name": "A", "value": "b"}]), True),
    "another deadline": (setting("migration.activeDeadlineSeconds", 60), True),
    "a revision": (setting("migration.revision", "2"), True),
    "another wave": (setting("syncWaves.migration", 3), False),
    "no waves": (setting("syncWaves.enabled", value=False), False),
    "an annotation": (setting("migration.annotations", {"a": "b"}), False),
    "a setting of the application": (setting("config.data", {"A": "b"}), False),
    "more replicas": (setting("replicaCount", 9), False),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_changed_migration_has_another_name(
    change: str, chart: Chart, rendering: Rendering
) -> None:
    values, is_other = CHANGES[change]

    before = await migration(rendering, chart)
    after = await migration(rendering, chart, values)

    assert (name_of(before) != name_of(after)) is is_other
    assert is_other or before["spec"] == after["spec"]


async def test_a_finished_job_is_kept_by_default(rendering: Rendering) -> None:
    job = await migration(rendering, Chart.LARAVEL)
    result = await migration(
        rendering, Chart.LARAVEL, setting("migration.ttlSecondsAfterFinished", 0)
    )

    assert "ttlSecondsAfterFinished" not in get_mapping(job, "spec")
    assert get_mapping(result, "spec")["ttlSecondsAfterFinished"] == 0


async def test_its_pod_cannot_start_without_the_credentials(
    chart: Chart, rendering: Rendering
) -> None:
    job = await migration(rendering, chart)

    named = [get_value(each, "valueFrom") for each in variables_of(job).values()]
    credentials = [
        reference
        for source in named
        if isinstance(source, dict)
        for reference in source.values()
        if isinstance(reference, dict) and reference["name"] == f"shop-{chart}-db-credentials"
    ]
    assert sorted(str(each["key"]) for each in credentials) == [
        "DB",
        "DB_CONN",
        "DB_PORT",
        "PASSWORD",
        "USER",
    ]
    assert not any("optional" in each for each in credentials)


@pytest.mark.parametrize("chart_", [Chart.LARAVEL, Chart.YII2])
async def test_postgres_uses_other_secret_keys(chart_: Chart, rendering: Rendering) -> None:
    job = await migration(rendering, chart_, setting("database.engine", "postgres"))

    keys = {
        get_text(each, "valueFrom", "secretKeyRef", "key") for each in variables_of(job).values()
    }
    assert {"POSTGRES_DB", "POSTGRES_USER", "POSTGRES_PASSWORD"} <= keys


async def test_an_external_database_has_a_host_and_a_secret(
    chart: Chart, rendering: Rendering
) -> None:
    job = await migration(rendering, chart, EXTERNAL)

    variables = variables_of(job)
    host = "DB_SERVER" if chart is Chart.BEDROCK else "DB_HOST"
    assert variables[host]["value"] == "db.example.com"
    assert variables["DB_PORT"]["value"] == "3306"
    assert get_value(variables["DB_PASSWORD"], "valueFrom", "secretKeyRef") == {
        "name": "db-credentials",
        "key": "password",
    }


async def test_a_hook_has_its_own_configuration_one_wave_earlier(
    chart: Chart, rendering: Rendering
) -> None:
    objects = await rendering.everything(chart, EXTERNAL, setting("migration.hook", "argocd"))

    hooks = {name: body for name, body in objects.items() if HOOK in annotations_of(body)}
    waves = {name: annotations_of(body)[WAVE] for name, body in hooks.items()}
    assert waves == {
        "ServiceAccount *-migrate": "-2",
        "ConfigMap *-migrate-config": "-2",
        "Secret *-migrate-secret": "-2",
        "Job *-migrate": "-1",
    }
    assert {
        (annotations_of(body)[HOOK], annotations_of(body)[POLICY]) for body in hooks.values()
    } == {("PreSync", "BeforeHookCreation")}
    assert sources_of(hooks["Job *-migrate"]) == [
        f"shop-{chart}-migrate-config",
        f"shop-{chart}-migrate-secret",
    ]
    assert get_text(hooks["Job *-migrate"], "spec", "template", "spec", "serviceAccountName") == (
        f"shop-{chart}-migrate"
    )
    assert hooks["ConfigMap *-migrate-config"]["data"] == objects["ConfigMap *-config"]["data"]
    assert hooks["Secret *-migrate-secret"]["data"] == objects["Secret *-secret"]["data"]


async def test_a_helm_hook_has_weights_in_the_place_of_waves(
    chart: Chart, rendering: Rendering
) -> None:
    off = setting("syncWaves.enabled", value=False)

    objects = await rendering.everything(chart, EXTERNAL, setting("migration.hook", "helm"), off)

    weights = {
        name: annotations_of(body)["helm.sh/hook-weight"]
        for name, body in objects.items()
        if annotations_of(body).get(HELM_HOOK) == "pre-install,pre-upgrade"
    }
    assert weights == {
        "ServiceAccount *-migrate": "-1",
        "ConfigMap *-migrate-config": "-1",
        "Secret *-migrate-secret": "-1",
        "Job *-migrate": "0",
    }


async def test_an_existing_secret_and_account_are_not_copied_for_a_hook(
    rendering: Rendering,
) -> None:
    existing = laid_over(
        setting("secret.existingSecret", "keys"),
        setting("serviceAccount", {"create": False, "name": "runner"}),
    )

    objects = await rendering.everything(
        Chart.LARAVEL, EXTERNAL, existing, setting("migration.hook", "argocd")
    )

    job = objects["Job *-migrate"]
    assert {name for name in objects if "migrate" in name} == {
        "Job *-migrate",
        "ConfigMap *-migrate-config",
    }
    assert sources_of(job) == ["shop-laravel-migrate-config", "keys"]
    assert get_text(job, "spec", "template", "spec", "serviceAccountName") == "runner"


async def test_existing_hook_configuration_is_kept(rendering: Rendering) -> None:
    mine: dict[str, Json] = {HOOK: "PreSync", POLICY: "HookSucceeded", "team": "shop"}
    allowed = setting("migration.allowHookBeforeDatabase", value=True)

    job = await migration(rendering, Chart.LARAVEL, setting("migration.annotations", mine), allowed)

    assert annotations_of(job) == {**mine, WAVE: "-1"}


async def test_a_hook_does_not_wait_for_a_later_password(rendering: Rendering) -> None:
    hook = await migration(rendering, Chart.LARAVEL, EXTERNAL, setting("migration.hook", "argocd"))
    plain = await migration(rendering, Chart.LARAVEL)

    keys = [
        get_value(variables_of(job)["REDIS_PASSWORD"], "valueFrom", "secretKeyRef", "optional")
        for job in (hook, plain)
    ]
    assert keys == [True, None]
