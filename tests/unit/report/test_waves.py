"""The tables of an inventory."""

from __future__ import annotations

from tests.support.recorded_wording import RecordedWording
from tidegate.model.units.unit import UnitId
from tidegate.model.views.waves import PhaseRow, WaveInventory
from tidegate.report.waves import waves_lines

UNITS = tuple(UnitId("Application", "", "argocd", f"component-{number}") for number in range(9))
PHASE = PhaseRow(appset="ApplicationSet/argocd/all", step=1, phase="010", max_update=2, units=UNITS)


def test_long_lines_are_truncated_in_a_terminal() -> None:
    lines = list(waves_lines(WaveInventory(phases=(PHASE,)), max_width=40))

    assert lines[0] == "PHASE  STEP                   UNITS"
    assert len(lines[1]) == 40
    assert lines[1].endswith("…")


def test_lines_are_complete_in_a_pipe() -> None:
    (_, line) = waves_lines(WaveInventory(phases=(PHASE,)))

    assert line.endswith("component-8")


def test_an_empty_inventory_is_one_line(wording: RecordedWording) -> None:
    wording(waves_lines(WaveInventory()))
