"""Charts in overlays: our workers return what kustomize returns with the real helm."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.helm_oracle import find_helm
from tests.support.inflated_charts import INFLATED, REFUSED, InflatedCase
from tests.support.overlays import texts
from tidegate.documents import read_documents
from tidegate.errors import RenderError
from tidegate.external.worker import Workers
from tidegate.model.k8s.objects import Json
from tidegate.model.units.rendering import HelmOptions, Overlay
from tidegate.render.helm import helm_workers
from tidegate.render.kustomize import build, find_tool

pytestmark = [pytest.mark.kube, pytest.mark.asyncio(loop_scope="module")]

OPTIONS = ("--helm-kube-version", "1.35.0", "--helm-api-versions", "example.dev/v1")
HELM = HelmOptions(kube_version="1.35.0", api_versions=("example.dev/v1",))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workers() -> AsyncIterator[Workers]:
    async with helm_workers(count=1) as running:
        yield running


def real_output(case: InflatedCase, root: Path) -> list[Json]:
    case.write(root)
    argv = [*find_tool().argv, "app", "--enable-helm", "--helm-command", str(find_helm())]
    ran = subprocess.run([*argv, *OPTIONS], cwd=root, capture_output=True, check=True)
    return [document.body for document in read_documents(ran.stdout, "oracle")]


async def our_output(case: InflatedCase, root: Path, workers: Workers) -> list[Json]:
    await asyncio.to_thread(case.write, root)
    documents = await build(Overlay(root=root, path="app", helm=HELM), workers=workers)
    return [document.body for document in documents]


@pytest.mark.parametrize("name", INFLATED)
async def test_an_overlay_with_charts_renders_like_kustomize_with_helm(
    name: str, tmp_path: Path, workers: Workers
) -> None:
    real = await asyncio.to_thread(real_output, INFLATED[name], tmp_path / "theirs")

    ours = await our_output(INFLATED[name], tmp_path / "ours", workers)

    assert texts(ours) == texts(real)


@pytest.mark.parametrize("name", REFUSED)
async def test_a_chart_that_helm_rejects_is_rejected(
    name: str, tmp_path: Path, workers: Workers
) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        await asyncio.to_thread(real_output, REFUSED[name], tmp_path / "theirs")

    with pytest.raises(RenderError) as caught:
        await our_output(REFUSED[name], tmp_path / "ours", workers)

    assert caught.value.code.startswith("render.helm.")
