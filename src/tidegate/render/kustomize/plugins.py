"""Which files and charts generators, transformers and validators name.

Only those that are built into kustomize are run; it refuses all others itself.
"""

from __future__ import annotations

import msgspec

from tidegate.errors import RenderError
from tidegate.model.objects import Json
from tidegate.render.kustomize.kustomization import Body, Role, Visit, map_entry

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
        changed = _map_entries(changed, "replacements", visit)
    if kind == "PatchStrategicMergeTransformer":
        changed = _map_patches(changed, visit)
    return changed


def _map_entries(body: Body, name: str, visit: Visit) -> Body:
    return {key: _mapped(key, value, name, visit) for key, value in body.items()}


def _mapped(key: str, value: Json, name: str, visit: Visit) -> Json:
    if key.casefold() != name or not isinstance(value, list):
        return value
    return [map_entry(entry, ("path",), visit, (key,)) for entry in value]


def _map_patches(body: Body, visit: Visit) -> Body:
    changed = dict(body)
    for key, value in body.items():
        if key.casefold() == "paths" and isinstance(value, list):
            changed[key] = [
                visit(Role.PATCH, item, (key, number)) if isinstance(item, str) else item
                for number, item in enumerate(value)
            ]
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
    entries = body.get("helmCharts")
    shared = body.get("helmGlobals")
    home = _text(shared, "chartHome") if isinstance(shared, dict) else ""
    return [chart_of(entry, home) for entry in (entries if isinstance(entries, list) else [])]


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
