"""What the charts do not render: with a sentence that says why and what to set."""

from __future__ import annotations

import pytest

from tests.charts.rendering import WAVE, Chart, Rendering, Values, defaults, laid_over, setting
from tests.support.recorded_wording import RecordedWording
from tidegate.errors import RenderError
from tidegate.model.k8s.objects import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")

ON = setting("migration.enabled", value=True)
EXTERNAL: Values = setting(
    "database.external", {"host": "db.example.com", "existingSecret": "db-credentials"}
)
NO_WAVES = setting("syncWaves.enabled", value=False)
HOOK_SETTINGS = (
    "migration.hook",
    "migration.annotations",
    "database.external.host",
    "migration.allowHookBeforeDatabase",
)


def annotated(key: str, value: Json) -> Values:
    return setting("migration.annotations", {key: value})


EARLY_HOOKS = {
    "an Argo CD hook": setting("migration.hook", "argocd"),
    "a Helm hook": setting("migration.hook", "helm"),
    "Argo CD's annotation": annotated("argocd.argoproj.io/hook", "PreSync"),
    "one of several of Argo CD": annotated("argocd.argoproj.io/hook", "PreSync,PostSync"),
    "Helm's annotation": annotated("helm.sh/hook", "post-install,pre-upgrade"),
}
LATER_HOOKS = {
    "in its wave": annotated("argocd.argoproj.io/hook", "Sync"),
    "last": annotated("argocd.argoproj.io/hook", "PostSync"),
    "last by Helm": annotated("helm.sh/hook", "post-install,post-upgrade"),
}
WRONG_WAVES: dict[str, Values] = {
    "the migration with its database": setting("syncWaves.database", -1),
    "the migration before its database": setting("syncWaves", {"database": 4, "application": 9}),
    "the migration before it by an annotation": annotated(WAVE, "-7"),
    "the migration with Redis": setting("syncWaves.redis", -1),
    "the application before its database": setting("syncWaves.application", -4),
    "a cron job before its Redis": setting("cron.syncWave", -3),
    "configuration after its user": setting("config.syncWave", 0),
    "a wave of the user that is none": setting(
        "ingress", {"enabled": True, "annotations": {WAVE: "first"}}
    ),
}


async def refusal(rendering: Rendering, chart: Chart, *values: Values) -> str:
    with pytest.raises(RenderError) as caught:
        await rendering.objects(chart, *values)
    return caught.value.problem


@pytest.mark.parametrize("hook", EARLY_HOOKS)
@pytest.mark.parametrize("waves", [{}, NO_WAVES], ids=["on", "off"])
async def test_a_migration_before_its_database_is_refused(
    hook: str, waves: Values, chart: Chart, rendering: Rendering
) -> None:
    problem = await refusal(rendering, chart, ON, EARLY_HOOKS[hook], waves)

    assert [name for name in HOOK_SETTINGS if name not in problem] == []


@pytest.mark.parametrize("hook", EARLY_HOOKS)
async def test_an_existing_database_is_accepted(
    hook: str, chart: Chart, rendering: Rendering
) -> None:
    allowed = setting("migration.allowHookBeforeDatabase", value=True)

    outside = await rendering.objects(chart, laid_over(ON, EARLY_HOOKS[hook]), EXTERNAL)
    forced = await rendering.objects(chart, laid_over(ON, EARLY_HOOKS[hook]), allowed)

    assert "Database *" not in outside
    assert {"Job *-migrate", "Database *"} <= {*forced}


@pytest.mark.parametrize("hook", LATER_HOOKS)
async def test_a_hook_that_runs_later_is_taken(
    hook: str, chart: Chart, rendering: Rendering
) -> None:
    objects = await rendering.objects(chart, laid_over(ON, LATER_HOOKS[hook]))

    assert {"Job *-migrate", "Database *"} <= {*objects}


@pytest.mark.parametrize("case", WRONG_WAVES)
async def test_an_impossible_order_is_rejected(
    case: str, chart: Chart, rendering: Rendering, wording: RecordedWording
) -> None:
    wording(await refusal(rendering, chart, ON, WRONG_WAVES[case]))


async def test_without_waves_any_order_is_accepted(chart: Chart, rendering: Rendering) -> None:
    objects = await rendering.objects(chart, ON, setting("syncWaves.database", 5), NO_WAVES)

    assert "Database *" in objects


async def test_a_database_elsewhere_has_no_wave_to_be_compared_with(
    chart: Chart, rendering: Rendering
) -> None:
    objects = await rendering.objects(chart, ON, setting("syncWaves.database", 5), EXTERNAL)

    assert "Database *" not in objects


async def test_an_external_database_needs_its_secret(
    chart: Chart, rendering: Rendering, wording: RecordedWording
) -> None:
    host = setting("database.external.host", "db.example.com")

    problem = await refusal(rendering, chart, host)

    assert "database.external.existingSecret" in problem
    wording(problem)


MISTAKES: dict[str, tuple[Values, str]] = {
    "a wave in words": (setting("syncWaves.migration", "late"), "syncWaves"),
    "a wave in quotes": (setting("syncWaves.database", "-3"), "syncWaves"),
    "half a wave": (setting("syncWaves.redis", 1.5), "syncWaves"),
    "a template's own wave in words": (setting("ingress.syncWave", "late"), "ingress"),
    "a key that is not known": ({"migrations": {}}, "migrations"),
    "a key in a part that is not known": (setting("syncWaves.redsi", -2), "redsi"),
    "an engine that is not known": (setting("database.engine", "oracle"), "engine"),
    "a hook that is not known": (setting("migration.hook", "flux"), "hook"),
    "an annotation that is no text": (setting("service.annotations", {"a": 1}), "annotations"),
    "a cron job without a schedule": (
        setting("cron.jobs", {"report": {"command": ["a"]}}),
        "schedule",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
async def test_the_schema_refuses_mistakes(case: str, chart: Chart, rendering: Rendering) -> None:
    values, field = MISTAKES[case]

    with pytest.raises(RenderError) as caught:
        await rendering.objects(chart, values)

    assert caught.value.code == "render.helm.schema"
    assert field in str(caught.value)


async def test_every_default_may_be_written_again(chart: Chart, rendering: Rendering) -> None:
    assert await rendering.objects(chart, defaults(chart)) == await rendering.objects(chart)
