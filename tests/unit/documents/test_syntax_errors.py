"""Errors of files that are not YAML, with their locations."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.documents import read_documents
from tidegate.errors import DocumentError


def refusal(source: str) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        read_documents(source, "some.yaml")
    return caught.value


def position(error: DocumentError) -> tuple[int, int]:
    assert error.location is not None
    return error.location.line, error.location.column


@pytest.mark.parametrize(
    ("source", "line", "column"),
    [
        ('a: 1\nb: "open\nc: 2\n', 2, 4),
        ("a: 1\nb: 'open\n", 2, 4),
        ("a: [1,\n  2\nb: 1\n", 1, 4),
        ("a: {b: 1\nc: 1\n", 1, 4),
        ("a:\n  b: 1\n c: 2\n", 3, 2),
        ("a: b: c\n", 1, 5),
        ("a: 1\nword\nb: 1\n", 2, 1),
        ("a:\n- b\n c\n- d\ne\n", 5, 1),
        ("a: - b\n", 1, 4),
        ("a: @b\n", 1, 4),
        ('a: "\\q"\n', 1, 5),
        ("a: [x:]\n", 1, 6),
        ("a: [x,, y]\n", 1, 7),
        ("a: !e!x 1\n", 1, 4),
    ],
    ids=[
        "double quote",
        "single quote",
        "bracket",
        "brace",
        "indentation",
        "second colon",
        "word",
        "word after a list",
        "dash",
        "at sign",
        "escape",
        "colon at the end",
        "two commas",
        "tag",
    ],
)
def test_bad_yaml_is_explained_with_its_place(
    source: str, line: int, column: int, wording: RecordedWording
) -> None:
    error = refusal(source)

    assert error.code == "documents.syntax"
    assert position(error) == (line, column)
    wording(error.problem)


def test_lines_are_counted_from_the_start_of_the_file() -> None:
    error = refusal("kind: A\n---\nkind: B\n---\n\nkind: @\n")

    assert position(error) == (6, 7)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("a:\n\tb: 1\n", 2),
        ("a:\n  b: 1\n\tc: 2\n", 3),
        ("a: |\n\tx\n", 2),
        ("\ta: 1\n", 1),
        ("a:\n-\tb: 1\n", 2),
    ],
)
def test_a_tab_for_indentation_is_called_so(source: str, line: int) -> None:
    error = refusal(source)

    assert error.code == "documents.tab"
    assert position(error)[0] == line


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("kind: A\nname: {{ .Values.name }}\n", 2),
        ("kind: A\nname: {{ .Values.name }}-web\n", 2),
        ("kind: A\nspec:\n  {{- if .Values.x }}\n  a: 1\n  {{- end }}\n", 3),
        ("{{ if .Values.x }}\nkind: A\n{{ end }}\n", 1),
        ("{{- range .Values.x }}\nkind: A\n{{- end }}\n", 1),
        ('kind: A\nlabels:\n  {{ include "x" . | nindent 4 }}\n', 3),
        ("kind: A\nlist:\n- {{ .Values.x }}\n", 3),
        ("kind: A\nlist: [{{ .Values.x }}, b]\n", 2),
        ("{% if x %}\nkind: A\n{% endif %}\n", 1),
        ("kind: A\n{{/* a note */}}\nname: b\n", 2),
        ('kind: A\nname: "web"{{ .Values.x }}\n', 2),
    ],
)
def test_a_template_is_called_a_template(source: str, line: int) -> None:
    error = refusal(source)

    assert error.code == "documents.template"
    assert position(error)[0] == line


@pytest.mark.parametrize(
    "source",
    [
        'name: "{{ .cluster }}"\n',
        "name: '{{ .cluster }}'\n",
        "name: web-{{ .cluster }}\n",
        "text: |\n  {{- range . }}\n  x\n  {{- end }}\n",
        "text: >-\n  {{ $labels.pod }} is down\n",
        "a: 1 # {{ .Values.x }}\n",
    ],
)
def test_a_template_inside_a_string_is_read(source: str) -> None:
    assert len(read_documents(source, "some.yaml")) == 1


def test_invalid_yaml_with_a_quoted_template_is_not_called_a_template() -> None:
    error = refusal('a: "{{ .x }}"\nb: "{{ .y }}" c\n')

    assert error.code == "documents.syntax"


def test_an_error_never_shows_the_value_it_is_about() -> None:
    error = refusal("kind: Secret\ndata: !!int hunter2\n")

    assert "hunter2" not in str(error)
