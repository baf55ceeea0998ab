"""The status of a unit, evaluated by rows and by scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.unit_trees import make_unit_tree
from tidegate.clusters.sandboxes import SimulationConfig
from tidegate.clusters.session import ClusterTargets, open_session
from tidegate.inspection.diff import plan_units
from tidegate.inspection.status import read_status
from tidegate.model.k8s.verdict import Health
from tidegate.workspace.rendering.context import user_render_settings
from tidegate.workspace.request import unit_for_path

DATABASE = """
apiVersion: kinda.rocks/v1beta1
kind: Database
metadata: {name: shop-db, namespace: default}
spec: {secretName: shop-login, instance: main}
"""
GIVEN = """
given:
  operators: [db-operator]
  objects:
  - {apiVersion: kinda.rocks/v1beta1, kind: Database, metadata: {name: shop-db, namespace: default}}
"""
RULE = """
resource.customizations.health.kinda.rocks_Database: |
  return {status = "Suspended", message = "said by a script"}
"""


@pytest.mark.parametrize(
    ("rules", "health", "message"),
    [
        ("", Health.PROGRESSING, "status.status"),
        (RULE, Health.SUSPENDED, "said by a script"),
    ],
)
async def test_scripts_take_precedence_over_rows(
    tmp_path: Path, rules: str, health: Health, message: str
) -> None:
    for name, text in (("unit/db", DATABASE), ("given", GIVEN), ("rules", rules)):
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    target = ClusterTargets(
        simulation=SimulationConfig(scenario=tmp_path / "given.yaml"),
        health_rules=tmp_path / "rules.yaml" if rules else None,
    )

    async with open_session(target, user_render_settings()) as session:
        unit_tree = await make_unit_tree(unit_for_path(str(tmp_path / "unit")), session)
        (unit_status,) = await read_status(await plan_units([unit_tree], session), session)

    assert unit_status.verdict.health is health
    assert message in unit_status.verdict.message
