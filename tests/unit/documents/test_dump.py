"""Canonical text: what is quoted, what is a block, what order it has."""

from __future__ import annotations

import math

import pytest

from tidegate.documents import read_documents
from tidegate.documents.dump import to_json, to_yaml
from tidegate.errors import DocumentError
from tidegate.model.k8s.objects import Json

BODY: Json = {
    "spec": {"replicas": 3, "on": "on", "empty": {}, "none": None, "list": []},
    "kind": "A",
    "args": ["--x=1", "a: b", ["c", {"e": 1, "d": True}]],
    "script": "set -e\n\n  run\n",
}

YAML = """\
args:
- "--x=1"
- "a: b"
- - c
  - d: true
    e: 1
kind: A
script: |
  set -e

    run
spec:
  empty: {}
  list: []
  none: null
  "on": "on"
  replicas: 3
"""


def test_yaml_has_one_form() -> None:
    assert to_yaml(BODY) == YAML


def test_json_has_one_form() -> None:
    assert to_json(BODY) == (
        b'{"args":["--x=1","a: b",["c",{"d":true,"e":1}]],"kind":"A",'
        b'"script":"set -e\\n\\n  run\\n",'
        b'"spec":{"empty":{},"list":[],"none":null,"on":"on","replicas":3}}'
    )


WORDS = ["on", "y", "0777", "1e3", "null", "~", "", "1_000", ".inf", "08"]
SIGNS = ["- a", "a: b", "a #b", " a", "a ", "a\tb", "{a}", "*a", "&a", "!a", "%a", "@a", "`a", "?"]
MORE_SIGNS = ["|", ">", "---", "<<", "#", "'", '"', "=", "[a"]


@pytest.mark.parametrize("text", [*WORDS, *SIGNS, *MORE_SIGNS])
def test_a_string_that_would_be_read_as_something_else_is_quoted(text: str) -> None:
    written = to_yaml({"a": text})

    assert written.startswith('a: "')
    assert read_documents(written, "written.yaml")[0].body == {"a": text}


@pytest.mark.parametrize(
    "text",
    ["web", "2024-01-01", "1.2.3", "a/b.c_d-e", "two words", "v1", "100m", "oN", "/a", "a=b"],
)
def test_a_string_that_is_read_as_itself_is_bare(text: str) -> None:
    assert to_yaml({"a": text}) == f"a: {text}\n"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a\nb", "|-\n  a\n  b"),
        ("a\nb\n", "|\n  a\n  b"),
        ("a\n\n\n", "|+\n  a\n\n"),
        ("\n\na\n", "|\n\n\n  a"),
        ("a\n\tb\n  c\n", "|\n  a\n  \tb\n    c"),
        ("{{ a }}\n# b\n", "|\n  {{ a }}\n  # b"),
        (" a\nb\n", '" a\\nb\\n"'),
        ("\ta\n", '"\\ta\\n"'),
        ("\n", '"\\n"'),
        ("a\r\nb\n", '"a\\r\\nb\\n"'),
        ("a\x7f\u2028\n", '"a\\u007f\\u2028\\n"'),
    ],
)
def test_a_text_of_several_lines_is_a_block_when_it_can_be(text: str, written: str) -> None:
    assert to_yaml({"t": text}) == f"t: {written}\n"
    assert read_documents(f"t: {written}\n", "written.yaml")[0].body == {"t": text}


def test_a_key_that_is_too_long_for_a_line_is_written_all_the_same() -> None:
    body: Json = {"k" * 2000: {"a": 1}, "l" * 2000: [1], "m" * 2000: "x"}

    assert read_documents(to_yaml(body), "written.yaml")[0].body == body


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, b"1"),
        (1e3, b"1000"),
        (1e21, b"1e+21"),
        (1e-7, b"1e-7"),
        (0.000001, b"0.000001"),
        (2**64 - 1, b"18446744073709552000"),
        (-0.0, b"0"),
        (1.5, b"1.5"),
        (7, b"7"),
    ],
)
def test_numbers_are_written_like_go(number: float, text: bytes) -> None:
    assert to_json(number) == text
    assert to_json([number]) == b"[" + text + b"]"
    assert to_json({"a": number, "b": [number, 1]}) == b'{"a":%b,"b":[%b,1]}' % (text, text)
    assert to_yaml(number) == text.decode() + "\n"


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan, 10**400])
def test_values_without_json_are_rejected(number: float) -> None:
    for write in (to_json, to_yaml):
        with pytest.raises(DocumentError) as caught:
            write({"a": [number]})

        assert caught.value.code == "documents.number"


@pytest.mark.parametrize("body", [[], {}, None, True, "on", 3, [[1], []], ["a\nb", {}]])
def test_any_json_value_can_be_written(body: Json) -> None:
    (document,) = read_documents(to_yaml({"v": body}), "written.yaml")

    assert document.body == {"v": body}
    assert to_yaml(body).endswith("\n")
