"""The cells of the tables of `kubectl get`."""

from __future__ import annotations

import pytest

from tests.support.printed_rows import PrintedRow, recorded
from tidegate.apiserver.discovery import ServedKinds
from tidegate.apiserver.printers.cells import human_duration
from tidegate.apiserver.printers.tables import columns_for_kind, find_values
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json

HOUR = 3600
NO_SERVED_KINDS = ServedKinds(())


@pytest.mark.parametrize(
    "row", recorded(), ids=lambda row: f"{row.kind} {get_text(row.body, 'metadata', 'name')}"
)
def test_cells_equal_those_of_a_real_server(row: PrintedRow) -> None:
    printed = [
        column.cell(row.body, row.now) for column in columns_for_kind(row.kind, NO_SERVED_KINDS)
    ]

    assert printed == row.cells


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (1, "1s"),
        (70, "70s"),
        (190, "3m10s"),
        (70 * 60, "70m"),
        (3 * HOUR, "3h"),
        (47 * HOUR, "47h"),
        (49 * HOUR, "2d1h"),
        ((8 * 24 + 2) * HOUR, "8d"),
        (367 * 24 * HOUR, "367d"),
        ((365 * 2 * 24 + 25) * HOUR, "2y1d"),
        ((365 * 8 * 24 + 2) * HOUR, "8y"),
    ],
)
def test_a_duration_is_written_as_kubernetes_writes_it(seconds: int, expected: str) -> None:
    assert human_duration(seconds) == expected


BODY: Json = {
    "spec": {"a": [{"b": 1}, {"b": 2}], "c.d": "e"},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old"}]},
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".spec.a[1].b", [2]),
        (".spec.a[*].b", [1, 2]),
        (".spec.c\\.d", ["e"]),
        (".spec['c.d']", ["e"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Old')].status", []),
        (".spec.a[7].b", []),
        (".nothing.at.all", []),
    ],
)
def test_a_column_of_a_custom_kind_is_found_by_its_path(path: str, values: list[Json]) -> None:
    assert [*find_values(BODY, path)] == values
