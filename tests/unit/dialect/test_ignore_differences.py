"""The file of differences to ignore: both of its forms, and its mistakes with their lines."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.dialect.argo.ignore_differences import read_ignore_file
from tidegate.errors import DialectError, TidegateError
from tidegate.model.units.ignore_differences import IgnoreDifference

ENTRIES = """\
- group: apps
  kind: Deployment
  name: web
  namespace: shop
  jsonPointers:
  - /spec/replicas
- group: "*"
  kind: "*"
  jqPathExpressions:
  - .spec.template.spec.containers[] | select(.name == "proxy")
  managedFieldsManagers: [scaler]
"""
READ = (
    IgnoreDifference(
        group="apps",
        kind="Deployment",
        name="web",
        namespace="shop",
        pointers=("/spec/replicas",),
    ),
    IgnoreDifference(
        group="*",
        kind="*",
        expressions=('.spec.template.spec.containers[] | select(.name == "proxy")',),
        managers=("scaler",),
    ),
)


def check(expression: str) -> None:
    """Replaces jq."""
    if not expression.startswith("."):
        raise DialectError("dialect.jq.expression", f"jq refuses `{expression}`", hint="write one")


def read(text: str) -> tuple[IgnoreDifference, ...]:
    return read_ignore_file(text.encode(), "ignore.yaml", check)


def mistakes(text: str) -> list[str]:
    """Read a file with errors; return their lines and problems."""
    with pytest.raises(ExceptionGroup) as caught:
        read(text)
    errors = [
        exception for exception in caught.value.exceptions if isinstance(exception, TidegateError)
    ]
    assert len(errors) == len(caught.value.exceptions)
    return [f"{error.location.line if error.location else 0} {error.problem}" for error in errors]


@pytest.mark.parametrize(
    "top", ["", "---\n", "ignoreDifferences:\n", "# ours\nignoreDifferences:\n"]
)
def test_a_file_is_a_list_or_has_it_below_its_name(top: str) -> None:
    assert read(top + ENTRIES) == READ


def test_an_empty_file_ignores_nothing() -> None:
    assert read("# nothing yet\n") == ()


def test_entries_of_several_documents_count_together() -> None:
    assert read(f"{ENTRIES}---\n{ENTRIES}") == (*READ, *READ)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("spec: {}\n", 1),
        ("- web\n", 1),
        ("ignoreDifferences: web\n", 1),
        ("- kind: A\n  jsonPointer: [/a]\n  jsonPointers: [/a]\n", 2),
        ("- kind: 1\n  jsonPointers: [/a]\n", 1),
        ("- group: apps\n  jsonPointers: [/a]\n", 1),
        ("- kind: A\n", 1),
        ("- kind: A\n  jsonPointers: /a\n", 2),
        ("- kind: A\n  jsonPointers:\n  - spec/a\n", 3),
        ("- kind: A\n  jqPathExpressions:\n  - map(.a)\n", 3),
    ],
    ids=[
        "unknown key of the file",
        "entry is text",
        "list is text",
        "unknown key of an entry",
        "kind is a number",
        "no kind",
        "no field",
        "pointers are text",
        "no pointer",
        "no path",
    ],
)
def test_a_mistake_is_reported_with_its_line(
    text: str, line: int, wording: RecordedWording
) -> None:
    (problem,) = mistakes(text)

    assert problem.startswith(f"{line} ")
    wording(problem)


def test_all_mistakes_are_reported_at_once() -> None:
    text = "- kind: A\n- kind: A\n  jsonPointers: [a]\n  jqPathExpressions: [a]\n"

    assert [mistake.partition(" ")[0] for mistake in mistakes(text)] == ["1", "3", "4"]


def test_a_key_that_is_written_twice_is_reported_with_its_line(wording: RecordedWording) -> None:
    text = "- kind: A\n  jsonPointers: [/a]\n  jsonPointers: [/b]\n"

    (problem,) = mistakes(text)

    assert problem.startswith("3 ")
    wording(problem)


def test_invalid_yaml_is_reported_with_its_line() -> None:
    assert mistakes("- kind: [\n")[0].startswith(("1", "2"))
