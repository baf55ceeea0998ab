"""Kustomization files, and a walk over the paths that they name.

Kustomize reads what is written here from the parsed file. So both agree about its meaning, and no
path can be hidden by its spelling.

Kustomize runs only built-in generators, transformers and validators; it rejects all others itself.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TypeAlias

import msgspec

from tidegate.documents import Document, find_location, read_documents
from tidegate.documents.dump import to_yaml
from tidegate.errors import DocumentError, Location, RenderError, sanitize
from tidegate.model.k8s.json_fields import get_list, get_mappings, get_text
from tidegate.model.k8s.objects import FieldPath, Json, JsonObject
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.render.kustomize.tree import FileUse


class PathRole(Enum):
    """The use of a path."""

    FILE = "a file"
    RESOURCE = "a file or a directory"
    COMPONENT = "a directory"
    PATCH = "a patch or a file with one"
    PLUGIN = "generators, transformers or validators, or a file or directory with them"


Visit: TypeAlias = Callable[[PathRole, str, FieldPath], str]
"""Gets a path and its field, and returns the path to write instead."""
PATH_FIELDS = {
    "resources": PathRole.RESOURCE,
    "bases": PathRole.RESOURCE,
    "components": PathRole.COMPONENT,
    "crds": PathRole.FILE,
    "configurations": PathRole.FILE,
    "generators": PathRole.PLUGIN,
    "transformers": PathRole.PLUGIN,
    "validators": PathRole.PLUGIN,
    "patchesStrategicMerge": PathRole.PATCH,
}
ENTRY_FIELDS = {
    "patches": ("path",),
    "patchesJson6902": ("path",),
    "replacements": ("path",),
    "configMapGenerator": ("files", "envs", "env"),
    "secretGenerator": ("files", "envs", "env"),
    "helmCharts": ("valuesFile", "additionalValuesFiles"),
}
OTHER_FIELDS = (
    *("apiVersion", "kind", "metadata", "openapi", "namePrefix", "nameSuffix", "namespace"),
    *("commonLabels", "labels", "commonAnnotations", "images", "imageTags", "replicas", "vars"),
    *("sortOptions", "helmGlobals", "helmChartInflationGenerator", "generatorOptions"),
    "buildMetadata",
)
PATHS_BY_KIND = {
    "ConfigMapGenerator": ("files", "envs", "env"),
    "SecretGenerator": ("files", "envs", "env"),
    "PatchTransformer": ("path",),
    "PatchJson6902Transformer": ("path",),
    "ValueAddTransformer": ("targetFilePath",),
    "HelmChartInflationGenerator": ("valuesFile", "additionalValuesFiles"),
}
PLAIN_LIST_FIELDS = frozenset({"apiVersion", "kind", "metadata", "resources", "bases"})
"""What a directory of plugins may use: other fields could create unchecked paths."""
DEFAULT_CHART_HOME = "charts"
FIELDS = {name.casefold(): name for name in (*PATH_FIELDS, *ENTRY_FIELDS, *OTHER_FIELDS)}
_SCHEMES = ("ssh://", "https://", "http://", "file://")
_FILE_SCHEME = lazy_regex(r"https?:", re.IGNORECASE)
_USER = lazy_regex(r"[a-zA-Z][a-zA-Z0-9-]*@")
_GITHUB = ("github.com/", "github.com:")
_MIN_SEGMENTS = 2
_REPOSITORY_MARKERS = ("_git/", "//", ".git")


def read_kustomization(source: bytes, name: str, *, keep_unknown: bool = True) -> JsonObject:
    """Return the first document of a file, with normalised field names.

    Kustomize reads only the first document and ignores case. An unknown field is an error; with
    `keep_unknown` false it is dropped, as Flux does.

    Like `Unmarshal` and `FixKustomization` in `types/kustomization.go` of sigs.k8s.io/kustomize/api
    0.21.1.
    """
    document = _first_document(source, name)
    body: JsonObject = {}
    for key, value in document.body.items():
        field = FIELDS.get(key.casefold())
        if field is not None:
            body[field] = value
        elif keep_unknown:
            problem = f"`{sanitize(key)}` is not a field of a kustomization"
            location = find_location(source, document, (key,))
            raise RenderError("render.kustomize.field", problem, location=location)
    if body.get("helmChartInflationGenerator"):
        problem = "`helmChartInflationGenerator` is not supported any more"
        location = find_location(source, document, ("helmChartInflationGenerator",))
        hint = "write `helmCharts` and `helmGlobals`"
        raise RenderError("render.kustomize.field", problem, location=location, hint=hint)
    return body


def _first_document(source: bytes, name: str) -> Document:
    try:
        documents = read_documents(source, name)
    except DocumentError as error:
        problem = f"cannot read the kustomization: {error.problem}"
        raise RenderError(
            "render.kustomize.yaml", problem, location=error.location, hint=error.hint
        ) from error
    return documents[0] if documents else Document({}, Location(name))


def map_paths(body: JsonObject, visit: Visit) -> JsonObject:
    """Return the kustomization with each path replaced by what `visit` returns."""
    changed = dict(body)
    for name, role in PATH_FIELDS.items():
        changed |= map_list(body, name, role, visit)
    for name, keys in ENTRY_FIELDS.items():
        changed |= map_entries(body, name, keys, visit)
    openapi = body.get("openapi")
    if openapi is not None:
        changed["openapi"] = map_entry(openapi, ("path",), visit, ("openapi",))
    return changed


def map_entry(entry: Json, keys: tuple[str, ...], visit: Visit, parent: FieldPath) -> Json:
    """Return an entry of a list of patches, generators or charts with its paths replaced."""
    if not isinstance(entry, dict):
        return entry
    path_keys = {key.casefold(): key for key in keys}
    changed = dict(entry)
    for key, value in entry.items():
        path_key = path_keys.get(key.casefold())
        if path_key is not None:
            changed[key] = _map_value(value, path_key, visit, (*parent, key))
    return changed


def _map_value(value: Json, key: str, visit: Visit, field_path: FieldPath) -> Json:
    if isinstance(value, list):
        return [
            _map_value(item, key, visit, (*field_path, number)) for number, item in enumerate(value)
        ]
    if not isinstance(value, str) or not value:
        return value
    if key != "files":
        return visit(PathRole.FILE, value, field_path)
    name, equals, path = value.rpartition("=")
    return f"{name}{equals}{visit(PathRole.FILE, path, field_path)}"


def map_list(body: JsonObject, name: str, role: PathRole, visit: Visit) -> JsonObject:
    """Return the list of paths of this name with its paths replaced; empty without one."""
    return {
        key: [
            visit(role, value, (key, number)) if isinstance(value, str) else value
            for number, value in enumerate(values)
        ]
        for key, values in body.items()
        if key.casefold() == name.casefold() and isinstance(values, list)
    }


def map_entries(body: JsonObject, name: str, keys: tuple[str, ...], visit: Visit) -> JsonObject:
    """Return the list of entries of this name, each with its paths replaced; empty without one."""
    return {
        key: [map_entry(entry, keys, visit, (key, index)) for index, entry in enumerate(entries)]
        for key, entries in body.items()
        if key.casefold() == name.casefold() and isinstance(entries, list)
    }


def parse_inline_objects(text: str | bytes) -> list[JsonObject]:
    """Return the objects in a field that may also contain a path; none if it is a path.

    Kustomize reads a text as objects if each has a kind and a name, else as a path.

    Like `configureExternalGenerators` in `internal/target/kusttarget.go` of
    sigs.k8s.io/kustomize/api 0.21.1.
    """
    try:
        bodies = [document.body for document in read_documents(text, "")]
    except DocumentError:
        return []
    named = (get_text(body, "kind") and get_text(body, "metadata", "name") for body in bodies)
    return bodies if all(named) else []


def write_inline_objects(bodies: list[JsonObject]) -> str:
    """Return objects as one YAML text."""
    return "---\n".join(to_yaml(body) for body in bodies)


def decryptable_paths(body: JsonObject) -> Iterator[tuple[FileUse, str, str]]:
    """Yield the files that Flux would decrypt.

    For each: its use, the name that defines its format, and its path.

    Like `decryptKustomizationSources` in `internal/decryptor/decryptor.go` of kustomize-controller
    1.9.6.
    """
    for entry in get_mappings(body, "secretGenerator"):
        for text in _texts(entry.get("files")):
            name, _, path = text.rpartition("=")
            yield FileUse.FILE, name or posixpath.basename(path), path
        for text in (*_texts(entry.get("envs")), *_texts([entry.get("env")])):
            yield FileUse.ENV, posixpath.basename(text), text
    for entry in get_mappings(body, "patches"):
        for text in _texts([entry.get("path")]):
            yield FileUse.PATCH, posixpath.basename(text), text


def _texts(values: Json) -> list[str]:
    if not isinstance(values, list):
        return []
    return [value for value in values if isinstance(value, str) and value]


def map_plugin_paths(body: JsonObject, visit: Visit) -> JsonObject:
    """Return a plugin configuration with each path replaced by what `visit` returns."""
    kind = str(body.get("kind"))
    mapped = map_entry(body, PATHS_BY_KIND.get(kind, ()), visit, ())
    changed = mapped if isinstance(mapped, dict) else body
    if kind == "ReplacementTransformer":
        changed = changed | map_entries(changed, "replacements", ("path",), visit)
    if kind == "PatchStrategicMergeTransformer":
        changed = changed | map_list(changed, "paths", PathRole.PATCH, visit)
    return changed


class InflatedChart(msgspec.Struct, frozen=True):
    """A chart that a kustomization inflates."""

    name: str
    """The name of the chart."""
    version: str
    """The version of the chart; empty for the latest."""
    repository: str
    """The repository of the chart; empty for a local chart."""
    chart_home: str
    """Directory that must contain the chart."""

    @property
    def directory(self) -> str:
        """Return the directory of the chart.

        Like `absChartHome` and `chartExistsLocally` in
        `internal/builtins/HelmChartInflationGenerator.go` of sigs.k8s.io/kustomize/api 0.21.1.
        """
        version_directory = (
            f"{self.name}-{self.version}/" if self.version and self.repository else ""
        )
        return f"{self.chart_home}/{version_directory}{self.name}"

    @property
    def reference(self) -> str:
        """Return the name under which a remote chart must be fetched."""
        return f"{self.repository.rstrip('/')}/{self.name}:{self.version or '*'}"


def list_charts(body: JsonObject) -> list[InflatedChart]:
    """Return the charts in `helmCharts`."""
    chart_home = _text(body.get("helmGlobals"), "chartHome")
    return [read_chart_entry(entry, chart_home) for entry in get_list(body, "helmCharts")]


def read_chart_entry(entry: Json, chart_home: str) -> InflatedChart:
    """Read one chart; the configuration of a chart inflator has its own `chartHome`."""
    chart_home = _text(entry, "chartHome") or chart_home or DEFAULT_CHART_HOME
    return InflatedChart(
        _text(entry, "name"), _text(entry, "version"), _text(entry, "repo"), chart_home
    )


def _text(entry: Json, key: str) -> str:
    if not isinstance(entry, dict):
        return ""
    values = [value for name, value in entry.items() if name.casefold() == key.casefold()]
    if len(values) > 1:
        problem = f"`{key}` of a chart is set more than once"
        raise RenderError("render.kustomize.field", problem)
    return next((value for value in values if isinstance(value, str)), "")


def is_remote_file(text: str) -> bool:
    """Return whether kustomize would download a file from a web server.

    Like `IsRemoteFile` in `internal/loader/fileloader.go` of sigs.k8s.io/kustomize/api 0.21.1.
    """
    return bool(_FILE_SCHEME.match(text))


def is_remote_directory(text: str) -> bool:
    """Return whether kustomize would clone a repository, even if a directory has this name.

    Like `NewRepoSpecFromURL` in `internal/git/repospec.go` of sigs.k8s.io/kustomize/api 0.21.1.
    """
    rest = text.partition("?")[0]
    if rest[:5].lower() == "git::":
        rest = rest[5:]
    scheme = next((candidate for candidate in _SCHEMES if rest.lower().startswith(candidate)), "")
    rest = rest[len(scheme) :]
    if scheme == "file://":
        return bool(rest)
    user = _USER.match(rest)
    rest = rest[user.end() :] if user else rest
    is_github = rest.lower().startswith(_GITHUB)
    if not scheme and not user and not is_github:
        return False
    separators = "[/:]" if not scheme else "/"
    host, *path = re.split(separators, rest, maxsplit=1)
    return bool(host) and bool(path) and _names_a_repository(path[0])


def is_remote(text: str) -> bool:
    """Return whether kustomize would use the network."""
    return is_remote_file(text) or is_remote_directory(text)


def _names_a_repository(path: str) -> bool:
    if any(marker in path for marker in _REPOSITORY_MARKERS):
        return not path.startswith("//")
    return len(path.split("/")) >= _MIN_SEGMENTS
