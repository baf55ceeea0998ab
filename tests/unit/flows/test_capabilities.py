"""Charts that are for a cluster see that cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.render.helm_charts import data_of, write_chart
from tidegate.flows.render import Wanted, for_cluster, render_all
from tidegate.flows.rendering import Rendered, Setting
from tidegate.flows.rendering.capabilities import Capabilities, ask_capabilities
from tidegate.render.helm.release import DEFAULT_KUBE_VERSION
from tidegate.source import Cache
from tidegate.testing import sandbox_world
from tidegate.world.exchange import Exchange

SEES = """apiVersion: v1
kind: ConfigMap
metadata: {name: shop}
data:
  version: {{ .Capabilities.KubeVersion.Version }}
  monitors: {{ .Capabilities.APIVersions.Has "monitoring.example/v1/Monitor" | quote }}
"""


async def test_a_cluster_says_its_version_and_its_kinds() -> None:
    cluster = await ask_capabilities(Exchange(sandbox_world()))

    assert cluster.kube_version.startswith("v1.")
    assert {"v1", "v1/Pod", "apps/v1", "apps/v1/Deployment"} <= {*cluster.api_versions}


def test_what_the_user_gives_wins_over_what_the_cluster_says() -> None:
    cluster = Capabilities("v1.30.1", ("a/v1",))

    asked = for_cluster(Wanted(what=".", kube_version="v1.33.0"), cluster)
    open_to_all = for_cluster(Wanted(what="."), cluster)

    assert (asked.kube_version, asked.api_versions) == ("v1.33.0", ("a/v1",))
    assert (open_to_all.kube_version, open_to_all.api_versions) == ("v1.30.1", ("a/v1",))


async def test_a_chart_sees_the_cluster_that_it_is_for(tmp_path: Path) -> None:
    chart = await asyncio.to_thread(write_chart, tmp_path / "web", template=SEES)
    setting = Setting(cache=Cache(tmp_path / "cache"))
    plain = Wanted(what=str(chart), name="shop")
    cluster = Capabilities("v1.30.1", ("monitoring.example/v1", "monitoring.example/v1/Monitor"))

    usual, meant = await render_all([plain, for_cluster(plain, cluster)], setting)

    assert isinstance(usual, Rendered)
    assert isinstance(meant, Rendered)
    assert data_of(usual.documents) == {"version": DEFAULT_KUBE_VERSION, "monitors": "false"}
    assert data_of(meant.documents) == {"version": "v1.30.1", "monitors": "true"}
