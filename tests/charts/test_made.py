"""Files that are made of others are up to date, and the maker says what it cannot make."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from charts.made import CHARTS, LIBRARY, made_files, stale_files
from charts.schema import schema_of
from charts.table import table_of
from charts.values import Value, read_values
from tests.charts.rendering import CHARTS as PLACE
from tests.charts.rendering import Chart
from tests.support.recorded_wording import RecordedWording

MADE = made_files(PLACE)


def shown(path: Path) -> str:
    return str(path.relative_to(PLACE))


def test_every_chart_is_made() -> None:
    assert {*CHARTS} == {*Chart}
    assert {path.name for path in MADE} >= {"README.md", "values.schema.json", "_waves.tpl"}


@pytest.mark.parametrize("path", MADE, ids=shown)
def test_a_made_file_is_up_to_date(path: Path) -> None:
    assert path.read_text() == MADE[path], "run `python -m charts`"


def test_every_copy_of_the_library_equals_the_library() -> None:
    assert stale_files(PLACE) == []


def test_a_chart_depends_on_the_library_next_to_it(chart: Chart) -> None:
    library = (PLACE / LIBRARY / "Chart.yaml").read_text()
    text = (PLACE / chart / "Chart.yaml").read_text()

    (version,) = [line for line in library.splitlines() if line.startswith("version: ")]
    assert f"  - name: {LIBRARY}\n    {version}\n    repository: file://../{LIBRARY}\n" in text


def test_files_about_a_chart_are_not_packaged(chart: Chart) -> None:
    ignored = (PLACE / chart / ".helmignore").read_text().splitlines()

    assert {"given.yaml", "ci/"} <= {*ignored}


VALUES = """
# A section.
web:
  # -- (integer | null) Its own wave.
  wave: null
  # -- ("" | argocd) What it is.
  hook: ""
# -- Words, with a | in them.
words: [a]
"""


def test_values_are_read_with_their_descriptions() -> None:
    values = read_values(VALUES)

    assert values == (
        Value(("web", "wave"), "integer | null", None, "Its own wave."),
        Value(("web", "hook"), '"" | argocd', "", "What it is."),
        Value(("words",), "strings", ["a"], "Words, with a | in them."),
    )


def test_a_table_has_a_row_for_each_value() -> None:
    rows = table_of(read_values(VALUES)).splitlines()

    assert rows[2:] == [
        "| `web.wave` | `null` | Its own wave. |",
        '| `web.hook` | `""` | What it is. |',
        '| `words` | `["a"]` | Words, with a \\| in them. |',
    ]


def test_a_schema_is_closed_at_every_depth() -> None:
    schema = json.loads(json.dumps(schema_of(read_values(VALUES), library="lib")))

    web = schema["properties"]["web"]
    assert schema["additionalProperties"] is web["additionalProperties"] is False
    assert web["properties"]["hook"]["enum"] == ["", "argocd"]
    assert web["properties"]["wave"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert {*schema["properties"]} == {"global", "lib", "web", "words"}


@pytest.mark.parametrize(
    "text",
    ["a: 1\n", "# -- What.\na: null\n", "# -- What.\na: {b: 1}\n"],
    ids=["no comment", "null", "mapping"],
)
def test_a_value_without_a_description_or_a_type_is_rejected(
    text: str, wording: RecordedWording
) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is recorded
        read_values(text)

    wording(str(raised.value))
