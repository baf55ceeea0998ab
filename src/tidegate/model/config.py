"""What a repository's `tidegate.yaml` says. Without one, all of it is as it is by default."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.errors import Place
from tidegate.model.bands import Bands
from tidegate.model.expressions import HealthExpressions
from tidegate.model.finding import Severity

CONFIG_FILE = "tidegate.yaml"


class ClusterMap(msgspec.Struct, frozen=True):
    """A cluster that units name as their destination, and its context in a kubeconfig.

    By its `labels` generators of ApplicationSets choose it.
    """

    name: str
    context: str
    server: str
    where: Place
    labels: Mapping[str, str] = {}


class RepositoryMap(msgspec.Struct, frozen=True):
    """A directory, seen from the file, in the place of a repository."""

    address: str
    path: str
    where: Place


class ChartMap(msgspec.Struct, frozen=True):
    """A directory or archive, seen from the file, in the place of one chart of a repository.

    If its `version` is told, it counts only where that is in the range asked for.
    """

    repository: str
    chart: str
    path: str
    version: str
    where: Place


class ConfigText(msgspec.Struct, frozen=True):
    """A text, and where it stands."""

    text: str
    where: Place


class Switch(msgspec.Struct, frozen=True):
    """How a real controller is set."""

    name: str
    value: str | bool
    where: Place


class IgnoredRule(msgspec.Struct, frozen=True):
    """A rule that is not asked of some paths, and why; without paths, of nothing at all."""

    rule: str
    paths: tuple[str, ...]
    reason: str
    where: Place


class LintConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How a repository wants to be linted."""

    ignore: tuple[IgnoredRule, ...] = ()
    severity: Mapping[str, Severity] = {}
    bands: Bands = Bands()
    where: Place | None = None


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """What counts for a repository. `file` is how people call it, `folder` where it really lies.

    `entries`: paths or names of units that alone count as entries; with none, what nobody brings
    does. `ignore`: patterns of paths that are not looked at. `health`: how objects are judged.
    """

    file: str = ""
    folder: str = ""
    clusters: tuple[ClusterMap, ...] = ()
    repositories: tuple[RepositoryMap, ...] = ()
    charts: tuple[ChartMap, ...] = ()
    entries: tuple[ConfigText, ...] = ()
    ignore: tuple[ConfigText, ...] = ()
    settings: tuple[Switch, ...] = ()
    health: tuple[HealthExpressions, ...] = ()
    lint: LintConfig = LintConfig()

    @property
    def contexts(self) -> tuple[tuple[str, str], ...]:
        """The clusters by name, each with its context."""
        return tuple((one.name, one.context) for one in self.clusters)

    def find_cluster(self, destination: str) -> ClusterMap | None:
        """The cluster that a destination means by its name or by its server's address."""
        address = destination.rstrip("/")
        return next((one for one in self.clusters if one.name == destination), None) or next(
            (one for one in self.clusters if one.server and one.server == address), None
        )
