"""Write the schemas of the CRDs of Argo CD and Flux: `python -m plane.dialect_schemas`.

Reads them from Go modules at pinned versions. Older versions of a kind are included, each from the
newest module that serves it. Descriptions and CEL rules are left out; a status may be anything. The
schemas have the format of CRDs, except that a schema can be the number of another line. One schema
per line.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec

from plane.binaries.modules import fetch_module
from tidegate.documents import read_documents
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, Kind
from tidegate.schema.custom_resources import FILE, NESTED
from tidegate.schema.structural import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    get_version_schema,
)

Schema = dict[str, Json]
Row = tuple[Kind, str, Schema]
"""A kind, the module that says so, and its schema."""

ARGO_CRDS, FLUX_CRDS = "manifests/crds/*-crd.yaml", "config/crd/bases/*.yaml"
AUTOMATION = "github.com/fluxcd/image-automation-controller@v1.1.2"
MODULES = (
    ("github.com/argoproj/argo-cd/v3@v3.5.6", ARGO_CRDS),
    ("github.com/fluxcd/kustomize-controller@v1.9.5", FLUX_CRDS),
    ("github.com/fluxcd/kustomize-controller@v1.6.0", FLUX_CRDS),
    ("github.com/fluxcd/helm-controller@v1.6.4", FLUX_CRDS),
    ("github.com/fluxcd/helm-controller@v1.4.3", FLUX_CRDS),
    ("github.com/fluxcd/helm-controller@v0.37.2", FLUX_CRDS),
    ("github.com/fluxcd/source-controller@v1.9.5", FLUX_CRDS),
    ("github.com/fluxcd/source-controller@v1.7.0", FLUX_CRDS),
    ("github.com/fluxcd/source-controller@v1.3.0", FLUX_CRDS),
    ("github.com/fluxcd/source-watcher/v2@v2.2.2", FLUX_CRDS),
    ("github.com/fluxcd/notification-controller@v1.9.3", FLUX_CRDS),
    ("github.com/fluxcd/notification-controller@v1.6.0", FLUX_CRDS),
    ("github.com/fluxcd/image-reflector-controller@v1.2.4", FLUX_CRDS),
    ("github.com/fluxcd/image-reflector-controller@v1.1.1", FLUX_CRDS),
    ("github.com/fluxcd/image-automation-controller@v1.2.4", FLUX_CRDS),
    (AUTOMATION, FLUX_CRDS),
)
"""Of each, the newest that can be had, then older ones for what it no longer serves."""
UNREAD: tuple[Row, ...] = tuple(
    (Kind("image.toolkit.fluxcd.io", "v1beta1", name), AUTOMATION, {PRESERVE: True})
    for name in ("ImagePolicy", "ImageRepository", "ImageUpdateAutomation")
)
"""Former kinds of modules that are not read: they have no schema."""
KEPT = (
    *("type", "format", "nullable", "default", "required", "enum", "pattern", "anyOf"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"),
    *("minItems", "maxItems", "minProperties", "maxProperties"),
    *(EMBEDDED, INT_OR_STRING, LIST_KEYS, LIST_TYPE, MAP_TYPE, PRESERVE),
)
"""What is copied as it is."""


def main() -> None:
    """Fetch the modules, read them, write the file."""
    written = write([*rows_of(read_definitions()), *UNREAD])
    FILE.write_text(written)
    print(f"{FILE} ({len(written)} bytes)", file=sys.stderr)


def read_definitions() -> Iterator[tuple[str, Schema]]:
    """Every CRD of the modules, each with the module it is from."""
    for module, files in MODULES:
        for file in sorted(fetch_module(module).glob(files)):
            for document in read_documents(file.read_bytes(), file.name):
                yield module, document.body


def rows_of(definitions: Iterable[tuple[str, Schema]]) -> list[Row]:
    """The served versions of CRDs; of the same one, the first."""
    rows: dict[Kind, Row] = {}
    for module, definition in definitions:
        spec = get_mapping(definition, "spec")
        for version in get_mappings(spec, "versions"):
            kind = Kind(
                get_text(spec, "group"), get_text(version, "name"), get_text(spec, "names", "kind")
            )
            if version.get("served") is True and kind not in rows:
                rows[kind] = kind, module, _root(get_mapping(get_version_schema(version)))
    return list(rows.values())


def _root(schema: Schema) -> Schema:
    fields = get_mapping(schema, "properties")
    opened: Schema = {"status": {PRESERVE: True}} if "status" in fields else {}
    return _stripped({**schema, "properties": {**fields, **opened}})


def _stripped(schema: Schema) -> Schema:
    kept: Schema = {name: schema[name] for name in KEPT if name in schema}
    return kept | _children(schema, lambda part: _stripped(get_mapping(part)))


def _children(schema: Schema, change: Callable[[Json], Json]) -> Schema:
    """The parts of a schema that are schemas, changed."""
    made: Schema = {}
    for name in NESTED:
        if name in schema:
            made[name] = change(schema[name]) if isinstance(schema[name], dict) else schema[name]
    if fields := get_mapping(schema, "properties"):
        made["properties"] = {name: change(fields[name]) for name in sorted(fields)}
    return made


def _below(schema: Schema) -> list[Schema]:
    parts = [*get_mapping(schema, "properties").values(), *map(schema.get, NESTED)]
    return [part for part in parts if isinstance(part, dict)]


def write(rows: Iterable[Row]) -> str:
    """The text of the data file. Same input, same bytes."""
    rows = list(rows)
    modules = sorted({module for _, module, _ in rows})
    shared = _Shared(schema for _, _, schema in rows)
    kinds = [
        _line([kind.group, kind.version, kind.name, modules.index(module), shared.number(schema)])
        for kind, module, schema in rows
    ]
    parts = {"modules": map(_line, modules), "kinds": kinds, "schemas": shared.lines}
    lists = [_line(name) + ":[\n" + ",\n".join(lines) + "\n]" for name, lines in parts.items()]
    return "{" + ",\n".join(lists) + "}\n"


class _Shared:
    """Schemas that stand in several places are written once, and have a number."""

    def __init__(self, schemas: Iterable[Schema]) -> None:
        self.lines: list[str] = []
        self._numbers: dict[str, int] = {}
        self._uses: Counter[str] = Counter()
        for schema in schemas:
            self._count(schema)

    def number(self, schema: Schema) -> int:
        unit_resource = _line(schema)
        if unit_resource not in self._numbers:
            line = _line(self._inside(schema))
            self._numbers[unit_resource] = len(self.lines)
            self.lines.append(line)
        return self._numbers[unit_resource]

    def _count(self, schema: Schema) -> None:
        unit_resource = _line(schema)
        self._uses[unit_resource] += 1
        if self._uses[unit_resource] == 1:
            for part in _below(schema):
                self._count(part)

    def _inside(self, schema: Schema) -> Schema:
        return {**schema, **_children(schema, lambda part: self._placed(get_mapping(part)))}

    def _placed(self, schema: Schema) -> Json:
        is_shared = self._uses[_line(schema)] > 1
        return self.number(schema) if is_shared else self._inside(schema)


def _line(part: Json) -> str:
    return msgspec.json.encode(part).decode()


if __name__ == "__main__":
    main()
