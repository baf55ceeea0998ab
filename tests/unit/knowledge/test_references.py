"""References and products of objects: every row about references and producers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.documents.reader import read_first_value
from tidegate.knowledge.fields import find_fields, parse_field_pattern
from tidegate.knowledge.named_objects import Reference, ReferenceFinder
from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.knowledge.settings import get_data
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.operators.rows import Knowledge, ReferenceRow
from tidegate.schema.builtin import find_shape, served_kinds
from tidegate.schema.shape import Shape

DATA = Path(__file__).parents[2] / "data"
KNOWN = load_builtin_knowledge()
NAMING = ReferenceFinder.from_knowledge(KNOWN)


def entries(name: str) -> list[JsonObject]:
    first_value: Json = read_first_value((DATA / name).read_bytes(), name)
    return get_mappings(first_value)


REFERENCES = entries("references.yaml")
PRODUCERS = entries("producers.yaml")


def kind_of(body: JsonObject) -> Kind:
    return Kind.of(get_text(body, "apiVersion"), get_text(body, "kind"))


def references_of(naming: ReferenceFinder, body: JsonObject) -> list[Reference]:
    kind = kind_of(body)
    return list(naming.find_references(body, kind, naming.find_pod_template(body, kind)))


def reference_text(item: Reference) -> str:
    group = f"{item.group} " if item.group else ""
    namespace = f"{item.namespace}/" if item.namespace else ""
    key = f" key {item.keys[0]}" if item.keys else ""
    return f"{group}{item.kind} {namespace}{item.name}{key}: {item.effect}, {item.until}"


@pytest.mark.parametrize("entry", REFERENCES)
def test_an_object_has_the_references_of_its_fields(entry: JsonObject) -> None:
    body = get_mapping(entry, "object")

    assert [reference_text(reference) for reference in references_of(NAMING, body)] == get_list(
        entry, "names"
    )


@pytest.mark.parametrize("row", KNOWN.references)
def test_each_row_about_references_has_an_entry(row: ReferenceRow) -> None:
    alone = ReferenceFinder.from_knowledge(Knowledge(references=(row,), pods=KNOWN.pods))

    for at in row.at:
        only = ReferenceFinder.from_knowledge(
            Knowledge(references=(_at(row, at),), pods=KNOWN.pods),
        )
        assert any(
            references_of(only, get_mapping(reference, "object")) for reference in REFERENCES
        ), at
    assert any(references_of(alone, get_mapping(reference, "object")) for reference in REFERENCES)


def _at(row: ReferenceRow, at: str) -> ReferenceRow:
    fields = {name: getattr(row, name) for name in row.__struct_fields__}
    return ReferenceRow(**{**fields, "at": (at,)})


@pytest.mark.parametrize("entry", PRODUCERS)
def test_an_object_has_the_products_of_its_producers(entry: JsonObject) -> None:
    body = get_mapping(entry, "object")
    result = []
    for product in NAMING.list_products(body, kind_of(body)):
        metadata = get_mapping(product.body, "metadata")
        ref = Ref(
            kind_of(product.body), get_text(metadata, "namespace"), get_text(metadata, "name")
        )
        keys = ", ".join(sorted(get_data(product.body)))
        result.append(f"{ref}: {keys}" if keys else str(ref))

    assert result == get_list(entry, "makes")


def test_each_producer_has_an_entry() -> None:
    seen = {
        (kind_of(get_mapping(producer, "object")))
        for producer in PRODUCERS
        if get_list(producer, "makes")
    }
    groups = {(kind.group, kind.name) for kind in seen}

    assert all(any((row.group, kind) in groups for kind in row.kinds) for row in KNOWN.producers)


BUILT_IN = {
    (served_kind.kind.group, served_kind.kind.name): served_kind.kind
    for served_kind in served_kinds()
}
NATIVE = [
    (kind, at)
    for row in KNOWN.references
    for at in row.at
    for kind in ([BUILT_IN["", "Pod"]] if row.pods else [])
    + [BUILT_IN[row.of_group, name] for name in row.of_kinds if (row.of_group, name) in BUILT_IN]
]


@pytest.mark.parametrize(("kind", "at"), NATIVE)
def test_each_path_of_a_built_in_kind_is_a_field(kind: Kind, at: str) -> None:
    shape = find_shape(kind)
    assert shape is not None
    if kind.name == "Pod" and not at.startswith("metadata"):
        shape = shape.fields["spec"]()
    for number, steps in enumerate(parse_field_pattern(at).parts):
        shape = _item(shape) if number else shape
        for step in steps:
            shape = _inside(shape, str(step))


def _item(shape: Shape) -> Shape:
    assert shape.items is not None
    return shape.items()


def _inside(shape: Shape, name: str) -> Shape:
    if name in shape.fields:
        return shape.fields[name]()
    assert shape.values is not None, name
    return shape.values()


def test_an_optional_reference_is_marked_as_optional() -> None:
    body: JsonObject = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "template": {
                "spec": {
                    "containers": [{"envFrom": [{"secretRef": {"name": "db", "optional": True}}]}]
                }
            }
        },
    }
    kind = Kind("apps", "v1", "Deployment")
    (reference,) = NAMING.find_references(body, kind, NAMING.find_pod_template(body, kind))

    assert reference.optional
    assert reference.field == (
        *("spec", "template", "spec", "containers", 0, "envFrom", 0, "secretRef"),
    )


def test_a_need_of_a_row_knows_its_field_and_item() -> None:
    body: JsonObject = {
        "metadata": {"name": "apps", "namespace": "flux-system"},
        "spec": {"dependsOn": [{"name": "a"}, {"name": "b"}]},
    }
    kind = Kind("kustomize.toolkit.fluxcd.io", "v1", "Kustomization")

    assert [
        (reference.name, reference.field) for reference in NAMING.find_references(body, kind)
    ] == [
        ("a", ("spec", "dependsOn", 0, "name")),
        ("b", ("spec", "dependsOn", 1, "name")),
    ]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.b[*].c", [(("a", "b", 0, "c"), 1), (("a", "b", 1, "c"), 2)]),
        ("a.d.*", [(("a", "d", "x"), 3), (("a", "d", "y"), 4)]),
        ("a.**.*Ref", [(("a", "e", 0, "someRef"), {"name": "n"})]),
        ("a.missing[*].c", []),
        ("a.b[c=2].c", [(("a", "b", 1, "c"), 2)]),
    ],
)
def test_a_path_may_match_many_fields(path: str, expected: list[object]) -> None:
    body: Json = {
        "a": {
            "b": [{"c": 1}, {"c": 2}],
            "d": {"x": 3, "y": 4},
            "e": [{"someRef": {"name": "n"}}],
        }
    }

    assert list(find_fields(body, path)) == expected


@pytest.mark.parametrize("path", ["", "[*].a", "a.**.b.c", "a b"])
def test_an_invalid_path_is_refused(path: str, wording: RecordedWording) -> None:
    with pytest.raises(ValueError, match=r".+") as refusal:
        parse_field_pattern(path)

    wording(str(refusal.value))
