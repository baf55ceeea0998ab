"""docs/reference/health-rows.md agrees with the code. `--golden` writes its tables of kinds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from tidegate.health.argo import builtin_rows
from tidegate.health.argo.judge import RULES
from tidegate.health.rows import HealthRow, read_health_rows
from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.model.operators.rows import WILDCARD, Check, HealthCase, KindRow

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "health-rows.md"


def table(title: str) -> str:
    return PAGE.read_text().split(f"| {title} |", 1)[1].split("\n\n", 1)[0]


@pytest.mark.parametrize(
    ("title", "noun"),
    [("key of a case | meaning", HealthCase), ("key of a check | meaning", Check)],
)
def test_the_page_lists_every_key(title: str, noun: type[msgspec.Struct]) -> None:
    cells = [line.split(" | ")[0] for line in table(title).splitlines()[2:]]
    shown = [key for cell in cells for key in re.findall(r"`(\w+)`", cell)]

    assert sorted(shown) == sorted(field.encode_name for field in msgspec.structs.fields(noun))


def test_the_examples_can_be_read() -> None:
    examples = re.findall(r"```yaml\n(.+?)```", PAGE.read_text(), re.DOTALL)

    assert len(examples) == 2
    assert all(read_health_rows(example.encode(), "page.md") for example in examples)


def is_ours(row: KindRow, kind: str) -> bool:
    known = builtin_rows().find(row.group, kind) is not None or (row.group, kind) in RULES
    return bool(row.ready_when) and row.group != WILDCARD and not known


def lines(rows: Iterable[tuple[str, tuple[str, ...], str]]) -> str:
    cells = (f"| `{group}` | {', '.join(kinds)} | {source} |" for group, kinds, source in rows)
    return "\n".join(sorted(cells)).replace("`*", "`\\*").replace("| * |", "| \\* |")


def of_argo_cd() -> str:
    named: Iterable[HealthRow] = builtin_rows().named.values()
    rows = {id(row): row for row in (*named, *builtin_rows().patterns)}.values()
    return lines((row.group, row.kinds, row.source) for row in rows)


def of_operators() -> str:
    kinds = (
        (row, tuple(kind for kind in row.kinds if is_ours(row, kind)))
        for row in load_builtin_knowledge().rows
    )
    return lines((row.group, ours, row.source) for row, ours in kinds if ours)


@pytest.mark.parametrize(
    ("title", "rows"),
    [
        ("group | kinds | facts from", of_argo_cd()),
        ("group | kinds | facts of the operator from", of_operators()),
    ],
)
def test_the_page_lists_every_kind_with_its_source(
    title: str, rows: str, pytestconfig: pytest.Config
) -> None:
    if pytestconfig.getoption("--golden"):
        before, after = PAGE.read_text().split(f"| {title} |\n|---|---|---|\n", 1)
        rest = re.sub(r"\A(\|.*\n)*", "", after)
        PAGE.write_text(f"{before}| {title} |\n|---|---|---|\n{rows}\n{rest}")

    assert table(title).removeprefix("\n|---|---|---|\n").rstrip("\n") == rows
