"""Dependencies that the caller fetches: an error lists them, then they are passed in."""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from tests.support.helm_charts import CHARTS, a_release, data_of, names_of, write_chart
from tidegate.errors import RenderError
from tidegate.external.worker import Workers
from tidegate.model.units.chart_request import (
    ChartDependency,
    ChartRequest,
    FetchedChart,
    Parameter,
)
from tidegate.render.helm import DependencyError, helm_workers, render
from tidegate.render.helm.worker import chart_copy

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one worker for all of them

NEEDS = """dependencies:
- {name: queue, version: ^0.1, repository: 'oci://charts.example/shop', alias: jobs}
- {name: mail, version: 0.x, repository: 'https://charts.example'}
"""
QUEUE = ChartDependency("queue", "^0.1", "oci://charts.example/shop")
MAIL = ChartDependency("mail", "0.x", "https://charts.example")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workers() -> AsyncIterator[Workers]:
    async with helm_workers(count=1) as running:
        yield running


def offline(root: Path, *layers: Parameter, fetched: dict[ChartDependency, Path]) -> ChartRequest:
    """A release of the chart `web` that goes nowhere by itself."""
    fetched_charts = tuple(FetchedChart(item, str(path)) for item, path in fetched.items())
    release = a_release("web", *layers, root=root)
    return msgspec.structs.replace(release, fetched=fetched_charts)


async def missing_dependencies(
    release: ChartRequest, workers: Workers
) -> tuple[ChartDependency, ...]:
    with pytest.raises(DependencyError) as caught:
        await render(release, workers)
    assert caught.value.code == "render.helm.remote"
    assert str(caught.value.location) == "web/Chart.yaml (dependencies)"
    return caught.value.dependencies


async def test_all_dependencies_to_be_fetched_are_listed_at_once(
    workers: Workers, tmp_path: Path
) -> None:
    write_chart(tmp_path / "web", chart=NEEDS)

    assert await missing_dependencies(offline(tmp_path, fetched={}), workers) == (QUEUE, MAIL)


async def test_dependencies_that_are_still_missing_are_listed(
    workers: Workers, tmp_path: Path
) -> None:
    write_chart(tmp_path / "web", chart=NEEDS)
    release = offline(tmp_path, fetched={QUEUE: CHARTS / "queue"})

    assert await missing_dependencies(release, workers) == (MAIL,)


def write_lock(chart: Path) -> Path:
    """A lock for `NEEDS`, as Helm would have written it."""
    request = [
        {**_entry("queue", "^0.1", "oci://charts.example/shop"), "alias": "jobs"},
        _entry("mail", "0.x", "https://charts.example"),
    ]
    chosen = [
        _entry("queue", "0.1.4", "oci://charts.example/shop"),
        _entry("mail", "0.9.0", "https://charts.example"),
    ]
    digest = hashlib.sha256(json.dumps([request, chosen], separators=(",", ":")).encode())
    lock = {"dependencies": chosen, "digest": f"sha256:{digest.hexdigest()}"}
    (chart / "Chart.lock").write_text(json.dumps(lock))
    return chart


def _entry(name: str, version: str, repository: str) -> dict[str, str]:
    return {"name": name, "version": version, "repository": repository}


async def test_a_dependency_has_the_version_of_the_lock(workers: Workers, tmp_path: Path) -> None:
    write_lock(write_chart(tmp_path / "web", chart=NEEDS))

    expected = await missing_dependencies(offline(tmp_path, fetched={}), workers)

    assert expected == (
        msgspec.structs.replace(QUEUE, version="0.1.4"),
        msgspec.structs.replace(MAIL, version="0.9.0"),
    )


async def test_an_outdated_lock_is_refused_unless_it_is_not_checked(
    workers: Workers, tmp_path: Path
) -> None:
    chart = write_lock(write_chart(tmp_path / "web", chart=NEEDS))
    (chart / "Chart.yaml").write_text((chart / "Chart.yaml").read_text().replace("^0.1", "^0.2"))
    release = offline(tmp_path, fetched={})

    with pytest.raises(RenderError) as caught:
        await render(release, workers)
    unchecked = await missing_dependencies(
        msgspec.structs.replace(release, checks_lock=False), workers
    )

    assert caught.value.code == "render.helm.dependency"
    assert str(caught.value.location) == "web/Chart.lock (digest)"
    assert unchecked[0].version == "0.1.4"


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


async def test_fetched_and_local_dependencies_can_be_combined(
    workers: Workers, tmp_path: Path
) -> None:
    local = "- {name: near, version: 0.1.0, repository: 'file://../near'}\n"
    template = "kind: ConfigMap\nmetadata: {name: near}\ndata: {a: b}\n"
    write_chart(tmp_path / "near", template=template)
    write_chart(tmp_path / "web", chart=NEEDS + local)
    fetched = {QUEUE: CHARTS / "queue", MAIL: write_chart(tmp_path / "far" / "mail")}

    documents = await render(offline(tmp_path, fetched=fetched), workers)

    assert data_of(documents, "near") == {"a": "b"}
    assert data_of(documents, "shop-queue")


async def test_a_fetched_chart_of_another_name_is_refused(workers: Workers, tmp_path: Path) -> None:
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


async def test_a_fetched_chart_of_another_version_is_refused(
    workers: Workers, tmp_path: Path
) -> None:
    write_chart(tmp_path / "web", chart=NEEDS.replace("0.x", "^2"))
    mail = msgspec.structs.replace(MAIL, version="^2")
    old = write_chart(tmp_path / "far" / "mail")

    with pytest.raises(RenderError) as caught:
        await render(offline(tmp_path, fetched={QUEUE: CHARTS / "queue", mail: old}), workers)

    assert caught.value.code == "render.helm.dependency"
    assert "`mail`" in caught.value.problem
    assert "`^2`" in caught.value.problem


async def test_a_read_only_chart_is_copied_and_rendered(workers: Workers, tmp_path: Path) -> None:
    write_chart(tmp_path / "web", chart=NEEDS)
    read_only = tmp_path / "kept"
    shutil.copytree(CHARTS / "queue", read_only / "queue")
    write_chart(read_only / "mail")
    make_read_only(read_only)
    make_read_only(tmp_path / "web")

    copy = tmp_path / "copy"
    chart_copy.copy_chart(tmp_path / "web", copy)
    modes = [path.stat().st_mode for path in (copy, *copy.rglob("*"))]
    fetched = {QUEUE: read_only / "queue", MAIL: read_only / "mail"}
    documents = await render(offline(tmp_path, fetched=fetched), workers)

    assert all(mode & stat.S_IWUSR for mode in modes)
    assert data_of(documents, "shop-queue")


def make_read_only(tree: Path) -> None:
    """As trees in the cache are, and directories too."""
    for path in (*tree.rglob("*"), tree):
        path.chmod(0o555 if path.is_dir() else 0o444)
