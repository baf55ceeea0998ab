"""Knows which files of the charts are made of others, and what they must hold.

A chart has a copy of the library, because Helm renders no chart whose `charts` directory lacks what
it declares. It has a schema and a table of its values, both made of `values.yaml`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from charts.schema import schema_of
from charts.table import table_of
from charts.values import read_values

LIBRARY = "php-library"
CHARTS = ("laravel", "yii2", "wordpress-bedrock")
RULES = Path("health", "kinda.rocks.yaml")


def made_files(charts: Path) -> dict[Path, str]:
    """Each file that is made, with its text."""
    return {path: text for name in CHARTS for path, text in _of_chart(charts, name)}


def stale_files(charts: Path) -> list[Path]:
    """Files in copies of the library that the library does not have."""
    made = made_files(charts)
    copies = (charts / name / "charts" for name in CHARTS)
    return sorted(
        path for copy in copies for path in copy.rglob("*") if path.is_file() and path not in made
    )


def _of_chart(charts: Path, name: str) -> Iterator[tuple[Path, str]]:
    chart = charts / name
    values = read_values((chart / "values.yaml").read_text(encoding="utf-8"))
    yield chart / "values.schema.json", _json(schema_of(values, library=LIBRARY))
    yield chart / "README.md", _readme(charts, chart, table_of(values))
    for path in sorted((charts / LIBRARY).rglob("*")):
        if path.is_file():
            copy = chart / "charts" / path.relative_to(charts)
            yield copy, path.read_text(encoding="utf-8")


def _json(schema: object) -> str:
    return json.dumps(schema, indent=2) + "\n"


def _readme(charts: Path, chart: Path, table: str) -> str:
    text = (chart / "README.md").read_text(encoding="utf-8")
    rules = (charts / RULES).read_text(encoding="utf-8")
    text = _put(text, "rules", f"```yaml\n{rules}```")
    return _put(text, "values", table)


def _put(text: str, name: str, part: str) -> str:
    """The text with another part between the two lines that name it."""
    start, end = f"<!-- {name}: python -m charts -->\n", f"<!-- end of {name} -->\n"
    before, result, rest = text.partition(start)
    _, ended, after = rest.partition(end)
    if not result or not ended:
        raise ValueError(f"the lines `{start.strip()}` and `{end.strip()}` are not there")
    return f"{before}{start}\n{part}\n\n{end}{after}"
