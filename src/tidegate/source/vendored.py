"""Charts that lie in a repository: found by their names and versions, without any configuration."""

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

CHART_FILE, PACKED = "Chart.yaml", ".tgz"
_PACKED_NAME = lazy_regex(r"(?P<name>.+?)-(?P<version>v?\d+\.\d+\.\d+(?:[-+].*)?)\.tgz")


class VendoredChart(msgspec.Struct, frozen=True, order=True):
    """A chart of a repository: its directory, or its archive."""

    name: str
    version: str
    path: Path


class _Dependency(msgspec.Struct, frozen=True):
    name: str


class _ChartHead(msgspec.Struct, frozen=True):
    """What a Chart.yaml says of its chart."""

    name: str
    version: str
    dependencies: tuple[_Dependency, ...] | None = None

    @property
    def wraps_its_namesake(self) -> bool:
        return any(one.name == self.name for one in self.dependencies or ())


@dataclass(frozen=True)
class VendoredCharts:
    """The charts among the files of a tree, by name and version; looked for when asked for.

    An archive is known by its name, `redis-17.0.1.tgz`. A chart that depends on one of its own name
    is left out: it stands for itself. What cannot be read is no chart.
    """

    files: tuple[str, ...] = ()
    root: Path = Path()

    @cached_property
    def found(self) -> tuple[VendoredChart, ...]:
        return tuple(sorted(_charts(self.files, self.root)))


def pick_vendored(charts: Iterable[VendoredChart], wanted: ChartSource) -> VendoredChart | None:
    """The highest version in the range; of several with that version, the first by path."""
    name = wanted.chart.rpartition("/")[2]
    fitting = {one.version: one for one in sorted(charts, reverse=True) if one.name == name}
    if wanted.version in fitting:
        return fitting[wanted.version]
    takers = read_range(wanted.version or "*")
    found = pick_highest(takers, fitting) if takers else None
    return fitting[found.text] if found else None


def read_chart(path: Path, root: Path) -> VendoredChart | None:
    """What lies at a path of a tree, if it is a chart."""
    if found := _PACKED_NAME.fullmatch(path.name):
        return VendoredChart(found["name"], found["version"], path) if path.is_file() else None
    head = _read_head(path / CHART_FILE, root)
    return VendoredChart(head.name, head.version, path) if head else None


def _charts(files: Iterable[str], root: Path) -> Iterator[VendoredChart]:
    for path in map(root.joinpath, files):
        if found := _PACKED_NAME.fullmatch(path.name):
            yield VendoredChart(found["name"], found["version"], path)
        elif path.name == CHART_FILE:
            head = _read_head(path, root)
            if head is not None and not head.wraps_its_namesake:
                yield VendoredChart(head.name, head.version, path.parent)


def _read_head(path: Path, root: Path) -> _ChartHead | None:
    try:
        with open_file(resolve_within(path, root)) as file:
            (document,) = read_documents(file.read(), path.name)
        return msgspec.convert(document.body, _ChartHead)
    except (OSError, PathEscapeError, DocumentError, msgspec.ValidationError, ValueError):
        return None
