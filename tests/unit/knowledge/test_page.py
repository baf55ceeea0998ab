"""docs/reference/operators-format.md and the pages next to it agree with the code."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from tidegate.knowledge.reader import load_builtin_knowledge, parse_knowledge
from tidegate.knowledge.templates import FUNCTIONS
from tidegate.model.operators.rows import (
    Check,
    KindRow,
    Need,
    Operator,
    PodsRow,
    ProducerRow,
    Product,
    ReadinessBlocker,
    ReferenceRow,
    ServiceProduct,
    Stage,
    StageDuration,
    Workload,
    WorkloadSelector,
)
from tidegate.report.knowledge import catalog_page_lines

KINDS = Path(__file__).parents[3] / "docs" / "reference" / "known-kinds.md"
PAGE_FILE = Path(__file__).parents[3] / "docs" / "reference" / "operators-format.md"
PAGE = PAGE_FILE.read_text()


def first_cells(title: str, page: str = PAGE) -> list[str]:
    table = page.split(f"| {title} |", 1)[1].split("\n\n", 1)[0]
    return [line.split(" | ")[0] for line in table.splitlines()[2:]]


@pytest.mark.parametrize(
    ("title", "noun"),
    [
        ("key of a row", KindRow),
        ("key of `served_by`", WorkloadSelector),
        ("key of a need", Need),
        ("key of a stage", Stage),
        ("key of a pace", StageDuration),
        ("key of a product", Product),
        ("key of a service", ServiceProduct),
        ("key of a check", Check),
        ("key of a hold", ReadinessBlocker),
        ("key of an operator", Operator),
        ("key of a workload", Workload),
    ],
)
def test_the_page_lists_every_key(title: str, noun: type[msgspec.Struct]) -> None:
    shown = [key for cell in first_cells(title) for key in re.findall(r"`(\w+)`", cell)]

    assert sorted(shown) == sorted(field.encode_name for field in msgspec.structs.fields(noun))


REFERENCES = (PAGE_FILE.parent / "references.md").read_text()


@pytest.mark.parametrize(
    ("title", "noun"),
    [
        ("key of a reference", ReferenceRow),
        ("key of a row about pods", PodsRow),
        ("key of a producer", ProducerRow),
    ],
)
def test_the_page_about_references_lists_every_key(title: str, noun: type[msgspec.Struct]) -> None:
    shown = [key for cell in first_cells(title, REFERENCES) for key in re.findall(r"`(\w+)`", cell)]

    assert sorted(shown) == sorted(field.encode_name for field in msgspec.structs.fields(noun))


def test_the_example_about_references_can_be_read() -> None:
    (example,) = re.findall(r"```yaml\n(.+?)```", REFERENCES, re.DOTALL)
    known = parse_knowledge(example.encode(), "page.md")

    assert (len(known.references), len(known.pods), len(known.producers)) == (1, 1, 1)


def test_the_page_of_kinds_is_made_from_the_rows(pytestconfig: pytest.Config) -> None:
    introduction, _, _ = KINDS.read_text().partition("\n|")
    expected = "\n".join([introduction, *catalog_page_lines(load_builtin_knowledge()), ""])
    if pytestconfig.getoption("golden"):
        KINDS.write_text(expected)

    assert KINDS.read_text() == expected


def test_forty_operators_have_names() -> None:
    assert len({operator.name for operator in load_builtin_knowledge().operators}) >= 40


def test_the_page_lists_every_function_of_templates() -> None:
    assert set(re.findall(r"\$\{(\w+)\(", PAGE)) == set(FUNCTIONS)


def test_the_examples_can_be_read() -> None:
    first, second, third = re.findall(r"```yaml\n(.+?)```", PAGE, re.DOTALL)

    (row,) = parse_knowledge(first.encode(), "page.md").rows
    (hold,) = parse_knowledge(second.encode(), "page.md").holds
    (operator,) = parse_knowledge(third.encode(), "page.md").operators
    (user_row,) = parse_knowledge(third.encode(), "page.md").rows

    assert [stage.name for stage in row.stages] == ["creating", "ready"]
    assert hold.until_jobs == ("unseal-*",)
    assert user_row.operator == operator.name
