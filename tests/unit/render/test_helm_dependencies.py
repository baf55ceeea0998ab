"""Dependencies of a chart that are not in its `charts` directory."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.helm_charts import CHARTS, a_release, names_of, write_chart
from tidegate.errors import RenderError
from tidegate.external.worker import Workers
from tidegate.model.units.chart_request import ChartRequest
from tidegate.render.helm import helm_workers, render

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one worker for all of them


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workers() -> AsyncIterator[Workers]:
    async with helm_workers(count=1) as running:
        yield running


def needs(name: str, repository: str, *, version: str = ">=0.1.0", more: str = "") -> str:
    return (
        f"dependencies:\n- name: {name}\n  version: '{version}'\n"
        f"  repository: '{repository}'\n{more}"
    )


async def refused(release: ChartRequest, workers: Workers) -> RenderError:
    with pytest.raises(RenderError) as caught:
        await render(release, workers)
    return caught.value


async def test_a_lock_that_does_not_fit_is_an_error(workers: Workers, tmp_path: Path) -> None:
    repository = "https://charts.example.com"
    chart = write_chart(tmp_path / "web", chart=needs("queue", repository))
    (chart / "Chart.lock").write_text(
        f"dependencies:\n- {{name: queue, version: 0.1.0, repository: '{repository}'}}\n"
        'digest: sha256:0000\ngenerated: "2026-01-01T00:00:00Z"\n'
    )
    release = a_release("web", root=tmp_path)

    error = await refused(release, workers)

    assert error.code == "render.helm.dependency"
    assert str(error.location) == "web/Chart.lock (digest)"


async def test_a_declared_dependency_that_is_absent_is_an_error(workers: Workers) -> None:
    error = await refused(a_release("incomplete"), workers)

    assert error.code == "render.helm.dependency"
    assert "`db`" in error.problem


async def test_a_local_dependency_is_found_next_to_the_chart(workers: Workers) -> None:
    documents = await render(a_release("neighbour"), workers)

    assert names_of(documents) == ["ConfigMap shop-queue", "ConfigMap shop"]
    assert not (CHARTS / "neighbour" / "charts").exists()
    assert not (CHARTS / "neighbour" / "Chart.lock").exists()


async def test_a_local_dependency_must_have_a_matching_version(
    workers: Workers, tmp_path: Path
) -> None:
    write_chart(tmp_path / "near")
    write_chart(tmp_path / "web", chart=needs("near", "file://../near", version="^2"))

    error = await refused(a_release("web", root=tmp_path), workers)

    assert error.code == "render.helm.dependency"
    assert "`^2`" in error.problem
    assert "`0.1.0`" in error.problem


async def test_a_local_dependency_needs_no_network(workers: Workers, tmp_path: Path) -> None:
    distant = "- {name: queue, version: 0.1.0, repository: 'http://127.0.0.1:1/charts'}\n"
    write_chart(tmp_path / "near")
    chart = write_chart(tmp_path / "web", chart=needs("near", "file://../near") + distant)
    shutil.copytree(CHARTS / "queue", chart / "charts" / "queue")

    documents = await render(a_release("web", root=tmp_path), workers)

    assert names_of(documents) == [
        "ConfigMap shop",
        "ConfigMap shop-queue",
        "ConfigMap shop",
    ]


@pytest.mark.parametrize(
    ("repository", "code"),
    [
        ("file://../../outside", "render.helm.outside"),
        ("file:///etc", "render.helm.outside"),
        ("file://../absent", "render.helm.dependency"),
        ("http://127.0.0.1:1/charts", "render.helm.remote"),
        ("'@alias'", "render.helm.remote"),
    ],
)
async def test_a_dependency_from_elsewhere_is_refused(
    workers: Workers, tmp_path: Path, repository: str, code: str
) -> None:
    write_chart(tmp_path / "outside")
    needs = f"dependencies:\n- name: outside\n  version: 0.1.0\n  repository: {repository}\n"
    write_chart(tmp_path / "source" / "web", chart=needs)

    error = await refused(a_release("web", root=tmp_path / "source"), workers)

    assert error.code == code
