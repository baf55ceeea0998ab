"""Files of rows: what users may write, and what they are told."""

from __future__ import annotations

import pytest

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


def errors_of(text: str) -> list[str]:
    with pytest.raises(ExceptionGroup) as caught:
        parse_knowledge(text.encode(), "rows.yaml")
    errors = [error for error in caught.value.exceptions if isinstance(error, TidegateError)]
    assert all(error.exit_code == 3 for error in errors)
    return [f"{error.code} {error.location} {error.problem}" for error in errors]


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
    ("text", "told"),
    [
        (
            ROW + "  colour: red\n",
            "file.key rows.yaml:10:3 (rows[0].colour) an entry of `rows` has no key `colour`",
        ),
        (
            HEAD + "  stages:\n  - writes: {}\n",
            "file.missing rows.yaml:7:5 (rows[0].stages[0]) an entry of `stages` needs `name`",
        ),
        (
            ROW.replace("[Widget]", "Widget"),
            "file.type rows.yaml:3:3 (rows[0].kinds) `kinds` must be a list, not text",
        ),
        (
            ROW.replace("2s", "soon"),
            (
                "file.duration rows.yaml:8:5 (rows[0].stages[0].after)"
                " `after` is `soon`, which is not a duration"
            ),
        ),
        (
            ROW.replace("2s", "-2s"),
            (
                "file.value rows.yaml:8:5 (rows[0].stages[0].after)"
                " `after` is `-2s`, and time does not run backwards"
            ),
        ),
        (
            ROW + "    paces: [{name: big, after: soon}]\n",
            (
                "file.duration rows.yaml:10:25 (rows[0].stages[0].paces[0].after)"
                " `after` is `soon`, which is not a duration"
            ),
        ),
        (
            ROW + "  ready_when: [{path: .status}]\n",
            "operators.path rows.yaml:10:16 (rows[0].ready_when[0]) `.status` is no path",
        ),
        (
            ROW.replace("Done}", '"${up(name)}"}'),
            (
                "operators.path rows.yaml:9:5 (rows[0].stages[0].writes)"
                " there is no function `up`, only count, group_of, lower, members,"
                " namespace_of, option, service, text"
            ),
        ),
        (
            ROW + "  - name: again\n    writes: {phase: Done}\n",
            (
                "operators.stages rows.yaml:7:5 (rows[0].stages[0])"
                " the stages `done` and `again` write the same status"
            ),
        ),
        (
            HEAD + "  stages: []\n",
            "operators.value rows.yaml:6:3 (rows[0].stages) a row needs at least one stage",
        ),
        (
            ROW.replace("our own operator", '""'),
            (
                "operators.value rows.yaml:5:3 (rows[0].source)"
                " a row must say where its facts come from"
            ),
        ),
        (
            ROW + "  group: other.example.com\n",
            "file.duplicate rows.yaml:10:3 `group` is written twice, first in line 2",
        ),
        ("rows: 3\n", "file.type rows.yaml:1:1 (rows) `rows` must be a list"),
        ("row: []\n", "file.key rows.yaml:1:1 (row) a file of rows has no key `row`"),
        (
            "rows: [3]\n",
            "file.type rows.yaml:1:8 (rows[0]) an entry of `rows` must be a mapping, not a",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, told: str) -> None:
    assert errors_of(text)[0].startswith(told)


def test_all_wrong_rows_are_told_at_once_in_order() -> None:
    wrong = ROW + "  colour: red\n"
    errors = errors_of(wrong + wrong.replace("rows:\n", ""))

    assert [line.split()[1] for line in errors] == ["rows.yaml:10:3", "rows.yaml:19:3"]


def test_what_is_no_yaml_is_told_as_such() -> None:
    assert errors_of("rows: [\n")[0].startswith("documents.syntax")


def test_an_operator_that_is_wrong_is_told_with_its_line() -> None:
    text = (
        b"operators:\n- name: ours\n  namespace: ours\n  source: ours\n  workloads: [{name: a}]\n"
    )

    with pytest.raises(ExceptionGroup) as caught:
        parse_knowledge(text, "rows.yaml")

    (error,) = caught.value.exceptions
    assert isinstance(error, TidegateError)
    assert (error.code, error.problem) == ("file.missing", "an entry of `workloads` needs `image`")
    assert error.location is not None
    assert error.location.line == 5


def test_a_pace_of_a_row_is_read_with_its_duration() -> None:
    (row,) = parse_knowledge(
        (ROW + "    paces: [{name: big, after: 1m}]\n").encode(), "rows.yaml"
    ).rows

    assert row.stages[0].paces[0].after == MINUTE
