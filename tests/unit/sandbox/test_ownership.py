"""Owners of fields after a write. Answers of real servers are in test_ownership_recorded."""

from __future__ import annotations

import pytest

from tests.support.objects import CONFIG_MAP, DEPLOYMENT
from tests.support.write_answers import gate_shape, shape_for
from tests.support.write_sequences import GATE
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.sandbox.ownership.fields import EMPTY, field_set_from_paths, to_fields_v1
from tidegate.sandbox.ownership.owners import (
    ManagedFields,
    ManagedFieldsEntry,
    Operation,
    keep_unchanged_times,
    managed_fields_for_update,
    managed_fields_to_json,
    parse_managed_fields,
    sort_entries,
)
from tidegate.sandbox.ownership.rules import (
    ApplyConflicts,
    ApplyResult,
    Author,
    InvalidIntent,
    WriteScope,
    apply_intent,
    build_blank,
    get_reset_fields,
    update_managed_fields,
)
from tidegate.schema.shape import Merge, Shape, Type
from tidegate.schema.types import find_typed_problems
from tidegate.world.messages import Cause, FieldOwner

SHAPE = shape_for(CONFIG_MAP)
SCOPE = WriteScope(shape=SHAPE, version="v1", blank=build_blank(SHAPE))


def a_config_map(**data: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "web", "uid": "1"},
        "data": {**data},
    }


def applied(
    live: JsonObject | None, owners: ManagedFields, intent: JsonObject, by: Author
) -> ApplyResult:
    result = apply_intent(live, owners, intent, author=by, scope=SCOPE, force=False)
    assert isinstance(result, ApplyResult)
    return result


def an_entry(manager: str, *path: str, time: str = "", **parts: str) -> ManagedFieldsEntry:
    return ManagedFieldsEntry(
        manager=manager,
        operation=Operation(parts.get("operation", "Update")),
        version="v1",
        time=time,
        subresource=parts.get("subresource", ""),
        fields=field_set_from_paths([path or ("f:data", f"f:{manager}")]),
    )


def test_an_apply_that_changes_nothing_gives_the_live_object_itself() -> None:
    first = applied(None, (), a_config_map(color="red"), Author("anna", "1"))

    again = applied(
        first.body, first.managed_fields, a_config_map(color="red"), Author("anna", "2")
    )

    assert again.body is first.body
    assert again.managed_fields is first.managed_fields


def test_conflicts_name_the_owners_of_the_fields() -> None:
    live = a_config_map(color="red", size="s")
    owners = (
        an_entry("anna", "f:data", "f:color", operation="Apply"),
        an_entry("bert", "f:data", "f:size", subresource="status"),
    )

    result = apply_intent(
        live,
        owners,
        a_config_map(color="blue", size="m"),
        author=Author("cleo", "1"),
        scope=SCOPE,
        force=False,
    )

    assert result == ApplyConflicts(
        (FieldOwner("anna", "data.color"), FieldOwner("bert", "data.size")),
        'Apply failed with 2 conflicts: conflicts with "anna":\n- .data.color\n'
        'conflicts with "bert" with subresource "status" using v1:\n- .data.size',
    )


def test_one_conflict_is_one_line() -> None:
    owners = (an_entry("anna", "f:data", "f:color"),)
    intent = a_config_map(color="blue")

    result = apply_intent(
        a_config_map(color="red"),
        owners,
        intent,
        author=Author("bert", ""),
        scope=SCOPE,
        force=False,
    )

    assert isinstance(result, ApplyConflicts)
    assert result.message == (
        'Apply failed with 1 conflict: conflict with "anna" using v1: .data.color'
    )


def test_an_invalid_intent_is_reported_before_anything_else() -> None:
    intent = {**a_config_map(), "dat": {}}

    result = apply_intent(None, (), intent, author=Author("anna", "1"), scope=SCOPE, force=True)

    assert result == InvalidIntent((Cause("dat", "unknown", "unknown field"),))


def test_names_times_and_versions_of_an_object_have_no_owner() -> None:
    after = a_config_map(color="red")

    owners = update_managed_fields(SCOPE.blank, after, (), author=Author("anna", "1"), scope=SCOPE)

    assert to_fields_v1(owners[0].fields) == {"f:data": {".": {}, "f:color": {}}}


def test_a_writer_without_a_name_is_unknown() -> None:
    owners = update_managed_fields(
        SCOPE.blank, a_config_map(a="b"), (), author=Author("", "1"), scope=SCOPE
    )

    assert [entry.manager for entry in owners] == ["unknown"]


def test_more_than_ten_updaters_are_put_together_from_the_oldest_on() -> None:
    owners = tuple(an_entry(f"m{n:02}", time=f"{n:02}") for n in range(10))
    before = a_config_map()

    after = update_managed_fields(
        before, a_config_map(new="x"), owners, author=Author("new", "99"), scope=SCOPE
    )

    assert [entry.manager for entry in after] == [
        "ancient-changes",
        *(f"m{n:02}" for n in range(2, 10)),
        "new",
    ]
    assert after[0].time == "01"
    assert to_fields_v1(after[0].fields) == {"f:data": {"f:m00": {}, "f:m01": {}}}


def test_appliers_are_first_then_the_oldest() -> None:
    later, early = an_entry("a", time="2"), an_entry("b", time="1")
    applier = an_entry("c", time="3", operation="Apply")

    assert sort_entries([later, early, applier]) == (applier, early, later)


def test_entries_are_written_as_they_were_read() -> None:
    written: Json = [
        {
            "manager": "anna",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:color": {}}},
            "subresource": "status",
        }
    ]

    owners = parse_managed_fields(written)

    assert owners is not None
    assert managed_fields_to_json(owners) == written


@pytest.mark.parametrize(
    "entry",
    [
        {"operation": "Take", "apiVersion": "v1", "fieldsType": "FieldsV1"},
        {"operation": "Apply", "apiVersion": "", "fieldsType": "FieldsV1"},
        {"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV2"},
        {"operation": "Apply", "apiVersion": "v1"},
    ],
)
def test_entries_that_cannot_be_read_do_not_count(entry: JsonObject) -> None:
    live = (an_entry("anna"),)

    assert parse_managed_fields([entry]) is None
    assert managed_fields_for_update(live, [entry]) == live


def test_managed_fields_are_cleared_by_an_empty_list_except_by_a_subresource() -> None:
    live = (an_entry("anna"),)

    assert managed_fields_for_update(live, []) == ()
    assert managed_fields_for_update(live, [{}]) == ()
    assert managed_fields_for_update(live, None) == live
    assert managed_fields_for_update(live, [], subresource="status") == live


def test_new_times_alone_do_not_count() -> None:
    before, later = (an_entry("anna", time="1"),), (an_entry("anna", time="2"),)
    more = (an_entry("anna", time="2"), an_entry("bert"))

    assert keep_unchanged_times(before, later) is before
    assert keep_unchanged_times(before, more) is more


@pytest.mark.parametrize(
    ("kind", "subresource", "is_custom", "paths"),
    [
        (DEPLOYMENT, "", False, [["f:status"]]),
        (DEPLOYMENT, "status", False, [["f:spec"], ["f:metadata", "f:labels"]]),
        (GATE, "status", True, [["f:spec"], ["f:metadata"]]),
        (GATE, "", True, [["f:status"]]),
        (Kind("", "v1", "Namespace"), "finalize", False, [["f:status"]]),
    ],
)
def test_a_write_does_not_own_fields_that_it_cannot_change(
    kind: Kind, subresource: str, *, is_custom: bool, paths: list[list[str]]
) -> None:
    reset_fields = get_reset_fields(
        kind, subresource=subresource, has_status=True, is_custom=is_custom
    )

    assert reset_fields == field_set_from_paths(paths)


def test_a_kind_without_a_status_resets_nothing() -> None:
    assert get_reset_fields(CONFIG_MAP, has_status=False) is EMPTY


def test_a_blank_object_has_its_structs_and_the_lists_that_are_never_left_out() -> None:
    text = Shape(type=Type.STRING, merge=Merge.ATOMIC)
    texts = Shape(type=Type.ARRAY, merge=Merge.ATOMIC, items=lambda: text)
    spec = Shape(
        type=Type.OBJECT,
        merge=Merge.FIELDS,
        fields={"must": lambda: texts, "may": lambda: texts, "name": lambda: text},
        required=frozenset({"must", "name"}),
    )
    root = Shape(
        type=Type.OBJECT,
        merge=Merge.FIELDS,
        fields={"spec": lambda: spec, "status": lambda: spec, "kind": lambda: text},
        always=frozenset({"spec"}),
    )

    assert build_blank(root) == {"spec": {"must": None}}


@pytest.mark.parametrize(
    ("spec", "field", "problem"),
    [
        ({"map": [{"name": "a"}, {"name": "a"}]}, "map", 'duplicate entries for key [name="a"]'),
        ({"set": [None]}, "set", "element 0: associative list without keys has an element"),
        ({"set": [{}]}, "set", "element 0: associative list without keys has an element"),
        ({"map": ["a"]}, "map", "element 0: associative list with keys may not have non-map"),
        ({"map": [{}]}, "map", "element 0: associative list with keys has an element that omits"),
        ({"map": [{"name": "a", "port": "x"}]}, 'map[name="a"].port', "expected numeric"),
        ({"atomic": ["x", 1]}, "atomic[1]", "expected string"),
        ({"size": True}, "size", "expected numeric"),
        ({"color": {}}, "color", "expected string"),
    ],
)
def test_an_intent_that_violates_its_schema_is_reported_with_the_field(
    spec: JsonObject, field: str, problem: str
) -> None:
    typed_problems = find_typed_problems({"spec": spec}, gate_shape())

    assert [cause.field for cause in typed_problems] == [f"spec.{field}"]
    assert typed_problems[0].message.startswith(problem)
