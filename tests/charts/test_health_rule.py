"""The rule for Argo CD: a Database is healthy when its operator says so, and not before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.charts.rendering import CHARTS, Chart
from tests.support.tidegate_command import Tidegate

RULES = CHARTS / "health" / "kinda.rocks.yaml"
HEAD = "apiVersion: kinda.rocks/v1beta1\nkind: Database\nmetadata: {name: shop, namespace: shop}\n"


@pytest.mark.parametrize(
    ("status", "health"),
    [
        ("", "Progressing"),
        ("status: {}\n", "Progressing"),
        ("status: {status: false}\n", "Progressing"),
        ('status: {status: "true"}\n', "Progressing"),
        ("status: {status: true}\n", "Healthy"),
    ],
)
async def test_a_database_is_healthy_when_its_status_is_true(
    status: str, health: str, tmp_path: Path
) -> None:
    file = tmp_path / "database.yaml"
    file.write_text(HEAD + status)

    ran = await Tidegate(tmp_path).run("health", file, "--health-rules", RULES)

    assert f" {health} " in ran.stdout, ran.stderr


def test_the_readme_contains_the_health_rule(chart: Chart) -> None:
    readme = (CHARTS / chart / "README.md").read_text()

    assert f"```yaml\n{RULES.read_text()}```" in readme
