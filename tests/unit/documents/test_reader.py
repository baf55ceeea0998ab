"""Objects of a file, their places, their duplicates, and Lists."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.documents import (
    Document,
    DuplicateKey,
    find_location,
    find_locations,
    read_documents,
    reject_duplicates,
)
from tidegate.errors import DocumentError, Location
from tidegate.model.k8s.objects import FieldPath

LIST = """\
# two objects
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: A
  metadata:
    name: one
- apiVersion: v1
  kind: List
  items:
  - {apiVersion: v1, kind: B}
  -
    kind: C
    apiVersion: v1
"""

SHARED = """\
kind: A
base: &base
  image: web:1
  ports: [80, 81]
web:
  <<: *base
  replicas: 2
copy: *base
yes: 1
"""


def at(line: int, column: int) -> Location:
    return Location("some.yaml", line, column)


def refusal(source: str) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        read_documents(source, "some.yaml")
    return caught.value


def only(source: str) -> Document:
    (document,) = read_documents(source, "some.yaml")
    return document


def test_the_location_of_an_object_is_the_start_of_its_mapping() -> None:
    documents = read_documents(
        "# note\n\nkind: A\n---\n# note\nkind: B\n---\n\n  kind: C\n", "some.yaml"
    )

    assert [document.location for document in documents] == [at(3, 1), at(6, 1), at(9, 3)]


def test_a_document_does_not_print_its_body() -> None:
    assert repr(only("kind: Secret\npassword: hunter2\n")) == "Document(some.yaml:1:1)"


@pytest.mark.parametrize("source", ["- kind: A\n", "word\n", "3\n", '""\n', "[]\n"])
def test_a_document_that_is_not_a_mapping_is_rejected(source: str) -> None:
    error = refusal("---\n" + source)

    assert (error.code, error.location) == ("documents.object", at(2, 1))


def test_a_list_is_read_as_its_items_each_with_its_line() -> None:
    documents = read_documents(LIST, "some.yaml")

    assert [document.body["kind"] for document in documents] == ["A", "B", "C"]
    assert [document.location for document in documents] == [at(5, 3), at(12, 5), at(14, 5)]


def test_items_of_a_list_with_a_kind_of_its_own_get_that_kind() -> None:
    source = "apiVersion: x/v1\nkind: AList\nitems:\n- {a: 1}\n- {kind: B, apiVersion: v1}\n"

    bodies = [document.body for document in read_documents(source, "some.yaml")]

    assert bodies == [
        {"a": 1, "apiVersion": "x/v1", "kind": "A"},
        {"kind": "B", "apiVersion": "v1"},
    ]


def test_items_of_a_plain_list_are_left_as_they_are() -> None:
    assert only("apiVersion: v1\nkind: List\nitems: [{a: 1}]\n").body == {"a": 1}


@pytest.mark.parametrize("items", ["[]", "null", ""])
def test_an_empty_list_gives_no_object(items: str) -> None:
    assert read_documents(f"kind: List\nitems: {items}\n", "some.yaml") == ()


@pytest.mark.parametrize("source", ["kind: List\n", "kind: A\nitems: [1]\n", "items: [1]\n"])
def test_an_object_that_resembles_a_list_is_an_object(source: str) -> None:
    assert len(read_documents(source, "some.yaml")) == 1


def test_items_that_are_no_list_are_refused() -> None:
    error = refusal("kind: List\nitems: {}\n")

    assert (error.code, error.location) == ("documents.list", at(2, 1))


@pytest.mark.parametrize("item", ["null", "word", "[]"])
def test_an_item_that_is_no_mapping_is_refused(item: str) -> None:
    error = refusal(f"kind: List\nitems:\n- {{kind: A}}\n- {item}\n")

    assert (error.code, error.location) == ("documents.object", at(4, 3))


def test_a_key_written_twice_is_reported_with_both_places_and_the_last_counts() -> None:
    document = only("kind: A\nspec:\n  ports:\n  - {port: 80, port: 81}\n")

    assert document.body["spec"] == {"ports": [{"port": 81}]}
    assert document.duplicates == (DuplicateKey(("spec", "ports", 0, "port"), at(4, 6), at(4, 16)),)


def test_a_key_written_three_times_is_reported_twice() -> None:
    twice = only("a: 1\na: 2\na: 3\n").duplicates

    assert [(each.first.line, each.last.line) for each in twice] == [(1, 2), (2, 3)]


def test_keys_that_become_equal_are_duplicates() -> None:
    (twice,) = only('1: a\n"1": b\n').duplicates

    assert twice.path == ("1",)


def test_a_merged_key_that_is_overridden_is_no_duplicate() -> None:
    assert only("a: &a {x: 1}\nb: {<<: *a, x: 2}\nc: {x: 3, <<: *a}\n").duplicates == ()


def test_duplicates_belong_to_their_list_item() -> None:
    source = "kind: List\nitems:\n- {kind: A}\n- {kind: B, items: [{c: 1, c: 2}]}\n"

    first, second = read_documents(source, "some.yaml")

    assert first.duplicates == ()
    assert [twice.path for twice in second.duplicates] == [("items", 0, "c")]


def test_duplicates_of_the_list_itself_are_reported_with_its_first_item() -> None:
    source = "kind: List\nitems:\n- {kind: A}\nitems:\n- {kind: B}\n- {kind: C}\n"

    first, second = read_documents(source, "some.yaml")

    assert (first.body["kind"], second.duplicates) == ("B", ())
    assert [twice.path for twice in first.duplicates] == [("items",)]


def test_a_caller_may_refuse_duplicates(wording: RecordedWording) -> None:
    documents = read_documents("kind: A\nmetadata:\n  name: a\n  name: b\n", "some.yaml")

    with pytest.raises(DocumentError) as caught:
        reject_duplicates(documents)

    assert caught.value.code == "documents.duplicate"
    wording(str(caught.value))


def test_duplicates_in_one_line_are_reported_with_that_line(wording: RecordedWording) -> None:
    documents = read_documents("kind: A\ndata: {a: 1, a: 2}\n", "some.yaml")

    with pytest.raises(DocumentError) as caught:
        reject_duplicates(documents)

    assert caught.value.code == "documents.duplicate"
    wording(caught.value.problem)


def test_a_file_without_duplicates_is_not_refused() -> None:
    reject_duplicates(read_documents(LIST, "some.yaml"))


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ((), at(1, 1)),
        (("base",), at(2, 1)),
        (("base", "ports", 1), at(4, 15)),
        (("web", "replicas"), at(7, 3)),
        (("web", "image"), at(3, 3)),
        (("copy",), at(8, 1)),
        (("copy", "ports", 0), at(4, 11)),
        (("true",), at(9, 1)),
        (("base", "ports", 7), at(4, 3)),
        (("base", "absent", "deeper"), at(2, 1)),
    ],
)
def test_a_place_is_found_again_by_its_path(path: FieldPath, place: Location) -> None:
    location = find_location(SHARED, only(SHARED), path)

    assert (location.line, location.column) == (place.line, place.column)


def test_a_location_has_its_field() -> None:
    source = "metadata: {labels: {app.dev/name: web}}\nlist: [{a: 1}]\n"
    document = only(source)

    places = find_locations(
        source, [(document, ("metadata", "labels", "app.dev/name")), (document, ("list", 0, "a"))]
    )

    assert [str(place) for place in places] == [
        'some.yaml:1:21 (metadata.labels["app.dev/name"])',
        "some.yaml:2:9 (list[0].a)",
    ]


def test_places_are_found_in_items_and_in_later_documents() -> None:
    source = "kind: X\n---\n" + LIST
    _, item, two, three = read_documents(source, "some.yaml")

    places = find_locations(
        source, [(item, ("metadata", "name")), (two, ("kind",)), (three, ("apiVersion",))]
    )

    assert [(place.line, place.column) for place in places] == [(10, 5), (14, 22), (17, 5)]


@pytest.mark.parametrize("changed", ["", "kind: {", "--- text", "# note"])
def test_a_file_that_has_changed_gives_the_old_place(changed: str) -> None:
    document = only("kind: A\nspec: {a: 1}\n")

    place = find_location(changed, document, ("spec", "a"))

    assert (place.line, place.column, place.field) == (1, 1, "spec.a")


def test_no_paths_have_no_locations() -> None:
    assert find_locations(LIST, []) == ()
