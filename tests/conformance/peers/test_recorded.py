"""What a real Argo CD did, recorded, and the simulation of the same repositories.

`python -m tests.conformance.peers.record` records; `--golden` writes the page.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.peers.cases import CASES, Case
from tests.conformance.peers.compare import compare
from tests.conformance.peers.page import BEHAVIOUR, PAGE, START, page_text, row_of
from tests.conformance.peers.records import RECORDS, read_record


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_simulation_does_what_argo_cd_did(case: Case, tmp_path: Path) -> None:
    agreement = compare(case, read_record(case.name), tmp_path)

    assert bool(agreement.about(*BEHAVIOUR)) is bool(case.reason)
    assert row_of(case, agreement) in PAGE.read_text().splitlines()


def test_every_case_is_recorded_and_on_the_page(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if request.config.getoption("--golden"):
        rows = []
        for case in CASES:
            folder = tmp_path / case.name
            folder.mkdir()
            rows.append(row_of(case, compare(case, read_record(case.name), folder)))
        head = PAGE.read_text().partition(START)[0]
        PAGE.write_text(page_text(head, [read_record(case.name) for case in CASES], rows))

    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0][2:] for row in rows[1:]] == [case.name for case in CASES]
    assert {path.stem for path in RECORDS.iterdir()} == {case.name for case in CASES}
