"""Live objects for comparisons, as a server would tell them."""

from __future__ import annotations

import msgspec

from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.units.ignore_differences import DifferencePaths
from tidegate.plan.diff.owned_fields import Fields, entry_fields, is_applied_by, managed_entries
from tidegate.workers.jq_worker import JqQuery, JqReply, evaluate

OURS = "tidegate"


def find_paths(
    expressions: tuple[str, ...], bodies: tuple[JsonObject, ...]
) -> tuple[DifferencePaths, ...]:
    """What jq says, without a worker: these expressions are our own."""
    question = JqQuery(expressions, tuple(map(msgspec.json.encode, bodies)))
    reply = evaluate(msgspec.msgpack.encode(question))
    return msgspec.msgpack.decode(reply, type=JqReply).paths


def an_entry(
    manager: str, fields: JsonObject, *, operation: str = "Apply", **parts: Json
) -> JsonObject:
    head: JsonObject = {"manager": manager, "operation": operation, "apiVersion": "v1"}
    return {**head, "fieldsType": "FieldsV1", "fieldsV1": fields, **parts}


def fields_of(live: JsonObject, manager: str) -> Fields:
    """What a manager owns by having applied it."""
    ours = (entry for entry in managed_entries(live) if is_applied_by(entry, manager))
    return next(map(entry_fields, ours), {})


def a_live(body: JsonObject, *entries: JsonObject, **metadata: Json) -> JsonObject:
    """The live body: with an identity, and with these owners."""
    result: JsonObject = {
        **get_mapping(body, "metadata"),
        "uid": "1",
        "resourceVersion": "7",
        "managedFields": [*entries],
        **metadata,
    }
    return {**body, "metadata": result}


def applied(body: JsonObject, *entries: JsonObject, manager: str = OURS) -> JsonObject:
    """The live body after a manager has applied it, with atomic lists."""
    text: JsonObject = {name: body[name] for name in body if name not in {"apiVersion", "kind"}}
    metadata = {
        name: value for name, value in get_mapping(body, "metadata").items() if name != "name"
    }
    text["metadata"] = metadata
    if not metadata:
        del text["metadata"]
    return a_live(body, an_entry(manager, _fields(text)), *entries)


def _fields(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        return {}
    return {f"f:{name}": _fields(inner) for name, inner in value.items()}
