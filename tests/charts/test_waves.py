"""Which object is in which wave, and who decides it."""

from __future__ import annotations

import pytest

from tests.charts.rendering import (
    WAVE,
    Chart,
    Rendering,
    annotations_of,
    setting,
    waves_of,
    without_wave,
)
from tidegate.documents.dump import to_json
from tidegate.model.k8s.objects import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHARED = {
    "Database *": "-3",
    "Secret *-redis": "-2",
    "PersistentVolumeClaim *-redis": "-2",
    "NetworkPolicy *-redis": "-2",
    "Service *-redis": "-2",
    "Deployment *-redis": "-2",
    "ServiceAccount *": "-2",
    "ConfigMap *-config": "-2",
    "Secret *-secret": "-2",
    "Job *-migrate-#": "-1",
    "Deployment *": "0",
    "Service *": "0",
    "Ingress *": "0",
    "HorizontalPodAutoscaler *": "0",
    "PodDisruptionBudget *": "0",
}
WAVES = {
    Chart.LARAVEL: {
        **SHARED,
        "Deployment *-queue-default": "0",
        "Deployment *-queue-mail": "0",
        "CronJob *-cron-schedule": "0",
    },
    Chart.YII2: {
        **SHARED,
        "Deployment *-queue-default": "0",
        "CronJob *-cron-report": "0",
    },
    Chart.BEDROCK: {
        **SHARED,
        "CronJob *-cron-events": "0",
        "PersistentVolumeClaim *-uploads": "0",
    },
}
"""Every object of every chart, with everything switched on."""

OFF = setting("syncWaves.enabled", value=False)
RENUMBERED: dict[str, Json] = {
    "syncWaves": {"database": -50, "redis": -30, "migration": 7, "application": 11}
}
AS_RENUMBERED = {"-3": "-50", "-2": "-30", "-1": "7", "0": "11"}
CONFIGURATION = {"ServiceAccount *", "ConfigMap *-config", "Secret *-secret"}


async def test_every_object_carries_its_wave(chart: Chart, rendering: Rendering) -> None:
    objects = await rendering.everything(chart)

    assert waves_of(objects) == WAVES[chart]


async def test_numbers_are_changed_by_group(chart: Chart, rendering: Rendering) -> None:
    objects = await rendering.everything(chart, RENUMBERED)

    expected = {name: AS_RENUMBERED[wave] for name, wave in WAVES[chart].items()}
    assert waves_of(objects) == {**expected, **dict.fromkeys(CONFIGURATION, "6")}


async def test_waves_change_nothing_but_the_annotation(chart: Chart, rendering: Rendering) -> None:
    usual = await rendering.everything(chart)
    off = await rendering.everything(chart, OFF)
    renumbered = await rendering.everything(chart, RENUMBERED)

    plain = {name: without_wave(body) for name, body in usual.items()}
    assert off == plain
    assert {name: without_wave(body) for name, body in renumbered.items()} == plain


async def test_disabled_waves_leave_no_annotations(chart: Chart, rendering: Rendering) -> None:
    objects = await rendering.everything(chart, OFF)
    none = await rendering.everything(chart, {"syncWaves": None})

    assert none == objects
    text = to_json([*objects.values()]).decode()
    assert "sync-wave" not in text
    assert '"annotations":{}' not in text
    assert '"annotations":null' not in text


async def test_rendering_twice_gives_the_same(chart: Chart, rendering: Rendering) -> None:
    first = await rendering.everything(chart)
    second = await rendering.everything(chart)

    assert first == second


PARTS = {
    "config": "ConfigMap *-config",
    "secret": "Secret *-secret",
    "serviceAccount": "ServiceAccount *",
    "deployment": "Deployment *",
    "service": "Service *",
    "cron": "CronJob *-cron-",
    "ingress": "Ingress *",
    "autoscaling": "HorizontalPodAutoscaler *",
    "podDisruptionBudget": "PodDisruptionBudget *",
}


@pytest.mark.parametrize("part", PARTS)
async def test_a_template_can_set_its_own_wave(
    part: str, chart: Chart, rendering: Rendering
) -> None:
    number = -9 if part in {"config", "secret", "serviceAccount"} else 9

    objects = await rendering.everything(chart, setting(f"{part}.syncWave", number))

    changed = {name for name, wave in waves_of(objects).items() if wave != WAVES[chart][name]}
    own_items = {name for name in changed if name.startswith(PARTS[part])}
    together = {"PersistentVolumeClaim *-uploads"} if part == "deployment" else set()
    assert own_items
    assert changed - own_items <= together
    assert {waves_of(objects)[name] for name in changed} == {str(number)}


async def test_configuration_is_applied_before_its_first_user(rendering: Rendering) -> None:
    after = await rendering.everything(Chart.LARAVEL, setting("syncWaves.migration", 5))
    none = await rendering.everything(Chart.LARAVEL, setting("migration.enabled", value=False))
    early = await rendering.everything(Chart.LARAVEL, setting("queue.syncWave", -2))

    assert [waves_of(result)["ConfigMap *-config"] for result in (after, none, early)] == [
        "-1",
        "-1",
        "-3",
    ]


MINE: dict[str, Json] = {"example.com/owner": "me", "example.com/empty": ""}
ANNOTATED = {
    "database": "Database *",
    "redis": "Deployment *-redis",
    "redis.persistence": "PersistentVolumeClaim *-redis",
    "migration": "Job *-migrate-#",
    **PARTS,
}


@pytest.mark.parametrize("part", ANNOTATED)
@pytest.mark.parametrize("waves", ["on", "off"])
async def test_annotations_of_the_user_are_kept_with_the_wave(
    part: str, waves: str, chart: Chart, rendering: Rendering
) -> None:
    mine = setting(f"{part}.annotations", MINE)

    objects = await rendering.everything(chart, mine, OFF if waves == "off" else {})

    name = next(name for name in sorted(objects) if name.startswith(ANNOTATED[part]))
    wave = {WAVE: WAVES[chart][name]} if waves == "on" else {}
    assert annotations_of(objects[name]) == {**MINE, **wave}


async def test_annotations_of_everything_are_on_everything(
    chart: Chart, rendering: Rendering
) -> None:
    objects = await rendering.everything(chart, setting("commonAnnotations", MINE))

    assert {name: annotations_of(body) for name, body in objects.items()} == {
        name: {**MINE, WAVE: wave} for name, wave in WAVES[chart].items()
    }


async def test_the_users_own_wave_on_an_object_wins(rendering: Rendering) -> None:
    unit_resource = setting("ingress.annotations", {WAVE: "4"})
    common = setting("commonAnnotations", {WAVE: "8"})

    objects = await rendering.everything(
        Chart.LARAVEL, unit_resource, common, setting("ingress.syncWave", 3)
    )
    off = await rendering.everything(Chart.LARAVEL, unit_resource, common, OFF)

    assert waves_of(objects) == {**WAVES[Chart.LARAVEL], "Ingress *": "4"}
    assert waves_of(off) == {**dict.fromkeys(WAVES[Chart.LARAVEL], "8"), "Ingress *": "4"}
