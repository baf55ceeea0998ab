"""Write down what a real control plane says of its kinds: `python -m plane.schemas`.

Asks for its discovery and its OpenAPI v3, and keeps what merging and checking need: types, list
and map types, keys with their defaults, required fields. No descriptions. One definition a line,
so that the next Kubernetes version shows as a diff.

A place is written as

    "string", "int32", "time" …     a scalar, or `any`, or `raw` (as one piece)
    "@Name"                         a definition
    ["list", place]                 replaced as a whole; `set`: distinct scalars
    ["keyed", place, {key: default}]
    ["map", place]                  field by field; `atomic`: as a whole; `granular`: where the
                                    definition itself says `atomic`
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from plane.cluster import ControlPlane
from plane.errors import PlaneError
from tests.support.cluster_client import ClusterClient
from tests.support.worlds import real_world
from tidegate.errors import sanitize
from tidegate.model.k8s.objects import Json, ServedKind
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import ApiResources, Outcome, RawResponse
from tidegate.world.requests import Discover, RawGet

Schema = dict[str, Json]

FOLDER = Path(__file__).parents[1] / "src" / "tidegate" / "schema"
OWN = "io.k8s."
"""How the names of Kubernetes' own definitions begin; those of CRDs have no place in the file."""
SCALARS = {
    ("boolean", ""): "boolean",
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("number", "double"): "number",
    ("string", ""): "string",
    ("string", "byte"): "byte",
    ("string", "date-time"): "time",
}
# What OpenAPI cannot say: Go types that read JSON by themselves.
SPECIAL = {
    "FieldsV1": "any",
    "IntOrString": "int-or-string",
    "JSON": "any",
    "JSONSchemaPropsOrArray": "any",
    "JSONSchemaPropsOrBool": "any",
    "JSONSchemaPropsOrStringArray": "any",
    "MicroTime": "time",
    "Quantity": "quantity",
    "RawExtension": "raw",
    "Time": "time",
}


def main() -> None:
    """Start a control plane, read it, write the file."""
    with ControlPlane.start() as plane:
        path, text = asyncio.run(read_plane(plane.kubeconfig("tidegate")))
    path.write_text(text)
    print(f"{path} ({len(text)} bytes)", file=sys.stderr)


async def read_plane(kubeconfig: Path) -> tuple[Path, str]:
    """The path of the file for the version of this server, and its text."""
    async with real_world(kubeconfig=kubeconfig) as world:
        client = ClusterClient(Dispatcher(world))
        (catalogue,) = await client.ask(Discover())
        if not isinstance(catalogue, ApiResources):
            raise PlaneError("plane.schemas", f"no kinds: {sanitize(str(catalogue))}")
        (version,) = await _documents(client, "/version")
        documents = await _openapi(client)
    models = {
        name: model
        for document in documents
        for name, model in _schema(_at(document, "components", "schemas")).items()
        if name.startswith(OWN)
    }
    release = str(_at(version, "gitVersion"))
    minor = ".".join(release.removeprefix("v").split(".")[:2])
    return FOLDER / f"kubernetes-{minor}.json", write(release, catalogue.kinds, models)


async def read_openapi(kubeconfig: Path) -> list[Json]:
    """The OpenAPI documents of a server, one for each group and version."""
    async with real_world(kubeconfig=kubeconfig) as world:
        return await _openapi(ClusterClient(Dispatcher(world)))


async def _openapi(client: ClusterClient) -> list[Json]:
    (index,) = await _documents(client, "/openapi/v3")
    groups = sorted(str(_at(place, "serverRelativeURL")) for place in _parts(index, "paths"))
    return await _documents(client, *(url for url in groups if "/apis/" in url or "/api/v1" in url))


async def _documents(client: ClusterClient, *paths: str) -> list[Json]:
    return [_document(answer) for answer in await client.ask(*(RawGet(path) for path in paths))]


def _document(answer: Outcome) -> Json:
    if not isinstance(answer, RawResponse):
        raise PlaneError("plane.schemas", f"no document: {sanitize(str(answer))}")
    document: Json = msgspec.json.decode(answer.body)
    return document


def write(release: str, kinds: Iterable[ServedKind], models: Schema) -> str:
    """The text of the data file. Same input, same bytes."""
    names = {_short(name): _schema(model) for name, model in models.items()}
    roots = dict(_roots(models))
    rows = [_row(served, roots[str(served.kind)]) for served in kinds if str(served.kind) in roots]
    reached = _reached([str(row[-1]) for row in rows], names)
    definitions = {name: _definition(names[name], names) for name in sorted(reached)}
    lines = ",\n".join(_line(row) for row in rows)
    types = ",\n".join(f"{_line(name)}:{_line(place)}" for name, place in definitions.items())
    return (
        f'{{"release":{_line(release)},\n"kinds":[\n{lines}\n],\n"definitions":{{\n{types}\n}}}}\n'
    )


def _row(served: ServedKind, root: str) -> list[Json]:
    kind = served.kind
    words = [" ".join(served.verbs), " ".join(served.subresources)]
    return [kind.group, kind.version, kind.name, served.plural, served.namespaced, *words, root]


def _roots(models: Schema) -> Iterator[tuple[str, str]]:
    for name, model in sorted(models.items()):
        for kind in _items(_schema(model).get("x-kubernetes-group-version-kind")):
            group, version, spoken = (str(_at(kind, part)) for part in ("group", "version", "kind"))
            yield f"{group}/{version} {spoken}".removeprefix("/"), _short(name)


def _reached(roots: Iterable[str], models: dict[str, Schema]) -> set[str]:
    reached: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in reached and _special(name) is None:
            reached.add(name)
            waiting.extend(_references(models[name]))
    return reached


def _references(schema: Json) -> Iterator[str]:
    match schema:
        case {"$ref": str(reference)}:
            yield _short(reference)
        case dict():
            for part in schema.values():
                yield from _references(part)
        case list():
            for part in schema:
                yield from _references(part)
        case _:
            pass


def _definition(schema: Schema, models: dict[str, Schema]) -> Json:
    """Fields, required ones, those that are always there, and whether the whole is one piece."""
    fields = _schema(schema.get("properties"))
    written: Schema = {
        "fields": {name: _place(_schema(fields[name]), models) for name in sorted(fields)}
    }
    if required := [str(name) for name in _items(schema.get("required"))]:
        written["required"] = [*sorted(required)]
    if always := [name for name in sorted(fields) if _schema(fields[name]).get("default") == {}]:
        written["always"] = [*always]
    if schema.get("x-kubernetes-map-type") == "atomic":
        written["atomic"] = True
    return written


def _place(schema: Schema, models: dict[str, Schema]) -> Json:
    if (name := next(_own_reference(schema), None)) is not None:
        place = _special(name) or f"@{name}"
        return ["granular", place] if schema.get("x-kubernetes-map-type") == "granular" else place
    match schema.get("type"):
        case "array":
            return _list(schema, models)
        case "object":
            relation = "atomic" if schema.get("x-kubernetes-map-type") == "atomic" else "map"
            return [relation, _place(_schema(schema["additionalProperties"]), models)]
        case scalar:
            return SCALARS[str(scalar), str(schema.get("format", ""))]


def _list(schema: Schema, models: dict[str, Schema]) -> Json:
    items = _schema(schema["items"])
    place = _place(items, models)
    match schema.get("x-kubernetes-list-type"):
        case "map":
            fields = _schema(models[next(_own_reference(items))]["properties"])
            names = [str(key) for key in _items(schema["x-kubernetes-list-map-keys"])]
            return ["keyed", place, {name: _schema(fields[name]).get("default") for name in names}]
        case "set":
            return ["set", place]
        case _:
            return ["list", place]


def _own_reference(schema: Schema) -> Iterator[str]:
    """The definition that a place is, where it is one."""
    for part in (schema, *_items(schema.get("allOf"))):
        if isinstance(part, dict) and "$ref" in part:
            yield _short(str(part["$ref"]))


def _special(name: str) -> str | None:
    return SPECIAL.get(name.rpartition(".")[2])


def _short(name: str) -> str:
    """`io.k8s.api.apps.v1.Deployment` as `apps.v1.Deployment`."""
    group, version, kind = name.rpartition("/")[2].split(".")[-3:]
    return f"{group}.{version}.{kind}"


def _at(document: Json, *path: str) -> Json:
    for part in path:
        document = _schema(document).get(part)
    return document


def _parts(document: Json, name: str) -> list[Json]:
    return [*_schema(_at(document, name)).values()]


def _schema(part: Json) -> Schema:
    return part if isinstance(part, dict) else {}


def _items(part: Json) -> list[Json]:
    return part if isinstance(part, list) else []


def _line(part: Json) -> str:
    return msgspec.json.encode(part).decode()


if __name__ == "__main__":
    main()
