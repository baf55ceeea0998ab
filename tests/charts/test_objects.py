"""The objects of the charts: fit for a server, named and guarded by convention."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.charts.rendering import CHARTS, Chart, Rendering, Values, annotations_of, setting
from tidegate.documents import read_documents
from tidegate.documents.dump import to_json
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.units.chart_request import ChartRequest
from tidegate.render.helm import render
from tidegate.schema.violations import SchemaViolations, find_schema_violations

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEFINITION = Path(__file__).parent / "database_definition.yaml"
LONG = "a-release-with-a-name-that-goes-on-and-on-until-it-ends-here"
VARIANTS: dict[str, Values] = {
    "as it is": {},
    "no volume": setting("redis.persistence.enabled", value=False),
    "no Redis": setting("redis.enabled", value=False),
    "a long name": setting("fullnameOverride", LONG),
    "a digest": setting("image.digest", f"sha256:{'0' * 64}"),
    "a hook": {
        "migration": {"hook": "helm"},
        "database": {"external": {"host": "db.example.com", "existingSecret": "db"}},
    },
}


def kind_of(body: JsonObject) -> Kind:
    group, _, version = get_text(body, "apiVersion").rpartition("/")
    return Kind(group, version, get_text(body, "kind"))


def misfit_of(body: JsonObject) -> SchemaViolations | None:
    (definition,) = read_documents(DEFINITION.read_text(), DEFINITION.name)
    return find_schema_violations(kind_of(body), body, crd=to_json(definition.body))


def pod_specs(objects: dict[str, JsonObject]) -> Iterator[dict[str, Json]]:
    for body in objects.values():
        for path in (("template",), ("jobTemplate", "spec", "template")):
            if spec := get_mapping(body, "spec", *path, "spec"):
                yield spec


@pytest.mark.parametrize("variant", VARIANTS)
async def test_a_server_would_take_every_object(
    variant: str, chart: Chart, rendering: Rendering
) -> None:
    objects = await rendering.everything(chart, VARIANTS[variant])

    assert {name: misfit_of(body) for name, body in objects.items()} == dict.fromkeys(
        objects, SchemaViolations()
    )


@pytest.mark.parametrize("with_postgres", [Chart.LARAVEL, Chart.YII2])
async def test_a_server_would_take_what_only_postgres_knows(
    with_postgres: Chart, rendering: Rendering
) -> None:
    postgres: Json = {"engine": "postgres", "postgres": {"schemas": ["shop"]}}

    objects = await rendering.objects(with_postgres, setting("database", postgres))

    assert get_mapping(objects["Database *"], "spec")["postgres"] == {"schemas": ["shop"]}
    assert misfit_of(objects["Database *"]) == SchemaViolations()


async def test_pods_have_no_rights_that_they_do_not_need(
    chart: Chart, rendering: Rendering
) -> None:
    objects = await rendering.everything(chart)

    specs = list(pod_specs(objects))
    contexts = [get_mapping(spec, "securityContext") for spec in specs]
    containers = [each for spec in specs for each in get_mappings(spec, "containers")]
    assert len(specs) >= 4
    assert all(context["runAsNonRoot"] is True for context in contexts)
    assert all(get_value(each, "seccompProfile", "type") == "RuntimeDefault" for each in contexts)
    assert all(spec["automountServiceAccountToken"] is False for spec in specs)
    for container in containers:
        assert get_value(container, "securityContext", "allowPrivilegeEscalation") is False
        assert get_value(container, "securityContext", "capabilities") == {"drop": ["ALL"]}
        assert get_mapping(container, "resources", "requests")
        assert get_mapping(container, "resources", "limits")


async def test_every_server_has_probes(chart: Chart, rendering: Rendering) -> None:
    objects = await rendering.everything(chart)

    for name in ("Deployment *", "Deployment *-redis"):
        (container,) = get_mappings(objects[name], "spec", "template", "spec", "containers")
        assert {"startupProbe", "readinessProbe", "livenessProbe"} <= {*container}


async def test_labels_follow_the_convention(chart: Chart, rendering: Rendering) -> None:
    objects = await rendering.everything(chart, setting("commonLabels", {"team": "shop"}))

    for body in objects.values():
        labels = get_mapping(body, "metadata", "labels")
        assert labels["app.kubernetes.io/name"] == str(chart)
        assert labels["app.kubernetes.io/instance"] == "shop"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert labels["helm.sh/chart"] == f"{chart}-0.1.0"
        assert labels["team"] == "shop"
        assert labels["app.kubernetes.io/component"]


async def test_no_workload_selects_pods_of_another_one(chart: Chart, rendering: Rendering) -> None:
    objects = await rendering.everything(chart)

    selectors = [
        to_json(get_mapping(body, "spec", "selector", "matchLabels"))
        for name, body in objects.items()
        if name.startswith("Deployment")
    ]
    assert len(set(selectors)) == len(selectors)


CHECKSUMS = ("spec", "template", "metadata", "annotations")


async def test_changed_settings_start_new_pods(chart: Chart, rendering: Rendering) -> None:
    usual = await rendering.everything(chart)
    config = await rendering.everything(chart, setting("config.data", {"A": "b"}))
    secret = await rendering.everything(chart, setting("secret.data", {"A": "b"}))

    sums = [get_mapping(result["Deployment *"], *CHECKSUMS) for result in (usual, config, secret)]
    assert sums[0]["checksum/config"] != sums[1]["checksum/config"]
    assert sums[0]["checksum/secret"] != sums[2]["checksum/secret"]


async def test_a_new_version_of_the_chart_alone_starts_no_pod(rendering: Rendering) -> None:
    objects = await rendering.everything(Chart.LARAVEL)

    versioned = {"helm.sh/chart", "app.kubernetes.io/version"}
    for body in objects.values():
        assert not versioned & {*get_mapping(body, "spec", "template", "metadata", "labels")}


async def test_values_of_the_user_win_over_the_charts_settings(rendering: Rendering) -> None:
    objects = await rendering.objects(
        Chart.LARAVEL, setting("config.data", {"LOG_CHANNEL": "daily", "APP_NAME": "Shop"})
    )

    config = get_mapping(objects["ConfigMap *-config"], "data")
    assert (config["LOG_CHANNEL"], config["APP_NAME"]) == ("daily", "Shop")
    assert config["QUEUE_CONNECTION"] == "redis"


async def test_secrets_that_exist_are_not_made(chart: Chart, rendering: Rendering) -> None:
    existing: Values = {
        "secret": {"existingSecret": "keys"},
        "redis": {"auth": {"existingSecret": "redis-password"}},
        "database": {"external": {"host": "db.example.com", "existingSecret": "db"}},
    }

    objects = await rendering.everything(chart, existing)

    named = to_json([*objects.values()]).decode()
    assert not [name for name in objects if name.startswith(("Secret", "Database"))]
    assert all(f'"name":"{name}"' in named for name in ("keys", "redis-password", "db"))


async def test_a_redis_elsewhere_takes_the_place_of_the_charts_own(
    chart: Chart, rendering: Rendering
) -> None:
    elsewhere = setting("redis.external", {"host": "redis.example.com", "port": 6380})

    objects = await rendering.everything(chart, elsewhere)

    text_of_all = to_json([*objects.values()]).decode()
    assert not [name for name in objects if "redis" in name]
    assert '"value":"redis.example.com"' in text_of_all
    assert '"value":"6380"' in text_of_all


async def test_the_password_of_redis_is_what_was_given(chart: Chart, rendering: Rendering) -> None:
    objects = await rendering.everything(chart)

    secret = get_mapping(objects["Secret *-redis"], "data")
    assert base64.b64decode(str(secret["password"])) == b"simulated"


async def test_the_autoscaler_owns_the_number_of_pods(chart: Chart, rendering: Rendering) -> None:
    scaled = await rendering.everything(chart)
    fixed = await rendering.objects(chart)

    assert "replicas" not in get_mapping(scaled["Deployment *"], "spec")
    assert get_mapping(fixed["Deployment *"], "spec")["replicas"] == 2
    assert "HorizontalPodAutoscaler *" not in fixed


async def test_names_fit_and_keep_their_ends(chart: Chart, rendering: Rendering) -> None:
    objects = await rendering.everything(chart, setting("fullnameOverride", LONG))

    names = {(name.split()[0], name.split()[1]) for name in objects}
    assert all(len(name) <= 63 for kind, name in names)
    assert all(len(name) <= 52 for kind, name in names if kind == "CronJob")
    assert any(name.endswith("-redis") for _, name in names)
    assert get_text(objects[f"Database {LONG}"], "spec", "secretName") == f"{LONG}-db-credentials"


async def test_no_object_has_an_empty_list_of_annotations(
    chart: Chart, rendering: Rendering
) -> None:
    objects = await rendering.objects(chart, setting("syncWaves.enabled", value=False))

    assert not any("annotations" in get_mapping(body, "metadata") for body in objects.values())
    assert not any(annotations_of(body) for body in objects.values())


async def test_a_chart_may_be_part_of_another_under_another_name(
    chart: Chart, rendering: Rendering, tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(CHARTS / chart, whole / "charts" / chart)
    alias = f"  - {{name: {chart}, version: 0.1.0, alias: front}}\n"
    head = "apiVersion: v2\nname: whole\nversion: 0.1.0\ndependencies:\n"
    (whole / "Chart.yaml").write_text(head + alias)

    result = await render(
        ChartRequest(root=str(tmp_path), chart="whole", name="shop"), rendering.workers
    )

    alone = await rendering.objects(chart)
    assert sorted(str(each.body["kind"]) for each in result) == sorted(
        str(body["kind"]) for body in alone.values()
    )
