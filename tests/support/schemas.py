"""Just enough of JSON Schema and of XML Schema to hold our own documents against."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast
from xml.etree.ElementTree import Element, parse

from tidegate.model.k8s.objects import Json

XS = "{http://www.w3.org/2001/XMLSchema}"
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
Schema = dict[str, Json]


def json_flaws(value: Json, schema: Schema, root: Schema, path: str = "$") -> Iterator[str]:
    """Where a value is not what a schema asks for."""
    if isinstance(ref := schema.get("$ref"), str):
        target: Json = root
        for part in ref.removeprefix("#/").split("/"):
            target = cast("Schema", target)[part]
        yield from json_flaws(value, cast("Schema", target), root, path)
        return
    kind = schema.get("type")
    if isinstance(kind, str) and not isinstance(value, TYPES[kind]):
        yield f"{path} is no {kind}"
        return
    yield from _scalar(value, schema, path)
    yield from _several(value, schema, root, path)
    if isinstance(value, dict):
        yield from _object(value, schema, root, path)
    if isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        for at, item in enumerate(value):
            yield from json_flaws(item, items, root, f"{path}[{at}]")


def _scalar(value: Json, schema: Schema, path: str) -> Iterator[str]:
    if "enum" in schema and value not in cast("list[Json]", schema["enum"]):
        yield f"{path} is not one of {schema['enum']}"
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and isinstance(value, str) and not re.search(pattern, value):
        yield f"{path} does not match {pattern}"
    least = schema.get("minimum")
    if isinstance(least, int) and isinstance(value, int) and value < least:
        yield f"{path} is less than {least}"


def _several(value: Json, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    for key in ("anyOf", "oneOf"):
        options = cast("list[Schema]", schema.get(key, []))
        if options and all([*json_flaws(value, option, root, path)] for option in options):
            yield f"{path} fits none of {key}"


def _object(value: Schema, schema: Schema, root: Schema, path: str) -> Iterator[str]:
    known = cast("dict[str, Schema]", schema.get("properties", {}))
    for key in cast("list[str]", schema.get("required", [])):
        if key not in value:
            yield f"{path} lacks {key}"
    for key, item in value.items():
        if key in known:
            yield from json_flaws(item, known[key], root, f"{path}.{key}")
        elif schema.get("additionalProperties") is False:
            yield f"{path} has {key}"


def xml_flaws(element: Element, xsd: str) -> Iterator[str]:
    """Where an element has attributes or children that its declaration does not."""
    top = {item.get("name"): item for item in parse(xsd).getroot().findall(f"{XS}element")}  # noqa: S314 - it is our own file
    yield from _xml(element, top)


def _xml(element: Element, top: dict[str | None, Element]) -> Iterator[str]:
    declared = top.get(element.tag)
    if declared is None:
        yield f"there is no element {element.tag}"
        return
    attributes = {item.get("name"): item.get("use") for item in declared.iter(f"{XS}attribute")}
    children = {item.get("ref") for item in declared.iter(f"{XS}element")} - {None}
    yield from (f"{element.tag} has {item}" for item in element.attrib if item not in attributes)
    for name, use in attributes.items():
        if use == "required" and name not in element.attrib:
            yield f"{element.tag} lacks {name}"
    for child in element:
        if child.tag not in children:
            yield f"{element.tag} holds {child.tag}"
        yield from _xml(child, top)
