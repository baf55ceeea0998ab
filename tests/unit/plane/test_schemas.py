"""How a server's OpenAPI becomes the data file."""

from __future__ import annotations

import msgspec

from plane.schemas import write
from tidegate.model.k8s.objects import Json, Kind, ServedKind

Schema = dict[str, Json]

PORTS = "#/components/schemas/io.example.api.core.v1.Port"
GATE = ServedKind(Kind("", "v1", "Gate"), "gates", True, ("get", "list"), ("status",))
PORT: Schema = {
    "type": "object",
    "description": "left out",
    "required": ["port"],
    "properties": {
        "port": {"type": "integer", "format": "int32", "default": 0},
        "protocol": {"type": "string", "default": "TCP"},
    },
}
MODELS: Schema = {
    "io.example.api.core.v1.Port": PORT,
    "io.example.api.core.v1.Stray": {"type": "object"},
    "io.example.api.core.v1.Gate": {
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "Gate", "version": "v1"}],
        "properties": {
            "args": {"type": "array", "items": {"type": "string", "default": ""}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "main": {"allOf": [{"$ref": PORTS}], "default": {}},
            "names": {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "set",
            },
            "ports": {
                "type": "array",
                "items": {"allOf": [{"$ref": PORTS}]},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
            },
            "selector": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "x-kubernetes-map-type": "atomic",
            },
            "size": {"$ref": "#/x/io.example.apimachinery.pkg.api.resource.Quantity"},
        },
    },
}


def test_kinds_and_what_they_reach_are_written_and_nothing_else() -> None:
    written = msgspec.json.decode(write("v1.36.4", [GATE], MODELS))

    assert written["release"] == "v1.36.4"
    assert written["kinds"] == [
        ["", "v1", "Gate", "gates", True, "get list", "status", "core.v1.Gate"]
    ]
    assert [*written["definitions"]] == ["core.v1.Gate", "core.v1.Port"]


def test_places_are_written_in_short() -> None:
    written = msgspec.json.decode(write("v1.36.4", [GATE], MODELS))

    assert written["definitions"]["core.v1.Gate"]["fields"] == {
        "args": ["list", "string"],
        "labels": ["map", "string"],
        "main": "@core.v1.Port",
        "names": ["set", "string"],
        "ports": ["keyed", "@core.v1.Port", {"port": 0, "protocol": "TCP"}],
        "selector": ["atomic", "string"],
        "size": "quantity",
    }
    assert written["definitions"]["core.v1.Port"] == {
        "fields": {"port": "int32", "protocol": "string"},
        "required": ["port"],
    }


def test_the_same_input_gives_the_same_text() -> None:
    turned: Schema = dict(reversed(MODELS.items()))

    assert write("v1.36.4", [GATE], turned) == write("v1.36.4", [GATE], MODELS)
