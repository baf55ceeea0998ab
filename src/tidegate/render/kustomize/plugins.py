"""Which files and charts generators, transformers and validators name.

Only those that are built into kustomize are run; it refuses all others itself.
"""

from __future__ import annotations

import msgspec

from tidegate.errors import RenderError
from tidegate.model.objects import Json
from tidegate.model.reading import listed
from tidegate.render.kustomize.kustomization import (
    Body,
    Role,
    Visit,
    map_entries,
    map_entry,
    map_list,
)

PATHS_BY_KIND = {
    "ConfigMapGenerator": ("files", "envs", "env"),
    "SecretGenerator": ("files", "envs", "env"),
    "PatchTransformer": ("path",),
    "PatchJson6902Transformer": ("path",),
    "ValueAddTransformer": ("targetFilePath",),
    "HelmChartInflationGenerator": ("valuesFile", "additionalValuesFiles"),
}
KEYS_OF_A_PLAIN_LIST = frozenset({"apiVersion", "kind", "metadata", "resources", "bases"})
"""What a directory of plugins may hold: more could make paths that nobody has seen before."""
DEFAULT_HOME = "charts"


def map_plugin_paths(body: Body, visit: Visit) -> Body:
    """The same configuration with each path as `visit` wants it."""
    kind = str(body.get("kind"))
    mapped = map_entry(body, PATHS_BY_KIND.get(kind, ()), visit, ())
    changed = mapped if isinstance(mapped, dict) else body
    if kind == "ReplacementTransformer":
        changed = changed | map_entries(changed, "replacements", ("path",), visit)
    if kind == "PatchStrategicMergeTransformer":
        changed = changed | map_list(changed, "paths", Role.PATCH, visit)
    return changed


class Chart(msgspec.Struct, frozen=True):
    """A chart that a kustomization inflates, and the directory it must lie in."""

    name: str
    version: str
    repository: str
    home: str

    @property
    def directory(self) -> str:
        within = f"{self.name}-{self.version}/" if self.version and self.repository else ""
        return f"{self.home}/{within}{self.name}"

    @property
    def reference(self) -> str:
        """How a chart that lies elsewhere is asked for."""
        return f"{self.repository.rstrip('/')}/{self.name}:{self.version or '*'}"


def charts_of(body: Body) -> list[Chart]:
    """The charts that `helmCharts` names."""
    home = _text(body.get("helmGlobals"), "chartHome")
    return [chart_of(entry, home) for entry in listed(body, "helmCharts")]


def chart_of(entry: Json, home: str) -> Chart:
    """One entry; a configuration of the chart inflator names its home itself."""
    home = _text(entry, "chartHome") or home or DEFAULT_HOME
    return Chart(_text(entry, "name"), _text(entry, "version"), _text(entry, "repo"), home)


def _text(entry: Json, key: str) -> str:
    if not isinstance(entry, dict):
        return ""
    found = [value for name, value in entry.items() if name.casefold() == key.casefold()]
    if len(found) > 1:
        problem = f"`{key}` of a chart is written more than once"
        raise RenderError("render.kustomize.field", problem)
    return next((value for value in found if isinstance(value, str)), "")
