"""Rows that a real server printed, kept for tests that have none."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from tidegate.model.k8s.objects import Json, Kind
from tidegate.model.times import Ms

FILE = Path(__file__).parents[1] / "data" / "tables" / "printed.jsonl"


class PrintedRow(msgspec.Struct, frozen=True):
    """An object, and what was in its cells at a moment."""

    kind: Kind
    body: dict[str, Json]
    cells: Json
    now: Ms


def record(rows: Iterable[PrintedRow]) -> None:
    """One row a line, without what no cell is about."""
    FILE.write_bytes(b"".join(msgspec.json.encode(_bare(row)) + b"\n" for row in rows))


def _bare(row: PrintedRow) -> PrintedRow:
    metadata = row.body.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    kept = {key: part for key, part in known.items() if key != "managedFields"}
    return msgspec.structs.replace(row, body={**row.body, "metadata": kept})


def recorded() -> list[PrintedRow]:
    result: list[PrintedRow] = []
    for line in FILE.read_bytes().splitlines():
        row = msgspec.json.decode(line)
        kind = Kind(**row["kind"])
        result.append(PrintedRow(kind, row["body"], row["cells"], Ms(row["now"])))
    return result
