"""Dependencies of a chart that are not in its `charts` directory."""

from __future__ import annotations

import shutil
import tarfile
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.support.helm_charts import CHARTS, a_release, data_of, names_of, write_chart
from tidegate.errors import RenderError
from tidegate.external.worker import Workers
from tidegate.model.units.chart_request import ChartRequest, Parameter
from tidegate.render.helm import helm_workers, render

INDEX = """apiVersion: v1
entries:
  queue:
  - {apiVersion: v2, name: queue, version: 0.1.0, urls: [queue-0.1.0.tgz]}
"""
LOCAL = ("http://127.0.0.1",)

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one worker for all of them


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workers() -> AsyncIterator[Workers]:
    async with helm_workers(count=1) as running:
        yield running


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[str]:
    """A Helm repository over HTTP, with the chart `queue`."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "index.yaml").write_text(INDEX)
    with tarfile.open(folder / "queue-0.1.0.tgz", "w:gz") as archive:
        archive.add(CHARTS / "queue", "queue")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def needs(name: str, repository: str, *, version: str = ">=0.1.0", more: str = "") -> str:
    return (
        f"dependencies:\n- name: {name}\n  version: '{version}'\n"
        f"  repository: '{repository}'\n{more}"
    )


async def refused(release: ChartRequest, workers: Workers) -> RenderError:
    with pytest.raises(RenderError) as caught:
        await render(release, workers)
    return caught.value


async def test_a_dependency_comes_from_its_repository(
    workers: Workers, tmp_path: Path, repository: str
) -> None:
    chart = write_chart(tmp_path / "web", chart=needs("queue", repository, more="  alias: jobs\n"))
    release = a_release("web", Parameter("jobs.depth", "2000000"), root=tmp_path)

    documents = await render(msgspec.structs.replace(release, repositories=LOCAL), workers)

    assert data_of(documents, "shop-queue") == {"depth": "2000000"}
    assert sorted(path.name for path in chart.iterdir()) == [
        "Chart.yaml",
        "templates",
        "values.yaml",
    ], "the source stays as it is"


async def test_a_version_that_the_repository_does_not_have_is_an_error(
    workers: Workers, tmp_path: Path, repository: str
) -> None:
    write_chart(tmp_path / "web", chart=needs("queue", repository, version="^2"))
    release = a_release("web", root=tmp_path)

    error = await refused(msgspec.structs.replace(release, repositories=LOCAL), workers)

    assert error.code == "render.helm.dependency"
    assert "`queue`" in error.problem


async def test_a_lock_that_does_not_fit_is_an_error(
    workers: Workers, tmp_path: Path, repository: str
) -> None:
    chart = write_chart(tmp_path / "web", chart=needs("queue", repository))
    (chart / "Chart.lock").write_text(
        f"dependencies:\n- {{name: queue, version: 0.1.0, repository: '{repository}'}}\n"
        'digest: sha256:0000\ngenerated: "2026-01-01T00:00:00Z"\n'
    )
    release = a_release("web", root=tmp_path)

    error = await refused(msgspec.structs.replace(release, repositories=LOCAL), workers)

    assert error.code == "render.helm.dependency"
    assert str(error.location) == "web/Chart.lock (digest)"


async def test_a_declared_dependency_that_is_absent_is_an_error(workers: Workers) -> None:
    error = await refused(a_release("incomplete"), workers)

    assert error.code == "render.helm.dependency"
    assert "`db`" in error.problem


async def test_a_local_dependency_is_found_beside_the_chart(workers: Workers) -> None:
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
        ("http://127.0.0.1:1/charts", "render.helm.repository"),
        ("'@alias'", "render.helm.repository"),
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


async def test_a_repository_that_does_not_answer_is_an_error(
    workers: Workers, tmp_path: Path
) -> None:
    address = "http://127.0.0.1:1/charts"
    needs = f"dependencies:\n- name: db\n  version: 0.1.0\n  repository: {address}\n"
    write_chart(tmp_path / "web", chart=needs)
    release = a_release("web", root=tmp_path)

    error = await refused(
        msgspec.structs.replace(release, repositories=("http://127.0.0.1",)), workers
    )

    assert error.code == "render.helm.dependency"
    assert "`db`" in error.problem
    assert "no cached repository" in error.problem, "the message of Helm"
