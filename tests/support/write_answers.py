"""What can be compared of two answers to a write: the written fields and their owners."""

from __future__ import annotations

from functools import cache

import msgspec

from tests.support.objects import DEPLOYMENT, a_definition
from tests.support.write_sequences import GATE, Answer, FieldOwner, Sequence, Step
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.sandbox.ownership.compare import collect_all_fields, is_atomic_value
from tidegate.sandbox.ownership.fields import (
    EMPTY,
    FIELD_PREFIX,
    FieldSet,
    element_for_item,
    field_set_from_paths,
    parse_fields_v1,
    to_fields_v1,
)
from tidegate.sandbox.ownership.layout import Layout, get_layout
from tidegate.schema.builtin import find_shape
from tidegate.schema.shape import Shape
from tidegate.schema.structural import shapes_from_crd


@cache
def gate_shape() -> Shape:
    return shapes_from_crd(a_definition(GATE.group)["spec"])["v1"]


def shape_for(kind: Kind) -> Shape:
    shape = gate_shape() if kind == GATE else find_shape(kind)
    assert shape is not None
    return shape


def owners_of(written: Json) -> list[FieldOwner]:
    """Managed fields, as a server wrote them, in a form that can be compared."""
    entries = [_as_body(entry) for entry in written] if isinstance(written, list) else []
    return [
        FieldOwner(
            manager=str(entry.get("manager", "")),
            operation=str(entry["operation"]),
            subresource=str(entry.get("subresource", "")),
            timed="time" in entry,
            fields=_as_body(entry["fieldsV1"]),
        )
        for entry in entries
    ]


def spoken_of(sequence: Sequence) -> FieldSet:
    """Every place that some step of a sequence names."""
    layout = get_layout(shape_for(sequence.kind))
    result = EMPTY
    for step in sequence.steps:
        for body in _bodies_of(step):
            result |= collect_all_fields(body, layout)
    return FieldSet(False, result.children).recursive_difference(
        field_set_from_paths([["f:metadata", "f:managedFields"]])
    )


def _bodies_of(step: Step) -> list[Json]:
    if not isinstance(step.body, list):
        return [step.body]
    bodies: list[Json] = []
    for operation in step.body:
        known = _as_body(operation)
        value = known.get("value")
        for name in reversed(str(known["path"]).removeprefix("/").split("/")):
            value = {name: value}
        bodies.append(value)
    return bodies


def narrowed(answer: Answer, spoken: FieldSet, shape: Shape) -> Answer:
    """The answer without fields that only server defaults set."""
    owners = [
        msgspec.structs.replace(owner, fields=to_fields_v1(parse_fields_v1(owner.fields) & spoken))
        for owner in answer.owners
    ]
    return msgspec.structs.replace(
        answer,
        # Controllers write the status of a Deployment at any time.
        is_new_version=answer.is_new_version or shape is find_shape(DEPLOYMENT),
        body=only(answer.body, spoken, get_layout(shape)),
        owners=sorted((owner for owner in owners if owner.fields), key=_by_name),
    )


def _by_name(owner: FieldOwner) -> tuple[str, str, str]:
    return owner.manager, owner.operation, owner.subresource


def only(value: Json, fields: FieldSet, layout: Layout) -> Json:
    """A value with nothing but these places in it."""
    if is_atomic_value(value, layout):
        return value
    if isinstance(value, dict):
        return {
            name: only(value[name], fields.children[FIELD_PREFIX + name], layout.children[name])
            for name in sorted(value)
            if FIELD_PREFIX + name in fields.children
        }
    if isinstance(value, list):
        matches = (
            (item, fields.children.get(element_for_item(item, layout) or "")) for item in value
        )
        return [only(item, known, layout.items) for item, known in matches if known is not None]
    return value


def _as_body(value: Json) -> JsonObject:
    assert isinstance(value, dict), value
    return value
