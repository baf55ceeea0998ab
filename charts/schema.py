"""Makes the JSON schema of a chart's values: what is not known is refused, at every depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from charts.values import Value

Schema = dict[str, object]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TEXT: Schema = {"type": "string"}
NATURAL: Schema = {"type": "integer", "minimum": 0}
PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}
OBJECT: Schema = {"type": "object"}
TEXTS: Schema = {"type": "array", "items": TEXT}


def _closed(properties: Mapping[str, object], required: Sequence[str] = ()) -> Schema:
    schema: Schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**schema, "required": [*required]} if required else schema


def _named(each: Schema) -> Schema:
    """A mapping whose keys become parts of names."""
    names: Schema = {"pattern": "^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$"}
    return {"type": "object", "propertyNames": names, "additionalProperties": each}


_RUN: Schema = {"command": TEXTS, "args": TEXTS, "resources": OBJECT}
_CRON: Schema = {
    **_RUN,
    "schedule": TEXT,
    "concurrencyPolicy": {"enum": ["Allow", "Forbid", "Replace"]},
    "activeDeadlineSeconds": NATURAL,
}
_PATH = _closed({"path": TEXT, "pathType": TEXT}, ["path"])
_HOST = _closed({"host": TEXT, "paths": {"type": "array", "items": _PATH}}, ["host"])

KINDS: Mapping[str, Schema] = {
    "string": TEXT,
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer"},
    "natural": NATURAL,
    "port": PORT,
    "null": {"type": "null"},
    "object": OBJECT,
    "map": {"type": "object", "additionalProperties": TEXT},
    "strings": TEXTS,
    "objects": {"type": "array", "items": OBJECT},
    "references": {"type": "array", "items": _closed({"name": TEXT}, ["name"])},
    "workers": _named(_closed({**_RUN, "replicas": NATURAL}, ["command"])),
    "cronjobs": _named(_closed(_CRON, ["schedule", "command"])),
    "hosts": {"type": "array", "items": _HOST},
}
"""Types for the words in parentheses in values.yaml. Any other word is a type itself."""


def schema_of(values: Sequence[Value], *, library: str) -> Schema:
    """The schema of a chart that uses a library, which is there as a subchart."""
    root: dict[str, object] = {"global": OBJECT, library: OBJECT}
    for value in values:
        _place(root, value.path, {"description": value.text, **_of_kind(value.kind)})
    return {"$schema": DIALECT, **_closed(root)}


def _place(properties: dict[str, object], path: tuple[str, ...], schema: Schema) -> None:
    name, *below = path
    if not below:
        properties[name] = schema
        return
    section = properties.setdefault(name, _closed({}))
    inner = section.get("properties") if isinstance(section, dict) else None
    if not isinstance(inner, dict):
        raise TypeError(f"`{name}` is a value and cannot have `{'.'.join(below)}` in it")
    _place(inner, tuple(below), schema)


def _of_kind(kind: str) -> Schema:
    words = [word.strip() for word in kind.split("|")]
    choices = [KINDS[word] for word in words if word in KINDS]
    literals = [word.strip('"') for word in words if word not in KINDS]
    if literals:
        choices.append({"enum": literals})
    return choices[0] if len(choices) == 1 else {"anyOf": choices}
