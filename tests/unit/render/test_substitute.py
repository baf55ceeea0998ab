"""Variables in objects, as Flux substitutes them.

tests/data/envsubst holds the answers of fluxcd/pkg/envsubst 1.8.0 with sigs.k8s.io/yaml 1.6.0.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tidegate.documents import Document, read_documents
from tidegate.documents.dump import to_json
from tidegate.errors import Location, RenderError
from tidegate.model.k8s.objects import Json
from tidegate.render.envsubst.template import SubstitutionError, UnsetVariableError, expand
from tidegate.render.substitute import (
    OPT_OUT,
    Variables,
    VariableSource,
    collect_variables,
    substitute,
)

FOLDER = Path(__file__).parents[2] / "data" / "envsubst"


class Expanded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer of Flux' library: what came out (`hex` if it is no UTF-8), or why nothing did."""

    text: str
    strict: bool
    out: str | None = None
    hex: str | None = None
    unset: str | None = None
    refused: str | None = None


def recorded(name: str) -> tuple[dict[str, str], list[bytes]]:
    head, *rows = (FOLDER / name).read_bytes().removesuffix(b"\n").split(b"\n")
    return msgspec.json.decode(head, type=dict[str, dict[str, str]])["variables"], rows


def our_answer(row: Expanded, variables: dict[str, str]) -> Expanded:
    try:
        raw = expand(row.text, variables, strict=row.strict)
    except UnsetVariableError as error:
        return Expanded(row.text, row.strict, unset=str(error))
    except SubstitutionError:
        return Expanded(row.text, row.strict, refused=row.refused or "by us")
    try:
        return Expanded(row.text, row.strict, out=raw.decode())
    except UnicodeDecodeError:
        return Expanded(row.text, row.strict, hex=raw.hex())


def document_of(**fields: Json) -> Document:
    return Document({"kind": "Test", **fields}, Location("a.yaml", 3, 1))


def test_every_expansion_has_the_result_of_flux() -> None:
    variables, rows = recorded("expansions.jsonl")
    theirs = [msgspec.json.decode(row, type=Expanded) for row in rows]

    ours = [our_answer(row, variables) for row in theirs]

    assert len(theirs) > 800
    assert ours == theirs


def test_every_object_has_the_result_of_flux() -> None:
    variables, rows = recorded("objects.jsonl")
    wrong = []

    for row in rows:
        body, result = (msgspec.json.decode(row)[name] for name in ("body", "result"))
        try:
            document = Document(body, Location("a"))
            ours = substitute(document, Variables(variables), strict=False).body
        except RenderError:
            ours = None
        if (ours and to_json(ours)) != (result and to_json(result)):
            wrong.append((body, result, ours))

    assert len(rows) > 400
    assert wrong == []


def test_types_are_resolved_again_for_any_quotes() -> None:
    (document,) = read_documents('spec: {replicas: "${n}", image: "web:${tag}"}', "a.yaml")

    done = substitute(document, Variables({"n": "3", "tag": "1.10"}))

    assert done.body == {"spec": {"replicas": 3, "image": "web:1.10"}}
    assert done.location == document.location


def test_a_variable_that_holds_a_quote_keeps_a_number_a_string() -> None:
    done = substitute(document_of(id="${q}${id}${q}"), Variables({"q": '"', "id": "123"}))

    assert done.body["id"] == "123"


@pytest.mark.parametrize("place", ["labels", "annotations"])
def test_an_object_opts_out_by_a_label_or_an_annotation(place: str) -> None:
    document = document_of(metadata={place: {OPT_OUT: "disabled"}}, a="${x}")

    assert substitute(document, Variables({"x": "y"})) is document


def test_the_opt_out_is_case_sensitive() -> None:
    document = document_of(metadata={"annotations": {OPT_OUT: "Disabled"}}, a="${x}")

    assert substitute(document, Variables({"x": "z"})).body["a"] == "z"


def test_without_variables_nothing_is_substituted_unless_it_is_forced() -> None:
    document = document_of(color="${color:=blue}")

    assert substitute(document, Variables()) is document
    assert substitute(document, Variables(), even_without_variables=True).body["color"] == "blue"


def test_an_object_without_a_dollar_is_not_changed() -> None:
    document = document_of(a="b", metadata={"labels": {"x": "y"}})

    assert substitute(document, Variables({"x": "y"})) is document


def test_a_missing_variable_is_named_with_its_field() -> None:
    document = document_of(spec={"list": ["a", "${missing}"]})

    with pytest.raises(RenderError, match="`missing`") as caught:
        substitute(document, Variables({"x": "y"}))

    assert caught.value.code == "render.substitute.missing"
    assert str(caught.value.location) == "a.yaml:3:1 (spec.list[1])"


def test_a_missing_variable_is_empty_unless_strict() -> None:
    done = substitute(document_of(a="x${missing}y"), Variables({"x": "y"}), strict=False)

    assert done.body["a"] == "xy"


def test_an_expansion_that_cannot_be_read_is_refused_with_its_field() -> None:
    document = document_of(script="echo ${name@Q}")

    with pytest.raises(RenderError) as caught:
        substitute(document, Variables({"x": "y"}))

    assert caught.value.code == "render.substitute.syntax"
    assert caught.value.location == Location("a.yaml", 3, 1, "script")
    assert OPT_OUT in caught.value.hint


def test_the_depth_of_nested_expansions_is_limited() -> None:
    text = "${a:-" * 500 + "}" * 500

    with pytest.raises(SubstitutionError, match=r"\b100\b"):
        expand(text, {}, strict=False)


@pytest.mark.parametrize("value", ["a: b: c", "[", "x\n---\ny", "\x07"])
def test_a_value_that_makes_the_object_invalid_yaml_is_refused(value: str) -> None:
    document = document_of(a="${x}")

    with pytest.raises(RenderError) as caught:
        substitute(document, Variables({"x": value}))

    assert caught.value.code == "render.substitute.result"


def test_later_sources_win_and_inline_values_over_all() -> None:
    sources = [
        VariableSource(
            kind="ConfigMap", name="a", values={"zone": "\naz-1a\n", "tier": "a", "x": "1"}
        ),
        VariableSource(kind="Secret", name="b", values={"zone": "az-\n1b", "tier": "b"}),
        VariableSource(kind="Secret", name="c", values=None, optional=True),
    ]

    variables = collect_variables(sources, inline={"tier": "inline\n"})

    assert variables.values == {"zone": "az-1b", "tier": "inline", "x": "1"}


def test_a_missing_source_is_refused_unless_it_is_optional() -> None:
    with pytest.raises(RenderError, match="ConfigMap `cluster`") as caught:
        collect_variables(
            [VariableSource(kind="ConfigMap", name="cluster", values=None)],
            location=Location("ks.yaml", 4),
        )

    assert caught.value.code == "render.substitute.source"
    assert str(caught.value.location) == "ks.yaml:4"


@pytest.mark.parametrize("name", ["my-key", "1st", "", "a.b", "é", "a\n"])
def test_a_bad_name_is_refused_even_if_nothing_uses_it(name: str) -> None:
    with pytest.raises(RenderError) as caught:
        collect_variables(
            [VariableSource(kind="ConfigMap", name="a", values={"good": "x", name: "x"})]
        )

    assert caught.value.code == "render.substitute.name"


def test_values_are_not_in_a_repr() -> None:
    variables = collect_variables(
        [VariableSource(kind="Secret", name="a", values={"token": "hunter2"})]
    )

    assert "hunter2" not in repr(variables)
    assert "hunter2" not in repr(
        VariableSource(kind="Secret", name="a", values={"token": "hunter2"})
    )
