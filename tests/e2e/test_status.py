"""`tidegate status` and `plan` with a real API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Site
from tests.support.tidegate_command import Tidegate
from tests.support.tidegate_runs import config_map, write_unit

pytestmark = pytest.mark.kube

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {test.tidegate.dev/outcome: never}
    spec:
      containers: [{name: web, image: web}]
"""


async def test_the_health_of_an_object_follows_the_rules_of_its_kind(
    site: Site, tmp_path: Path
) -> None:
    unit = write_unit(tmp_path / "unit", settings=config_map("settings"), web=WEB)
    kubeconfig = site.kubeconfig()
    async with site.client(kubeconfig) as client:
        place = ("--kubeconfig", kubeconfig, "--namespace", client.namespace)
        await Tidegate(tmp_path).run("sync", "--yes", unit, *place, "--timeout", "1s")

        ran = await Tidegate(tmp_path).run("status", unit, *place)

    assert ran.code == 0, ran.stderr
    (shown,) = [line for line in ran.lines if f"Deployment {client.namespace}/web" in line]
    assert {"synced", "Progressing"} <= {*shown.split()}
