"""The real helm renders, checks and packs the charts as they lie there."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from tests.charts.rendering import CHARTS, Chart, Rendering, Values, everything, laid_over, setting
from tests.support.helm_oracle import find_helm, objects_of, run_helm, template
from tidegate.documents.dump import to_json
from tidegate.model.units.chart_request import ChartRequest
from tidegate.render.helm import render

pytestmark = [pytest.mark.kube, pytest.mark.asyncio(loop_scope="module")]

EXTERNAL = setting("database.external", {"host": "db.example.com", "existingSecret": "db"})
CASES: dict[str, Values] = {
    "on": {},
    "off": setting("syncWaves.enabled", value=False),
    "renumbered": setting("syncWaves", {"database": -50, "redis": -30, "application": 11}),
    "a hook": {**setting("migration.hook", "argocd"), **EXTERNAL},
}
SCOPES = ("defaults", "everything")


@pytest.fixture(scope="session")
def helm() -> Path:
    return find_helm()


def values_file(chart: Chart, case: str, scope: str, folder: Path) -> tuple[Path, Values]:
    base = everything(chart) if scope == "everything" else {}
    values = laid_over(base, CASES[case])
    file = folder / "values.yaml"
    file.write_bytes(to_json(values))
    return file, values


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("scope", SCOPES)
async def test_helm_and_we_render_the_same(
    case: str, scope: str, chart: Chart, helm: Path, rendering: Rendering, tmp_path: Path
) -> None:
    file, values = values_file(chart, case, scope, tmp_path)
    release = ChartRequest(root=str(CHARTS), chart=str(chart), name="shop", values=values)

    theirs = template(helm, CHARTS / chart, "--values", str(file), user_home=tmp_path)
    ours = await render(release, rendering.workers)

    assert theirs.returncode == 0, theirs.stderr
    assert sorted((each.location.name, to_json(each.body)) for each in ours) == objects_of(
        theirs.stdout
    )


@pytest.mark.parametrize("scope", SCOPES)
async def test_helm_lint_finds_nothing(
    scope: str, chart: Chart, helm: Path, tmp_path: Path
) -> None:
    file, _ = values_file(chart, "on", scope, tmp_path)
    args = ("lint", "--strict", "--quiet", str(CHARTS / chart), "--values", str(file))

    text = run_helm(helm, *args, user_home=tmp_path)

    assert (text.returncode, text.stdout.strip(), text.stderr.strip()) == (0, "", "")


async def test_helm_refuses_a_migration_before_its_database_too(
    chart: Chart, helm: Path, tmp_path: Path
) -> None:
    args = ("--set", "migration.enabled=true", "--set", "migration.hook=argocd")

    text = template(helm, CHARTS / chart, *args, user_home=tmp_path)

    assert text.returncode != 0
    assert "migration.allowHookBeforeDatabase" in text.stderr


async def test_a_chart_has_a_test_that_is_no_part_of_a_rollout(
    chart: Chart, helm: Path, tmp_path: Path
) -> None:
    text = run_helm(helm, "template", "shop", str(CHARTS / chart), user_home=tmp_path)

    (test,) = [body for path, body in objects_of(text.stdout) if path.startswith("templates/tests")]
    assert b'"helm.sh/hook":"test"' in test


async def test_a_packed_chart_has_what_it_needs_and_no_more(
    chart: Chart, helm: Path, tmp_path: Path
) -> None:
    text = run_helm(
        helm, "package", str(CHARTS / chart), "--destination", str(tmp_path), user_home=tmp_path
    )

    assert text.returncode == 0, text.stderr
    with tarfile.open(tmp_path / f"{chart}-0.1.0.tgz") as archive:
        names = {name.removeprefix(f"{chart}/") for name in archive.getnames()}
    assert {"README.md", "values.schema.json", "charts/php-library/Chart.yaml"} <= names
    assert not [name for name in names if name == "given.yaml" or name.startswith("ci/")]
