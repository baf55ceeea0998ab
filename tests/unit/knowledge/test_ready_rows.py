"""The precompiled files of rows hold the same rows as the files they are compiled from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tidegate.documents.precompiled import digest_texts, read_precompiled
from tidegate.health.argo.judge import PRECOMPILED_FILE as HEALTH
from tidegate.health.argo.judge import HealthRows
from tidegate.health.argo.judge import parse_row_files as read_health
from tidegate.health.argo.judge import read_row_files as health_texts
from tidegate.knowledge.reader import PRECOMPILED_FILE as KNOWLEDGE
from tidegate.knowledge.reader import parse_row_files, read_row_files
from tidegate.model.operators.rows import Knowledge

Texts = dict[str, bytes]
PRECOMPILED: list[tuple[Path, Texts, Callable[[Texts], object], object]] = [
    (KNOWLEDGE, read_row_files(), parse_row_files, Knowledge),
    (HEALTH, health_texts(), read_health, HealthRows),
]


def in_lines(value: object) -> str:
    """One row a line, so that a change shows as such."""
    if isinstance(value, dict):
        parts = (f'"{key}":{in_lines(item)}' for key, item in value.items())
        return f"{{{','.join(parts)}}}"
    if isinstance(value, list | tuple):
        rows = ",\n".join(msgspec.json.encode(item).decode() for item in value)
        return f"[\n{rows}]"
    return msgspec.json.encode(value).decode()


@pytest.mark.parametrize(
    ("place", "texts", "read", "into"), PRECOMPILED, ids=["knowledge", "health"]
)
def test_a_precompiled_file_holds_the_rows_of_its_sources(
    place: Path,
    texts: Texts,
    read: Callable[[Texts], object],
    into: type[object],
    pytestconfig: pytest.Config,
) -> None:
    fresh = read(texts)
    if pytestconfig.getoption("--golden"):
        place.write_text(f"{digest_texts(texts)}\n{in_lines(msgspec.to_builtins(fresh))}\n")

    assert read_precompiled(place.read_bytes(), texts, into) == fresh, "run this test with --golden"


def test_a_precompiled_file_is_ignored_for_other_sources() -> None:
    texts = {"a.yaml": b"1", "b.yaml": b"2"}
    content = f"{digest_texts(texts)}\n[1, 2]".encode()

    assert read_precompiled(content, texts, list[int]) == [1, 2]
    assert read_precompiled(content, {**texts, "b.yaml": b"3"}, list[int]) is None
