"""What an applier no longer names goes: in one walk as in the three of a real server."""

from __future__ import annotations

import pytest

from tests.fakes.ownership_store import OwnershipStore, named, terms_for
from tests.fakes.sequence_answers import shape_for
from tests.fakes.write_sequences import Deed, Sequence, Step, random_sequences
from tidegate.model.objects import Json
from tidegate.sandbox.api.compare import fields_of, is_one_piece
from tidegate.sandbox.api.elements import FIELD, Element, item_element
from tidegate.sandbox.api.fields import NOTHING, Fields
from tidegate.sandbox.api.merge import merge
from tidegate.sandbox.api.plan import Plan, plan_of
from tidegate.sandbox.api.prune import pruned
from tidegate.sandbox.api.shape import Shape

SEQUENCES = random_sequences(80, seed=7)


def applied_to(store: OwnershipStore, step: Step) -> tuple[Json, Fields, tuple[Fields, ...]] | None:
    """What an apply prunes: the merged object, what was named last, and all that is named now."""
    if store.held is None or step.deed is not Deed.APPLY:
        return None
    terms = terms_for(store.kind, step.subresource)
    last = [
        entry
        for entry in store.held.owners
        if (entry.manager, entry.operation, entry.subresource)
        == (step.by, "Apply", step.subresource)
    ]
    if not last:
        return None
    intent = named(store.kind, step, name="thing", namespace="default")
    others = [entry.fields for entry in store.held.owners if entry not in last]
    merged = merge(store.held.body, intent, terms.shape)
    now = fields_of(intent, terms.shape).outside(terms.resets)
    return merged, last[0].fields, (now, *others)


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.shows)
def test_one_walk_comes_to_the_same_as_three(sequence: Sequence) -> None:
    store = OwnershipStore(sequence.kind)
    shape = shape_for(sequence.kind)
    for step in sequence.steps:
        if (given := applied_to(store, step)) is not None:
            assert pruned(*given, shape) == in_three_walks(*given, shape)
        store.run(step)


def test_a_field_below_a_place_that_nobody_names_goes_with_it() -> None:
    shape = shape_for(SEQUENCES[0].kind)
    merged: Json = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}
    last = fields_of({"metadata": {"labels": {"a": "b"}}}, shape)

    assert pruned(merged, last, (NOTHING,), shape) is None
    assert in_three_walks(merged, last, (NOTHING,), shape) is None


def in_three_walks(merged: Json, last: Fields, now: tuple[Fields, ...], shape: Shape) -> Json:
    """Take out what was named; put back what is named; put back what nobody named."""
    plan = plan_of(shape)
    wanted = NOTHING
    for fields in now:
        wanted |= fields
    gone = with_named(last, plan)
    there = with_named(fields_of(merged, shape), plan)
    left = with_named(fields_of(without(merged, gone, plan), shape), plan)
    unnamed = there - (left | with_named(wanted, plan))
    left = with_named(fields_of(without(merged, unnamed, plan), shape), plan)
    return without(merged, (there - left) & gone, plan)


def with_named(fields: Fields, plan: Plan) -> Fields:
    """The set and every named field on the way to what is in it."""
    below: dict[Element, Fields] = {}
    for element, inner in fields.below.items():
        name = element.removeprefix(FIELD)
        is_field = element.startswith(FIELD)
        found = with_named(inner, plan.children[name] if is_field else plan.items)
        is_named = is_field and name in plan.shape.fields
        below[element] = Fields(found.own or is_named, found.below)
    return Fields(fields.own, below)


def without(value: Json, fields: Fields, plan: Plan) -> Json:
    """The value but for these places; a container that has nothing left is null."""
    if not fields.below or not isinstance(value, dict | list):
        return value
    if not value or is_one_piece(value, plan):
        return None
    if isinstance(value, dict):
        left = {
            name: without(inner, fields.below.get(FIELD + name, NOTHING), plan.children[name])
            for name, inner in value.items()
            if not fields.below.get(FIELD + name, NOTHING).own
        }
        return {**left} or None
    found = [(item, fields.below.get(item_element(item, plan) or "", NOTHING)) for item in value]
    return [without(item, gone, plan.items) for item, gone in found if not gone.own] or None
