"""The tables of docs/concepts/reading-yaml.md tell the truth."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.recorded_documents import HEAD, our_answer
from tidegate.documents import read_documents

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "reading-yaml.md"
VALUES, KEYS = (
    re.findall(r"^\| `(.+?)` \| `(.+?)` \|", table, re.MULTILINE)
    for table in PAGE.read_text(encoding="utf-8").split("\nKeys become strings")
)


@pytest.mark.parametrize(("written", "answer"), VALUES)
def test_a_value_is_read_as_documented(written: str, answer: str) -> None:
    assert our_answer(HEAD % 0 + f"v: {written}\n") == f'{{"v":{answer}}}'


@pytest.mark.parametrize(("written", "answer"), KEYS)
def test_a_key_is_read_as_documented(written: str, answer: str) -> None:
    assert our_answer(HEAD % 0 + f"m: {{{written}: 1}}\n") == f'{{"m":{{{answer}:1}}}}'


def test_the_merge_key_works_as_documented() -> None:
    (example,) = re.findall(r"```yaml\n(.+?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)

    body = read_documents(example, "page.md")[0].body

    assert (body["first"], body["second"]) == ({"replicas": 3}, {"replicas": 1})
