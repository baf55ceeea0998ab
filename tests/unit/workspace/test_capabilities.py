"""Charts that are for a cluster see that cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.helm_charts import data_of, write_chart
from tests.support.sessions import a_session
from tests.support.worlds import sandbox_world
from tidegate.model.k8s.capabilities import Capabilities
from tidegate.model.units.chart_request import DEFAULT_KUBE_VERSION
from tidegate.model.units.unit import Unit
from tidegate.source import Cache
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.rendering.render_unit import render_unit
from tidegate.workspace.rendering.result import RenderFailure, RenderResult
from tidegate.workspace.request import unit_for_path

SEES = """apiVersion: v1
kind: ConfigMap
metadata: {name: shop}
data:
  version: {{ .Capabilities.KubeVersion.Version }}
  monitors: {{ .Capabilities.APIVersions.Has "monitoring.example/v1/Monitor" | quote }}
"""
UNKNOWN = Capabilities()
CLUSTER = Capabilities("v1.30.1", ("monitoring.example/v1", "monitoring.example/v1/Monitor"))


async def render_all(
    expected: list[tuple[Unit, Capabilities]], setting: RenderSettings
) -> list[RenderResult | RenderFailure]:
    async with RenderContext(setting) as workshop:
        return [await render_unit(unit, cluster, workshop) for unit, cluster in expected]


async def test_the_version_and_the_kinds_of_a_cluster_are_used() -> None:
    cluster = await a_session(sandbox_world()).capabilities()

    assert cluster.kube_version.startswith("v1.")
    assert {"v1", "v1/Pod", "apps/v1", "apps/v1/Deployment"} <= {*cluster.api_versions}


async def test_options_take_precedence_over_the_cluster(tmp_path: Path) -> None:
    chart = await asyncio.to_thread(write_chart, tmp_path / "web", template=SEES)
    setting = RenderSettings(cache=Cache(tmp_path / "cache"))
    request = unit_for_path(str(chart), name="shop", kube_version="v1.33.0")
    open_to_all = unit_for_path(str(chart), name="shop")

    meant, usual = await render_all([(request, CLUSTER), (open_to_all, CLUSTER)], setting)

    assert isinstance(meant, RenderResult)
    assert isinstance(usual, RenderResult)
    assert data_of(meant.documents) == {"version": "v1.33.0", "monitors": "true"}
    assert data_of(usual.documents) == {"version": "v1.30.1", "monitors": "true"}


async def test_a_chart_sees_the_cluster_that_it_is_for(tmp_path: Path) -> None:
    chart = await asyncio.to_thread(write_chart, tmp_path / "web", template=SEES)
    setting = RenderSettings(cache=Cache(tmp_path / "cache"))
    plain = unit_for_path(str(chart), name="shop")

    usual, meant = await render_all([(plain, UNKNOWN), (plain, CLUSTER)], setting)

    assert isinstance(usual, RenderResult)
    assert isinstance(meant, RenderResult)
    assert data_of(usual.documents) == {"version": DEFAULT_KUBE_VERSION, "monitors": "false"}
    assert data_of(meant.documents) == {"version": "v1.30.1", "monitors": "true"}
