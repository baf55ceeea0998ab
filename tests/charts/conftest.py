"""One worker renders all charts of a module."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.charts.rendering import Chart, Rendering
from tidegate.render.helm import helm_workers


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rendering() -> AsyncIterator[Rendering]:
    async with helm_workers(count=1) as workers:
        yield Rendering(workers)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Whatever is claimed of a chart is claimed of every chart."""
    if "chart" in metafunc.fixturenames:
        metafunc.parametrize("chart", list(Chart), ids=str)
