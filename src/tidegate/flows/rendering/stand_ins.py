"""Empty charts and bases in place of unavailable ones, so that the remainder renders."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from tidegate.documents.dump import to_yaml
from tidegate.model.objects import Json
from tidegate.model.patterns import lazy_regex
from tidegate.model.release import ChartDependency, FetchedChart
from tidegate.model.rendering import FetchedTree
from tidegate.source import Cache
from tidegate.source.semver import read_range, read_version

EMPTY_FILE = "nothing.yaml"
_VERSION_NUMBERS = lazy_regex(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?(-[0-9A-Za-z.-]+)?")


async def empty_base(cache: Cache) -> FetchedTree:
    """Return a file without objects, in place of a base.

    Where a build fails with it, the whole unit is unknown.
    """
    return FetchedTree(await _cached_tree("a base", EMPTY_FILE, b"", cache), EMPTY_FILE)


async def empty_chart(dependency: ChartDependency, cache: Cache) -> FetchedChart:
    """Return a chart without templates that has the name, and a version in the requested range.

    Where a build fails with it, the whole unit is unknown.
    """
    version = matching_version(dependency.version)
    metadata: dict[str, Json] = {"apiVersion": "v2", "name": dependency.name, "version": version}
    content = to_yaml(metadata).encode()
    root = await _cached_tree(f"{dependency.name} {version}", "Chart.yaml", content, cache)
    return FetchedChart(dependency, str(root))


async def _cached_tree(name: str, file: str, content: bytes, cache: Cache) -> Path:
    async def fill(directory: Path) -> None:
        await asyncio.to_thread((directory / file).write_bytes, content)

    return (await cache.find_or_keep(f"stand-in for {name}", fill, shown="a stand-in")).root


def matching_version(version_range: str) -> str:
    """Return some version in a range: one that it is written with, or one just above."""
    bounds = read_range(version_range or "*")
    for candidate in _version_candidates(version_range):
        version = read_version(candidate)
        if version is not None and bounds is not None and bounds.takes(version):
            return candidate
    return "0.0.0"


def _version_candidates(version_range: str) -> Iterator[str]:
    yield version_range
    for match in _VERSION_NUMBERS.finditer(version_range):
        major, minor, patch = (int(part or 0) for part in match.groups()[:3])
        yield f"{major}.{minor}.{patch}{match[4] or ''}"
        yield f"{major}.{minor}.{patch}"
        yield f"{major}.{minor}.{patch + 1}"
        yield f"{major}.{minor + 1}.0"
        yield f"{major + 1}.0.0"
        yield f"{max(major - 1, 0)}.0.0"
    yield "1.0.0"
