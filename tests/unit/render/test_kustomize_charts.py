"""Charts that overlays inflate, rendered by our workers and without any helm."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.helm_charts import CHARTS, data_of, names_of
from tests.support.inflated_charts import REFUSED, InflatedCase
from tidegate.documents import Document
from tidegate.errors import RenderError
from tidegate.external.process import Limits
from tidegate.external.worker import Workers
from tidegate.model.times import Ms
from tidegate.model.units.rendering import FetchedTree, HelmOptions, Overlay
from tidegate.render.helm import helm_workers
from tidegate.render.kustomize import RemoteError, build
from tidegate.render.kustomize.charts import parse_helm_call
from tidegate.render.scratch import MEMORY, PREFIX

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one worker for all of them

QUEUE = {"app/charts/queue": "queue"}
FAR = "helmCharts:\n- {name: queue, releaseName: shop, version: 0.1.0, repo: 'oci://far.example/c/'}\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workers() -> AsyncIterator[Workers]:
    async with helm_workers(count=1) as running:
        yield running


async def inflated(root: Path, workers: Workers, case: InflatedCase) -> tuple[Document, ...]:
    await asyncio.to_thread(case.write, root)
    return await build(Overlay(root=root, path="app", helm=HelmOptions()), workers=workers)


async def refused(root: Path, workers: Workers, case: InflatedCase) -> RenderError:
    with pytest.raises(RenderError) as caught:
        await inflated(root, workers, case)
    return caught.value


async def test_a_chart_is_inflated_without_helm(tmp_path: Path, workers: Workers) -> None:
    text = "helmCharts:\n- {name: queue, releaseName: shop, valuesInline: {depth: 7}}\n"

    documents = await inflated(tmp_path, workers, InflatedCase(text, charts=QUEUE))

    assert data_of(documents, "shop-queue") == {"depth": "7"}
    assert str(documents[0].location) == "app/kustomization.yaml"


async def test_a_chart_is_rendered_with_the_versions_of_the_cluster(
    tmp_path: Path, workers: Workers
) -> None:
    InflatedCase("helmCharts: [{name: web, releaseName: shop}]").write(tmp_path)
    helm = HelmOptions(kube_version="1.33.1", api_versions=("monitoring.coreos.com/v1",))

    documents = await build(Overlay(root=tmp_path, path="app", helm=helm), workers=workers)

    data = data_of(documents, "shop-web")
    assert (data["kube"], data["monitoring"]) == ("v1.33.1", "true")


async def test_a_release_without_a_name_has_the_same_name_each_time(
    tmp_path: Path, workers: Workers
) -> None:
    case = InflatedCase("helmCharts: [{name: queue}]", charts=QUEUE)

    documents = await inflated(tmp_path, workers, case)

    assert names_of(documents) == ["ConfigMap queue-0-queue"]


async def test_a_name_template_is_refused_unless_it_is_a_plain_name(
    tmp_path: Path, workers: Workers
) -> None:
    plain = InflatedCase("helmCharts: [{name: queue, nameTemplate: jobs}]", charts=QUEUE)
    made = InflatedCase(
        "helmCharts: [{name: queue, nameTemplate: 'j-{{ randAlpha 5 }}'}]", charts=QUEUE
    )

    documents = await inflated(tmp_path / "plain", workers, plain)
    error = await refused(tmp_path / "made", workers, made)

    assert names_of(documents) == ["ConfigMap jobs-queue"]
    assert (error.code, str(error.location)) == ("render.kustomize.helm", "app/charts/queue")


async def test_charts_to_be_fetched_are_listed_with_their_repository(
    tmp_path: Path, workers: Workers
) -> None:
    error = await refused(tmp_path, workers, InflatedCase(FAR, charts={}))

    assert isinstance(error, RemoteError)
    (reference,) = error.references
    chart = error.charts[reference]
    assert (chart.repository, chart.name, chart.version) == (
        "oci://far.example/c/",
        "queue",
        "0.1.0",
    )
    assert "oci://far.example/c/queue:0.1.0" in error.problem


async def test_a_fetched_chart_is_inflated(tmp_path: Path, workers: Workers) -> None:
    InflatedCase(FAR, charts={}).write(tmp_path)
    fetched = {"oci://far.example/c/queue:0.1.0": FetchedTree(CHARTS, "queue")}
    overlay = Overlay(root=tmp_path, path="app", helm=HelmOptions(), fetched=fetched)

    documents = await build(overlay, workers=workers)

    assert names_of(documents) == ["ConfigMap shop-queue"]
    assert not (tmp_path / "app" / "charts").exists(), "the source stays as it is"


LOCATIONS = {
    "a dependency that is not in the chart": (
        "render.helm.dependency",
        "app/charts/neighbour/Chart.yaml (dependencies)",
    ),
    "a template that cannot be rendered": (
        "render.helm.template",
        "app/charts/broken/templates/config.yaml:9:7",
    ),
    "values that do not fit": (
        "render.helm.schema",
        "app/charts/schema/values.schema.json (replicas)",
    ),
    "a name that Helm does not take": ("render.helm.name", "app/charts/web"),
    "a Kubernetes that the chart does not want": (
        "render.helm.kube-version",
        "app/charts/picky/Chart.yaml",
    ),
    "values that are no mapping": ("render.helm.values", "app/v.yaml"),
    "a library": ("render.helm.type", "app/charts/library/Chart.yaml"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_an_error_of_a_chart_is_the_same_as_for_any_chart(
    name: str, tmp_path: Path, workers: Workers
) -> None:
    error = await refused(tmp_path, workers, REFUSED[name])

    assert (error.code, str(error.location)) == LOCATIONS[name]
    assert "tidegate-scratch" not in str(error)
    assert "tree/" not in str(error)


async def test_charts_are_refused_without_helm_options_or_workers(
    tmp_path: Path, workers: Workers
) -> None:
    InflatedCase("helmCharts: [{name: queue}]", charts=QUEUE).write(tmp_path)

    with pytest.raises(RenderError) as without_options:
        await build(Overlay(root=tmp_path, path="app"), workers=workers)
    with pytest.raises(RenderError) as without_workers:
        await build(Overlay(root=tmp_path, path="app", helm=HelmOptions()))

    assert (without_options.value.code, without_workers.value.code) == (
        "render.kustomize.helm",
    ) * 2


async def test_overlays_share_a_worker(tmp_path: Path, workers: Workers) -> None:
    text = "helmCharts: [{name: queue, releaseName: r%s}]"
    cases = [InflatedCase(text % number, charts=QUEUE) for number in range(3)]

    async with asyncio.TaskGroup() as group:
        builds = [
            group.create_task(inflated(tmp_path / str(number), workers, case), name=f"{number}")
            for number, case in enumerate(cases)
        ]

    assert [names_of(build.result()) for build in builds] == [
        [f"ConfigMap r{number}-queue"] for number in range(3)
    ]


async def test_a_chart_that_never_ends_is_stopped_and_leaves_nothing(tmp_path: Path) -> None:
    case = InflatedCase(
        "helmCharts: [{name: endless, releaseName: shop}]",
        {"app/charts/endless/values.yaml": "{}\n"},
        charts={"app/charts/endless": "endless"},
    )

    before = {*MEMORY.glob(f"{PREFIX}{os.getpid()}-*")}

    async with helm_workers(count=1, limits=Limits(time=Ms(500))) as hasty:
        error = await refused(tmp_path, hasty, case)

    assert error.code == "render.helm.timeout"
    assert str(error.location) == "app/charts/endless"
    assert {*MEMORY.glob(f"{PREFIX}{os.getpid()}-*")} == before


@pytest.mark.parametrize(
    "args",
    [
        ["pull", "--untar", "web"],
        ["template", "shop", "/s/tree/web", "--post-renderer", "/bin/sh"],
        ["install", "shop"],
        [""],
    ],
)
async def test_every_call_of_helm_but_template_is_refused(args: list[str]) -> None:
    with pytest.raises(RenderError) as caught:
        parse_helm_call(args, Path("/s"))

    assert caught.value.code == "render.kustomize.helm"
