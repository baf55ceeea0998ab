"""The order in which values are merged, for Argo CD and for Flux."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.documents import read_documents
from tidegate.errors import RenderError
from tidegate.model.k8s.objects import Json
from tidegate.model.units.chart_request import (
    ChartRequest,
    FileParameter,
    Parameter,
    ParameterType,
    ValuesFile,
    ValuesLayer,
)
from tidegate.render.helm import ValuesReference, argo_layers, flux_layers
from tidegate.render.helm.parameters import Values
from tidegate.render.helm.worker.values import compose


def read_yaml(text: str, name: str) -> Values:
    documents = read_documents(text, name)
    return documents[0].body if documents else {}


def composed(
    layers: tuple[ValuesLayer, ...], root: Path, inline: dict[str, Json] | None = None
) -> Values:
    release = ChartRequest(root=str(root), name="shop", layers=layers, values=inline or {})
    return compose(release, start=root, read=read_yaml)


def test_argo_merges_files_then_inline_values_then_parameters(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: file-a\nb: file-a\nc: file-a\nd: file-a\n")
    (tmp_path / "b.yaml").write_text("b: file-b\nc: file-b\nd: file-b\n")
    layers = argo_layers(
        [ValuesFile("a.yaml"), ValuesFile("b.yaml")],
        text="c: inline\nd: inline\n",
        parameters=[Parameter("d", "parameter")],
    )

    values = composed(layers, tmp_path)

    assert values == {"a": "file-a", "b": "file-b", "c": "inline", "d": "parameter"}


def test_argo_sets_typed_then_strings_then_files_in_whatever_order_they_are_given(
    tmp_path: Path,
) -> None:
    (tmp_path / "content").write_text("from a file")
    layers = argo_layers(
        parameters=[
            Parameter("a", "1", ParameterType.STRING),
            Parameter("a", "2"),
            Parameter("b", "3", ParameterType.STRING),
        ],
        file_parameters=[FileParameter("b", "content")],
    )

    values = composed(layers, tmp_path)

    assert values == {"a": "1", "b": "from a file"}


def test_argo_cd_uses_the_last_of_parameters_with_the_same_name(tmp_path: Path) -> None:
    layers = argo_layers(parameters=[Parameter("a", "{1,2}"), Parameter("a", "x")])

    assert composed(layers, tmp_path) == {"a": "x"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a,b=c", "a,b=c"), (r"a\,b", "a,b"), ("{a,b}", ["a", "b"]), ("1,2", "1,2")],
)
def test_a_comma_does_not_end_a_parameter_of_argo(
    tmp_path: Path, value: str, expected: Json
) -> None:
    layers = argo_layers(parameters=[Parameter("key", value)])

    assert composed(layers, tmp_path) == {"key": expected}


def test_flux_merges_references_in_order_and_inline_values_last(tmp_path: Path) -> None:
    layers = flux_layers(
        [
            ValuesReference("a: one\nb: one\nc: one\nm: {x: 1}\n", "ConfigMap one"),
            ValuesReference("b: two\nc: two\nm: {z: 2}\n", "Secret two"),
        ]
    )

    values = composed(layers, tmp_path, {"c": "inline"})

    assert values == {"a": "one", "b": "two", "c": "inline", "m": {"x": 1, "z": 2}}


def test_a_target_path_of_flux_reads_types_quotes_and_literals(tmp_path: Path) -> None:
    layers = flux_layers(
        [
            ValuesReference("5", "a", target_path="typed"),
            ValuesReference("'5'", "b", target_path="quoted"),
            ValuesReference("{a,b}", "c", target_path="list"),
            ValuesReference("{a,b}=c", "d", target_path="whole", literal=True),
        ]
    )

    values = composed(layers, tmp_path)

    assert values == {"typed": 5, "quoted": "5", "list": ["a", "b"], "whole": "{a,b}=c"}


@pytest.mark.parametrize(
    ("before", "inline", "path", "after"),
    [
        ("", {"m": {"a": "inline"}}, "m.a", {"m": {"a": "target"}}),
        ("", {"a": "inline"}, "a", {"a": "inline"}),
        ("m: {a: before}\n", {"m": {"a": "inline"}}, "m.a", {"m": {"a": "inline"}}),
        ("m: {a: before}\n", {}, "m.a", {"m": {"a": "target"}}),
    ],
)
def test_a_target_path_beats_inline_values_only_where_flux_shares_the_mapping(
    tmp_path: Path, before: str, inline: dict[str, Json], path: str, after: Values
) -> None:
    references = [ValuesReference(before, "before")] if before else []
    layers = flux_layers([*references, ValuesReference("target", "it", target_path=path)])

    assert composed(layers, tmp_path, inline) == after


def test_a_missing_values_file_is_an_error_unless_it_is_optional(tmp_path: Path) -> None:
    with pytest.raises(RenderError) as caught:
        composed((ValuesFile("none.yaml"),), tmp_path)

    assert caught.value.code == "render.helm.file"
    assert composed((ValuesFile("none.yaml", optional=True),), tmp_path) == {}


def test_a_path_with_a_leading_slash_starts_at_the_root_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "shared.yaml").write_text("a: shared\n")
    (tmp_path / "web").mkdir()
    release = ChartRequest(root=str(tmp_path), name="shop", layers=(ValuesFile("/shared.yaml"),))

    values = compose(release, start=tmp_path / "web", read=read_yaml)

    assert values == {"a": "shared"}


def test_a_values_file_can_be_in_another_source(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "values.yaml").write_text("a: two\n")
    layers = (ValuesFile("values.yaml", root=str(tmp_path / "two")),)

    assert composed(layers, tmp_path / "one") == {"a": "two"}


def test_values_are_not_in_a_repr() -> None:
    secret = "hunter2-hunter2"

    shown = [
        repr(Parameter("password", secret)),
        repr(ValuesReference(secret, "Secret shop/web")),
        repr(ChartRequest(root="/", name="shop", values={"password": secret})),
    ]

    assert [secret in each for each in shown] == [False, False, False]
