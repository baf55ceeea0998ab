"""Charts in the user's repository, found by name and version without configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from tidegate.documents import read_documents
from tidegate.errors import DocumentError
from tidegate.files import PathEscapeError, open_file, resolve_within
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.source import ChartSource
from tidegate.source.semver import pick_highest, read_range

CHART_FILE, ARCHIVE_SUFFIX = "Chart.yaml", ".tgz"
_ARCHIVE_NAME = lazy_regex(r"(?P<name>.+?)-(?P<version>v?\d+\.\d+\.\d+(?:[-+].*)?)\.tgz")


class VendoredChart(msgspec.Struct, frozen=True, order=True):
    """A chart in a repository: its directory, or its archive."""

    name: str
    """The name of the chart."""
    version: str
    """The version of the chart."""
    path: Path
    """The directory or archive."""


class _Dependency(msgspec.Struct, frozen=True):
    name: str
    """The name of the chart."""


class _ChartMetadata(msgspec.Struct, frozen=True):
    """The fields of Chart.yaml that are needed here."""

    name: str
    """The name of the chart."""
    version: str
    """The version of the chart."""
    dependencies: tuple[_Dependency, ...] | None = None
    """The dependencies; None for none."""

    @property
    def is_wrapper(self) -> bool:
        """Whether the chart depends on a chart of its own name."""
        return any(dependency.name == self.name for dependency in self.dependencies or ())


@dataclass(frozen=True)
class VendoredCharts:
    """The charts among the files of a tree, searched on first use.

    An archive is known by its name, `redis-17.0.1.tgz`. A chart that depends on a chart of its own
    name is left out: it wraps that chart. Unreadable files are no charts.
    """

    files: tuple[str, ...] = ()
    """The paths of the files."""
    root: Path = Path()
    """The root of the tree."""

    @cached_property
    def charts(self) -> tuple[VendoredChart, ...]:
        """Return the charts, sorted by name, version and path."""
        return tuple(sorted(_find_charts(self.files, self.root)))


def pick_vendored(charts: Iterable[VendoredChart], source: ChartSource) -> VendoredChart | None:
    """Return the chart of the highest version in the range; None without one.

    Of several with the same version, the first by path.
    """
    name = source.chart.rpartition("/")[2]
    by_version = {
        chart.version: chart for chart in sorted(charts, reverse=True) if chart.name == name
    }
    if source.version in by_version:
        return by_version[source.version]
    version_range = read_range(source.version or "*")
    highest = pick_highest(version_range, by_version) if version_range else None
    return by_version[highest.text] if highest else None


def read_chart(path: Path, root: Path) -> VendoredChart | None:
    """Return the chart at a path of a tree; None if there is none."""
    if match := _ARCHIVE_NAME.fullmatch(path.name):
        return VendoredChart(match["name"], match["version"], path) if path.is_file() else None
    metadata = _read_metadata(path / CHART_FILE, root)
    return VendoredChart(metadata.name, metadata.version, path) if metadata else None


def _find_charts(files: Iterable[str], root: Path) -> Iterator[VendoredChart]:
    for path in map(root.joinpath, files):
        if match := _ARCHIVE_NAME.fullmatch(path.name):
            yield VendoredChart(match["name"], match["version"], path)
        elif path.name == CHART_FILE:
            metadata = _read_metadata(path, root)
            if metadata is not None and not metadata.is_wrapper:
                yield VendoredChart(metadata.name, metadata.version, path.parent)


def _read_metadata(path: Path, root: Path) -> _ChartMetadata | None:
    try:
        with open_file(resolve_within(path, root)) as file:
            (document,) = read_documents(file.read(), path.name)
        return msgspec.convert(document.body, _ChartMetadata)
    except (OSError, PathEscapeError, DocumentError, msgspec.ValidationError, ValueError):
        return None
