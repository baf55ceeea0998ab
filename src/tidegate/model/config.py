"""Contents of a repository's `tidegate.yaml`. Without the file, all defaults apply."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.errors import Location
from tidegate.model.finding import Severity
from tidegate.model.units.bands import Bands
from tidegate.model.units.expressions import HealthExpressions

CONFIG_FILE = "tidegate.yaml"


class ClusterMapping(msgspec.Struct, frozen=True):
    """A destination cluster of units, and its kubeconfig context."""

    name: str
    context: str
    server: str
    location: Location
    labels: Mapping[str, str] = {}
    """Labels that ApplicationSet cluster generators select by."""


class RepositoryMapping(msgspec.Struct, frozen=True):
    """A local directory, relative to the file, that replaces a repository."""

    address: str
    path: str
    location: Location


class ChartMapping(msgspec.Struct, frozen=True):
    """A local directory or archive, relative to the file, that replaces a chart of a repository."""

    repository: str
    chart: str
    path: str
    version: str
    """If set, the mapping applies only where this version is in the requested range."""
    location: Location


class LocatedText(msgspec.Struct, frozen=True):
    """A text and its location."""

    text: str
    location: Location


class ControllerSetting(msgspec.Struct, frozen=True):
    """A setting of a real controller."""

    name: str
    value: str | bool
    location: Location


class IgnoredRule(msgspec.Struct, frozen=True):
    """A rule that is disabled for some paths, and the reason.

    Without paths, it is disabled everywhere.
    """

    rule: str
    paths: tuple[str, ...]
    reason: str
    location: Location


class LintConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Lint settings of a repository."""

    ignore: tuple[IgnoredRule, ...] = ()
    severity: Mapping[str, Severity] = {}
    bands: Bands = Bands()
    location: Location | None = None


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The effective configuration of a repository."""

    file: str = ""
    """The file as it is shown to the user."""
    folder: str = ""
    """The real directory of the file."""
    clusters: tuple[ClusterMapping, ...] = ()
    repositories: tuple[RepositoryMapping, ...] = ()
    charts: tuple[ChartMapping, ...] = ()
    roots: tuple[LocatedText, ...] = ()
    """Paths or names of the root units. If empty, all units without a parent are roots."""
    ignore: tuple[LocatedText, ...] = ()
    """Patterns of paths that are not scanned."""
    settings: tuple[ControllerSetting, ...] = ()
    health: tuple[HealthExpressions, ...] = ()
    """Health expressions of custom resources."""
    lint: LintConfig = LintConfig()

    @property
    def contexts(self) -> tuple[tuple[str, str], ...]:
        """The clusters by name, each with its context."""
        return tuple((cluster.name, cluster.context) for cluster in self.clusters)

    def find_cluster(self, destination: str) -> ClusterMapping | None:
        """Return the cluster with this name or server address. Returns None if there is none."""
        address = destination.rstrip("/")
        return next(
            (cluster for cluster in self.clusters if cluster.name == destination), None
        ) or next(
            (cluster for cluster in self.clusters if cluster.server and cluster.server == address),
            None,
        )
