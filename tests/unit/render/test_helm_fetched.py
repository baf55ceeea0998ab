"""Dependencies that somebody else fetches: first they are told, then they are handed in."""

from __future__ import annotations

import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.unit.render.helm_charts import CHARTS, a_release, data_of, names_of, write_chart
from tidegate.errors import RenderError
from tidegate.external.worker import Workers
from tidegate.render.helm import (
    Dependency,
    DependencyError,
    FetchedChart,
    Parameter,
    Release,
    helm_workers,
    render,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one worker for all of them

NEEDS = """dependencies:
- {name: queue, version: ^0.1, repository: 'oci://charts.example/shop', alias: jobs}
- {name: mail, version: 2.x, repository: 'https://charts.example'}
"""
QUEUE = Dependency("queue", "^0.1", "oci://charts.example/shop")
MAIL = Dependency("mail", "2.x", "https://charts.example")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workers() -> AsyncIterator[Workers]:
    async with helm_workers(count=1) as running:
        yield running


def offline(root: Path, *layers: Parameter, fetched: dict[Dependency, Path]) -> Release:
    """A release of the chart `web` that goes nowhere by itself."""
    brought = tuple(FetchedChart(one, str(path)) for one, path in fetched.items())
    release = a_release("web", *layers, root=root)
    return msgspec.structs.replace(release, repositories=(), fetched=brought)


async def absent(release: Release, workers: Workers) -> tuple[Dependency, ...]:
    with pytest.raises(DependencyError) as caught:
        await render(release, workers)
    assert caught.value.code == "render.helm.remote"
    assert str(caught.value.where) == "web/Chart.yaml (dependencies)"
    return caught.value.dependencies


async def test_all_that_must_be_fetched_is_told_at_once(workers: Workers, tmp_path: Path) -> None:
    write_chart(tmp_path / "web", chart=NEEDS)

    assert await absent(offline(tmp_path, fetched={}), workers) == (QUEUE, MAIL)


async def test_what_is_still_missing_is_told(workers: Workers, tmp_path: Path) -> None:
    write_chart(tmp_path / "web", chart=NEEDS)
    release = offline(tmp_path, fetched={QUEUE: CHARTS / "queue"})

    assert await absent(release, workers) == (MAIL,)


async def test_a_dependency_is_asked_for_in_the_version_of_the_lock(
    workers: Workers, tmp_path: Path
) -> None:
    chart = write_chart(tmp_path / "web", chart=NEEDS)
    (chart / "Chart.lock").write_text(
        "dependencies:\n- {name: queue, version: 0.1.4, repository: 'oci://charts.example/shop'}\n"
    )

    wanted = await absent(offline(tmp_path, fetched={}), workers)

    assert wanted == (msgspec.structs.replace(QUEUE, version="0.1.4"), MAIL)


async def test_fetched_charts_are_rendered_with_the_chart(workers: Workers, tmp_path: Path) -> None:
    chart = write_chart(tmp_path / "source" / "web", chart=NEEDS)
    mail = write_chart(tmp_path / "mail")
    archive = tmp_path / "queue.tgz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(CHARTS / "queue", "queue")
    fetched = {QUEUE: archive, MAIL: mail}
    release = offline(tmp_path / "source", Parameter("jobs.depth", "2000000"), fetched=fetched)

    documents = await render(release, workers)

    assert data_of(documents, "shop-queue") == {"depth": "2000000"}
    assert names_of(documents) == ["ConfigMap shop-queue", "ConfigMap shop", "ConfigMap shop"]
    assert not (chart / "charts").exists(), "the source stays as it is"


async def test_fetched_and_local_dependencies_go_together(workers: Workers, tmp_path: Path) -> None:
    local = "- {name: near, version: 0.1.0, repository: 'file://../near'}\n"
    template = "kind: ConfigMap\nmetadata: {name: near}\ndata: {a: b}\n"
    write_chart(tmp_path / "near", template=template)
    write_chart(tmp_path / "web", chart=NEEDS + local)
    fetched = {QUEUE: CHARTS / "queue", MAIL: write_chart(tmp_path / "far" / "mail")}

    documents = await render(offline(tmp_path, fetched=fetched), workers)

    assert data_of(documents, "near") == {"a": "b"}
    assert data_of(documents, "shop-queue")


async def test_a_fetched_chart_of_another_name_does_not_do(
    workers: Workers, tmp_path: Path
) -> None:
    write_chart(tmp_path / "web", chart=NEEDS)
    other = write_chart(tmp_path / "other")

    with pytest.raises(RenderError) as caught:
        await render(offline(tmp_path, fetched={QUEUE: other, MAIL: other}), workers)

    assert caught.value.code == "render.helm.dependency"
    assert "`queue`" in caught.value.problem


async def test_a_link_in_a_fetched_chart_cannot_lead_out_of_it(
    workers: Workers, tmp_path: Path
) -> None:
    write_chart(tmp_path / "web", chart=NEEDS)
    bad = write_chart(tmp_path / "queue")
    (bad / "templates" / "secret.txt").symlink_to("/etc/hostname")

    with pytest.raises(RenderError) as caught:
        await render(offline(tmp_path, fetched={QUEUE: bad, MAIL: CHARTS / "queue"}), workers)

    assert caught.value.code == "render.helm.outside"
