"""Fields that an applier no longer names are removed: in one walk as in the three of a server."""

from __future__ import annotations

import pytest

from tests.support.cluster_client import ClusterClient
from tests.support.sequence_runner import Run, named, prepare
from tests.support.write_answers import shape_for
from tests.support.write_sequences import Operation, Sequence, Step, random_sequences
from tidegate.model.k8s.objects import Json
from tidegate.sandbox.ownership.compare import collect_fields, is_atomic_value
from tidegate.sandbox.ownership.fields import (
    EMPTY,
    FIELD_PREFIX,
    FieldSet,
    PathElement,
    element_for_item,
)
from tidegate.sandbox.ownership.layout import Layout, get_layout
from tidegate.sandbox.ownership.merge import merge, prune_dropped
from tidegate.sandbox.server.store import StoredObject
from tidegate.sandbox.world import Sandbox
from tidegate.schema.shape import Shape
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import NotFound

SEQUENCES = random_sequences(80, seed=7)


def fields_of(value: Json, shape: Shape) -> FieldSet:
    return collect_fields(value, shape)[0]


def applied_to(
    held: StoredObject | None, step: Step, run: Run
) -> tuple[Json, FieldSet, tuple[FieldSet, ...]] | None:
    """What an apply prunes: the merged object, what was named last, and all that is named now."""
    if held is None or step.operation is not Operation.APPLY:
        return None
    expected = (step.by, "Apply", step.subresource)
    last = [
        entry
        for entry in held.managed_fields
        if (entry.manager, entry.operation, entry.subresource) == expected
    ]
    if not last:
        return None
    shape = shape_for(run.ref.kind)
    intent = named(run.ref.kind, step, name=run.ref.name, namespace=run.ref.namespace)
    others = [entry.fields for entry in held.managed_fields if entry not in last]
    return merge(held.body, intent, shape), last[0].fields, (fields_of(intent, shape), *others)


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.shows)
async def test_a_single_pass_has_the_same_result_as_three(sequence: Sequence) -> None:
    sandbox = Sandbox()
    await prepare(ClusterClient(Dispatcher(sandbox)))
    server = sandbox.clusters[""].server
    shape, run = shape_for(sequence.kind), Run(sequence, "thing")
    while (step := run.step) is not None:
        if run.is_pointless:
            run.receive(NotFound(""))
            continue
        entry = server.registry.find(sequence.kind)
        held = server.store.get(entry.resource, run.ref.namespace, run.ref.name) if entry else None
        if (given := applied_to(held, step, run)) is not None:
            assert prune_dropped(*given, shape) == in_three_walks(*given, shape)
        run.receive(server.perform(run.request()))


def test_a_field_below_an_unowned_field_is_removed_with_it() -> None:
    shape = shape_for(SEQUENCES[0].kind)
    merged: Json = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}
    last = fields_of({"metadata": {"labels": {"a": "b"}}}, shape)

    assert prune_dropped(merged, last, (EMPTY,), shape) is None
    assert in_three_walks(merged, last, (EMPTY,), shape) is None


def in_three_walks(merged: Json, last: FieldSet, now: tuple[FieldSet, ...], shape: Shape) -> Json:
    """Take out what was named; put back what is named; put back what has no owner."""
    layout = get_layout(shape)
    expected = EMPTY
    for fields in now:
        expected |= fields
    gone = with_named(last, layout)
    there = with_named(fields_of(merged, shape), layout)
    left = with_named(fields_of(without(merged, gone, layout), shape), layout)
    unnamed = there - (left | with_named(expected, layout))
    left = with_named(fields_of(without(merged, unnamed, layout), shape), layout)
    return without(merged, (there - left) & gone, layout)


def with_named(fields: FieldSet, layout: Layout) -> FieldSet:
    """The set and every named field on the way to what is in it."""
    below: dict[PathElement, FieldSet] = {}
    for element, inner in fields.children.items():
        name = element.removeprefix(FIELD_PREFIX)
        is_field = element.startswith(FIELD_PREFIX)
        result = with_named(inner, layout.children[name] if is_field else layout.items)
        is_named = is_field and name in layout.shape.fields
        below[element] = FieldSet(result.is_member or is_named, result.children)
    return FieldSet(fields.is_member, below)


def without(value: Json, fields: FieldSet, layout: Layout) -> Json:
    """The value but for these places; a container that has nothing left is null."""
    if not fields.children or not isinstance(value, dict | list):
        return value
    if not value or is_atomic_value(value, layout):
        return None
    if isinstance(value, dict):
        left = {
            name: without(
                inner, fields.children.get(FIELD_PREFIX + name, EMPTY), layout.children[name]
            )
            for name, inner in value.items()
            if not fields.children.get(FIELD_PREFIX + name, EMPTY).is_member
        }
        return {**left} or None
    matches = [
        (item, fields.children.get(element_for_item(item, layout) or "", EMPTY)) for item in value
    ]
    return [
        without(item, gone, layout.items) for item, gone in matches if not gone.is_member
    ] or None
