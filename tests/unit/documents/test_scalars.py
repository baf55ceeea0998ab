"""Scalars, keys and structures: every answer that kubectl gave is ours too."""

from __future__ import annotations

import pytest

from tests.support.recorded_documents import Case, all_cases, numbered, our_answer

CASES = all_cases()


@pytest.mark.parametrize(
    ("source", "case"),
    list(zip(numbered(CASES), CASES, strict=True)),
    ids=[f"{number}: {case.title}" for number, case in enumerate(CASES)],
)
def test_a_recorded_piece_of_yaml_is_read_as_kubectl_read_it(source: str, case: Case) -> None:
    assert our_answer(source) == case.answer
