"""What stands in for things that could not be had, so that the rest can be rendered.

A stand-in has no objects. Where a build does not work with it, the whole unit is unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from tidegate.documents.dump import to_yaml
from tidegate.model.objects import Json
from tidegate.model.patterns import late
from tidegate.model.release import ChartDependency, FetchedChart
from tidegate.model.rendering import Fetched
from tidegate.source import Cache
from tidegate.source.semver import read_range, read_version

NOTHING = "nothing.yaml"
_NUMBERS = late(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?(-[0-9A-Za-z.-]+)?")


async def empty_base(cache: Cache) -> Fetched:
    """A file without objects."""
    return Fetched(await _tree("a base", NOTHING, b"", cache), NOTHING)


async def empty_chart(dependency: ChartDependency, cache: Cache) -> FetchedChart:
    """A chart without templates that goes by the name and a version that is asked for."""
    version = fitting_version(dependency.version)
    head: dict[str, Json] = {"apiVersion": "v2", "name": dependency.name, "version": version}
    content = to_yaml(head).encode()
    root = await _tree(f"{dependency.name} {version}", "Chart.yaml", content, cache)
    return FetchedChart(dependency, str(root))


async def _tree(name: str, file: str, content: bytes, cache: Cache) -> Path:
    async def fill(place: Path) -> None:
        await asyncio.to_thread((place / file).write_bytes, content)

    return (await cache.find_or_keep(f"stand-in for {name}", fill, shown="a stand-in")).root


def fitting_version(wanted: str) -> str:
    """Some version in a range: one that it is written with, or one just above."""
    bounds = read_range(wanted or "*")
    for text in _candidates(wanted):
        version = read_version(text)
        if version is not None and bounds is not None and bounds.takes(version):
            return text
    return "0.0.0"


def _candidates(wanted: str) -> Iterator[str]:
    yield wanted
    for found in _NUMBERS.finditer(wanted):
        major, minor, patch = (int(part or 0) for part in found.groups()[:3])
        yield f"{major}.{minor}.{patch}{found[4] or ''}"
        yield f"{major}.{minor}.{patch}"
        yield f"{major}.{minor}.{patch + 1}"
        yield f"{major}.{minor + 1}.0"
        yield f"{major + 1}.0.0"
        yield f"{max(major - 1, 0)}.0.0"
    yield "1.0.0"
