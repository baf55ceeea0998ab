"""Read a kustomization file, and walk over the paths it names.

What kustomize gets to read is written by us from what was read here. So both mean the same, and no
path can be hidden from us by a trick of spelling.

Of generators, transformers and validators only those that are built into kustomize are run; it
refuses all others itself.
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
    """What a path is named for."""

    FILE = "a file"
    RESOURCE = "a file or a directory"
    COMPONENT = "a directory"
    PATCH = "a patch or a file with one"
    PLUGIN = "generators, transformers or validators, or a file or directory with some"


Visit: TypeAlias = Callable[[PathRole, str, FieldPath], str]
"""Is told a path and the field it stands in, and says what shall stand there instead."""
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
KEYS_OF_A_PLAIN_LIST = frozenset({"apiVersion", "kind", "metadata", "resources", "bases"})
"""What a directory of plugins may hold: more could make paths that nobody has seen before."""
DEFAULT_HOME = "charts"
FIELDS = {name.casefold(): name for name in (*PATH_FIELDS, *ENTRY_FIELDS, *OTHER_FIELDS)}
_SCHEMES = ("ssh://", "https://", "http://", "file://")
_FILE_SCHEME = lazy_regex(r"https?:", re.IGNORECASE)
_USER = lazy_regex(r"[a-zA-Z][a-zA-Z0-9-]*@")
_GITHUB = ("github.com/", "github.com:")
_LEAST_SEGMENTS = 2
_MARKS = ("_git/", "//", ".git")


def read_kustomization(source: bytes, name: str, *, keep_unknown: bool = True) -> JsonObject:
    """The file's first document, with its fields spelled as they should be.

    Kustomize reads no further than that, and does not mind upper and lower case. An unknown field
    is an error; with `keep_unknown` false it is dropped, as Flux drops it.
    """
    document = _first_document(source, name)
    body: JsonObject = {}
    for key, value in document.body.items():
        known = FIELDS.get(key.casefold())
        if known is not None:
            body[known] = value
        elif keep_unknown:
            problem = f"`{sanitize(key)}` is no field of a kustomization"
            where = find_location(source, document, (key,))
            raise RenderError("render.kustomize.field", problem, location=where)
    if body.get("helmChartInflationGenerator"):
        problem = "`helmChartInflationGenerator` is not read any more"
        where = find_location(source, document, ("helmChartInflationGenerator",))
        hint = "write `helmCharts` and `helmGlobals`"
        raise RenderError("render.kustomize.field", problem, location=where, hint=hint)
    return body


def _first_document(source: bytes, name: str) -> Document:
    try:
        documents = read_documents(source, name)
    except DocumentError as error:
        problem = f"the kustomization cannot be read: {error.problem}"
        raise RenderError(
            "render.kustomize.yaml", problem, location=error.location, hint=error.hint
        ) from error
    return documents[0] if documents else Document({}, Location(name))


def map_paths(body: JsonObject, visit: Visit) -> JsonObject:
    """The same kustomization with each path as `visit` wants it."""
    changed = dict(body)
    for name, role in PATH_FIELDS.items():
        changed |= map_list(body, name, role, visit)
    for name, keys in ENTRY_FIELDS.items():
        changed |= map_entries(body, name, keys, visit)
    openapi = body.get("openapi")
    if openapi is not None:
        changed["openapi"] = map_entry(openapi, ("path",), visit, ("openapi",))
    return changed


def map_entry(entry: Json, keys: tuple[str, ...], visit: Visit, above: FieldPath) -> Json:
    """One entry of a list of patches, generators or charts, with its paths changed."""
    if not isinstance(entry, dict):
        return entry
    wanted = {key.casefold(): key for key in keys}
    changed = dict(entry)
    for key, value in entry.items():
        known = wanted.get(key.casefold())
        if known is not None:
            changed[key] = _map_value(value, known, visit, (*above, key))
    return changed


def _map_value(value: Json, key: str, visit: Visit, at: FieldPath) -> Json:
    if isinstance(value, list):
        return [_map_value(item, key, visit, (*at, number)) for number, item in enumerate(value)]
    if not isinstance(value, str) or not value:
        return value
    if key != "files":
        return visit(PathRole.FILE, value, at)
    name, equals, path = value.rpartition("=")
    return f"{name}{equals}{visit(PathRole.FILE, path, at)}"


def map_list(body: JsonObject, name: str, role: PathRole, visit: Visit) -> JsonObject:
    """The list of paths of this name, changed; nothing where there is none."""
    return {
        key: [
            visit(role, value, (key, number)) if isinstance(value, str) else value
            for number, value in enumerate(values)
        ]
        for key, values in body.items()
        if key.casefold() == name.casefold() and isinstance(values, list)
    }


def map_entries(body: JsonObject, name: str, keys: tuple[str, ...], visit: Visit) -> JsonObject:
    """The list of entries of this name, each with its paths changed."""
    return {
        key: [map_entry(entry, keys, visit, (key, at)) for at, entry in enumerate(entries)]
        for key, entries in body.items()
        if key.casefold() == name.casefold() and isinstance(entries, list)
    }


def parse_inline_objects(said: str | bytes) -> list[JsonObject]:
    """The objects that stand in a field which may also hold a path; none if it is a path.

    Kustomize takes a text for objects if each has a kind and a name, and else for a path.
    """
    try:
        bodies = [document.body for document in read_documents(said, "")]
    except DocumentError:
        return []
    named = (get_text(body, "kind") and get_text(body, "metadata", "name") for body in bodies)
    return bodies if all(named) else []


def write_inline_objects(bodies: list[JsonObject]) -> str:
    """Objects as one text."""
    return "---\n".join(to_yaml(body) for body in bodies)


def decryptable_paths(body: JsonObject) -> Iterator[tuple[FileUse, str, str]]:
    """What each file is for that Flux would decrypt, the name that says its format, its path."""
    for entry in get_mappings(body, "secretGenerator"):
        for said in _texts(entry.get("files")):
            name, _, path = said.rpartition("=")
            yield FileUse.FILE, name or posixpath.basename(path), path
        for said in (*_texts(entry.get("envs")), *_texts([entry.get("env")])):
            yield FileUse.ENV, posixpath.basename(said), said
    for entry in get_mappings(body, "patches"):
        for said in _texts([entry.get("path")]):
            yield FileUse.PATCH, posixpath.basename(said), said


def _texts(values: Json) -> list[str]:
    if not isinstance(values, list):
        return []
    return [value for value in values if isinstance(value, str) and value]


def map_plugin_paths(body: JsonObject, visit: Visit) -> JsonObject:
    """The same configuration with each path as `visit` wants it."""
    kind = str(body.get("kind"))
    mapped = map_entry(body, PATHS_BY_KIND.get(kind, ()), visit, ())
    changed = mapped if isinstance(mapped, dict) else body
    if kind == "ReplacementTransformer":
        changed = changed | map_entries(changed, "replacements", ("path",), visit)
    if kind == "PatchStrategicMergeTransformer":
        changed = changed | map_list(changed, "paths", PathRole.PATCH, visit)
    return changed


class InflatedChart(msgspec.Struct, frozen=True):
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


def list_charts(body: JsonObject) -> list[InflatedChart]:
    """The charts that `helmCharts` names."""
    home = _text(body.get("helmGlobals"), "chartHome")
    return [read_chart_entry(entry, home) for entry in get_list(body, "helmCharts")]


def read_chart_entry(entry: Json, home: str) -> InflatedChart:
    """One entry; a configuration of the chart inflator names its home itself."""
    home = _text(entry, "chartHome") or home or DEFAULT_HOME
    return InflatedChart(_text(entry, "name"), _text(entry, "version"), _text(entry, "repo"), home)


def _text(entry: Json, key: str) -> str:
    if not isinstance(entry, dict):
        return ""
    found = [value for name, value in entry.items() if name.casefold() == key.casefold()]
    if len(found) > 1:
        problem = f"`{key}` of a chart is written more than once"
        raise RenderError("render.kustomize.field", problem)
    return next((value for value in found if isinstance(value, str)), "")


def is_remote_file(text: str) -> bool:
    """True for what kustomize would ask a web server for."""
    return bool(_FILE_SCHEME.match(text))


def is_remote_directory(text: str) -> bool:
    """True for what kustomize would clone, even where a directory of that name exists."""
    rest = text.partition("?")[0]
    if rest[:5].lower() == "git::":
        rest = rest[5:]
    scheme = next((known for known in _SCHEMES if rest.lower().startswith(known)), "")
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
    """True for what kustomize would look for on the network."""
    return is_remote_file(text) or is_remote_directory(text)


def _names_a_repository(path: str) -> bool:
    if any(mark in path for mark in _MARKS):
        return not path.startswith("//")
    return len(path.split("/")) >= _LEAST_SEGMENTS
