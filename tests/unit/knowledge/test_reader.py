"""Files of rows: what users may write, and the errors that mistakes cause."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.errors import TidegateError
from tidegate.knowledge.reader import parse_knowledge
from tidegate.model.times import MINUTE, SECOND, Ms

HEAD = """\
rows:
- group: widgets.example.com
  kinds: [Widget]
  versions: [v1]
  source: our own operator
"""
STAGES = """\
  stages:
  - name: done
    after: 2s
    writes: {phase: Done}
"""
ROW = HEAD + STAGES


def errors_of(text: str) -> list[TidegateError]:
    with pytest.raises(ExceptionGroup) as caught:
        parse_knowledge(text.encode(), "rows.yaml")
    errors = [error for error in caught.value.exceptions if isinstance(error, TidegateError)]
    assert all(error.exit_code == 3 for error in errors)
    return errors


def test_a_row_is_read_into_frozen_values() -> None:
    (row,) = parse_knowledge(ROW.encode(), "rows.yaml").rows

    assert (row.group, row.kinds, row.stages[0].after) == (
        "widgets.example.com",
        ("Widget",),
        Ms(2 * SECOND),
    )


def test_an_empty_file_has_no_rows() -> None:
    assert parse_knowledge(b"", "rows.yaml").rows == ()


@pytest.mark.parametrize(
    ("text", "code", "location"),
    [
        (ROW + "  colour: red\n", "file.key", ":10:3 (rows[0].colour)"),
        (HEAD + "  stages:\n  - writes: {}\n", "file.missing", ":7:5 (rows[0].stages[0])"),
        (ROW.replace("[Widget]", "Widget"), "file.type", ":3:3 (rows[0].kinds)"),
        (ROW.replace("2s", "soon"), "file.duration", ":8:5 (rows[0].stages[0].after)"),
        (ROW.replace("2s", "-2s"), "file.value", ":8:5 (rows[0].stages[0].after)"),
        (
            ROW + "    paces: [{name: big, after: soon}]\n",
            "file.duration",
            ":10:25 (rows[0].stages[0].paces[0].after)",
        ),
        (
            ROW + "  ready_when: [{path: .status}]\n",
            "operators.path",
            ":10:16 (rows[0].ready_when[0])",
        ),
        (
            ROW.replace("Done}", '"${up(name)}"}'),
            "operators.path",
            ":9:5 (rows[0].stages[0].writes)",
        ),
        (
            ROW + "  - name: again\n    writes: {phase: Done}\n",
            "operators.stages",
            ":7:5 (rows[0].stages[0])",
        ),
        (HEAD + "  stages: []\n", "operators.value", ":6:3 (rows[0].stages)"),
        (
            ROW.replace("our own operator", '""'),
            "operators.value",
            ":5:3 (rows[0].source)",
        ),
        (ROW + "  group: other.example.com\n", "file.duplicate", ":10:3"),
        ("rows: 3\n", "file.type", ":1:1 (rows)"),
        ("row: []\n", "file.key", ":1:1 (row)"),
        ("rows: [3]\n", "file.type", ":1:8 (rows[0])"),
    ],
    ids=[
        "unknown key",
        "stage without a name",
        "text for a list",
        "no duration",
        "negative duration",
        "no duration of a pace",
        "no path",
        "unknown function",
        "equal stages",
        "no stages",
        "no source",
        "key given twice",
        "rows are no list",
        "unknown key of the file",
        "row is no mapping",
    ],
)
def test_a_mistake_is_reported_with_its_line(
    text: str, code: str, location: str, wording: RecordedWording
) -> None:
    error = errors_of(text)[0]

    assert (error.code, str(error.location)) == (code, f"rows.yaml{location}")
    wording(error.problem)


def test_all_wrong_rows_are_reported_at_once_in_order() -> None:
    wrong = ROW + "  colour: red\n"
    errors = errors_of(wrong + wrong.replace("rows:\n", ""))

    assert [str(error.location).split()[0] for error in errors] == [
        "rows.yaml:10:3",
        "rows.yaml:19:3",
    ]


def test_a_file_that_is_not_yaml_is_a_syntax_error() -> None:
    assert errors_of("rows: [\n")[0].code == "documents.syntax"


def test_an_invalid_operator_is_reported_with_its_line() -> None:
    (error,) = errors_of(
        "operators:\n- name: ours\n  namespace: ours\n  source: ours\n  workloads: [{name: a}]\n"
    )

    assert error.code == "file.missing"
    assert "`workloads`" in error.problem
    assert "`image`" in error.problem
    assert error.location is not None
    assert error.location.line == 5


def test_a_pace_of_a_row_is_read_with_its_duration() -> None:
    (row,) = parse_knowledge(
        (ROW + "    paces: [{name: big, after: 1m}]\n").encode(), "rows.yaml"
    ).rows

    assert row.stages[0].paces[0].after == MINUTE
