"""Reading and writing agree with each other, and with the kubectl that users run.

kubectl runs once for each batch: it reads a directory of files, and continues after a bad one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.support.recorded_documents import (
    HEAD,
    REFUSED,
    all_cases,
    answer_of,
    numbered,
    our_answer,
    record,
)
from tidegate.documents import read_documents
from tidegate.documents.dump import to_json, to_yaml
from tidegate.errors import DocumentError, Location
from tidegate.model.k8s.objects import Json

T = TypeVar("T")

KUBECTL = Path(sys.executable).with_name("kubectl")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.text(
    " \n\tab#:-", max_size=8
)
scalars: st.SearchStrategy[Json] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
trees: st.SearchStrategy[Json] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
TOKENS = [
    *"ab:-#&*!|>%@`'\"{}[],?\n\t ~1<",
    "a: ",
    "- ",
    "\n  ",
    "{{ ",
    "*a",
    "&a ",
    "<<: ",
    "---\n",
]
plain = st.one_of(
    st.text("0123456789+-._eE", min_size=1, max_size=8),
    st.text("01789abfxXoObB_+-", min_size=1, max_size=8),
    st.text("yYnNoOfFtTrRuUSseEaAlL~", min_size=1, max_size=5),
    st.text("+-.iInNfFaA", min_size=1, max_size=5),
    st.text("0123456789-:TtZ. ", min_size=1, max_size=12),
)
tags = st.sampled_from(["", "", "!!int ", "!!float ", "!!bool ", "!!null ", "!!str ", "!x ", "! "])
pieces = st.one_of(
    plain.map("v: {}\n".format),
    plain.map("m:\n  {}: 1\n".format),
    st.tuples(tags, plain).map("v: {0[0]}{0[1]}\n".format),
    st.tuples(tags, plain).map('v: {0[0]}"{0[1]}"\n'.format),
    plain.map("a: &x {0}\nb: [*x, {{*x : 1}}]\n".format),
)


def examples_of(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """The same ones each time, so that kubectl can be asked about all of them at once."""
    result: list[T] = []

    @settings(
        max_examples=count, derandomize=True, database=None, deadline=None, phases=[Phase.generate]
    )
    @given(strategy)
    def collect(example: T) -> None:
        result.append(example)

    collect()
    return result


def ask_kubectl(sources: list[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        for number, source in enumerate(sources):
            path = Path(folder, f"{number}.yaml")
            path.write_bytes(source.encode())
        words = [
            str(KUBECTL),
            "label",
            "--local",
            "--output=json",
            "asked=yes",
            f"--filename={folder}",
        ]
        reply = subprocess.run(
            words, capture_output=True, text=True, check=False, env={"HOME": folder}
        )
    answers = dict.fromkeys(map(int, re.findall(r"/(\d+)\.yaml", reply.stderr)), REFUSED)
    for text in json_values(reply.stdout):
        number = int(re.findall(r'"name": "case-(\d+)"', text)[0])
        answers.setdefault(number, answer_of(text))
    return [answers[number] for number in range(len(sources))]


def json_values(text: str) -> list[str]:
    return [value + "\n}" for value in text.split("\n}\n")[:-1]]


@settings(derandomize=True, database=None, deadline=None)
@given(trees)
def test_a_dumped_document_is_read_back_unchanged(tree: Json) -> None:
    written = to_yaml({"v": tree})

    (document,) = read_documents(written, "written.yaml")

    assert to_json(document.body) == to_json({"v": tree})


@settings(derandomize=True, database=None, deadline=None)
@given(trees)
def test_json_is_read_back_as_the_same_json(tree: Json) -> None:
    written = to_json({"v": tree})

    assert to_json(json.loads(written)) == written


@settings(derandomize=True, database=None, deadline=None)
@given(st.dictionaries(texts, scalars, max_size=6))
def test_the_order_of_keys_does_not_change_what_is_written(body: dict[str, Json]) -> None:
    turned = dict(reversed(body.items()))

    assert to_yaml(turned) == to_yaml(body)
    assert to_json(turned) == to_json(body)


@settings(derandomize=True, database=None, deadline=None, max_examples=500)
@given(st.lists(st.sampled_from(TOKENS)).map("".join))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    try:
        places = [document.location for document in read_documents(text, "some.yaml")]
    except DocumentError as error:
        places = [error.location or Location("nowhere")]

    assert all(1 <= place.line <= text.count("\n") + 2 for place in places)


def test_kubectl_reads_scalars_as_we_do() -> None:
    sources = [HEAD % n + piece for n, piece in enumerate(examples_of(pieces, 600))]

    answers = ask_kubectl(sources)

    ours = map(our_answer, sources)
    assert [row for row in zip(sources, ours, answers, strict=True) if row[1] != row[2]] == []


def test_kubectl_reads_what_we_write_as_we_do() -> None:
    bodies = examples_of(trees.map(lambda tree: {"v": tree}), 300)

    answers = ask_kubectl([HEAD % n + to_yaml(body) for n, body in enumerate(bodies)])

    assert answers == [answer_of(to_json(body)) for body in bodies]


def test_the_recorded_answers_equal_those_of_kubectl(request: pytest.FixtureRequest) -> None:
    answers = ask_kubectl(numbered(all_cases()))

    if request.config.getoption("--golden"):
        record(answers)

    assert answers == [case.answer for case in all_cases()]
