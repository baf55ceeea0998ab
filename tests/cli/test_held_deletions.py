"""Objects that `sync` deletes and that a finalizer of another controller holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.tidegate_runs import config_map, write_unit
from tidegate.model.k8s.kinds import CONFIG_MAP, DEPLOYMENT
from tidegate.model.k8s.objects import JsonObject

HOLD = "example.org/hold"
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: default}}
spec:
  selector: {{matchLabels: {{app: {0}}}}}
  template:
    metadata: {{labels: {{app: {0}}}}}
    spec: {{containers: [{{name: web, image: shop/web:1}}]}}
"""
HELD: JsonObject = {"metadata": {"finalizers": [HOLD]}}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PersistentSandbox:
    return PersistentSandbox.make(tmp_path, monkeypatch)


def test_a_pruned_object_that_a_finalizer_holds_is_named_with_it(
    cluster: PersistentSandbox, tmp_path: Path
) -> None:
    unit = write_unit(tmp_path / "shop", a=config_map("a"), b=config_map("b"))
    assert cluster.sync(unit).code == 0
    cluster.patch(CONFIG_MAP, "default", "b", HELD)
    (unit / "b.yaml").unlink()

    ran = cluster.sync(unit, "--prune", "--timeout", "30s")

    assert ran.code == 8
    assert "ConfigMap default/b" in ran.stdout + ran.stderr
    assert HOLD in ran.stdout + ran.stderr


def test_a_recreated_object_that_a_finalizer_holds_is_named_with_it(
    cluster: PersistentSandbox, tmp_path: Path
) -> None:
    unit = write_unit(tmp_path / "shop", web=WEB.format("web"))
    assert cluster.sync(unit).code == 0
    cluster.patch(DEPLOYMENT, "default", "web", HELD)
    write_unit(unit, web=WEB.format("other"))

    ran = cluster.sync(unit, "--force", "--timeout", "30s")

    assert ran.code == 8
    assert "Deployment default/web" in ran.stdout + ran.stderr
    assert HOLD in ran.stdout + ran.stderr
