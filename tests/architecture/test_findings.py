"""Finding codes are public: the documented codes are the codes in the source."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.printed_codes import finding_codes

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "findings.md"
ROW = re.compile(r"^\| `([a-z.-]+)` \| ([a-z, ]+) \| .+ \| .+ \|$", re.MULTILINE)


def test_every_finding_is_documented_and_every_documented_one_exists() -> None:
    documented = sorted(code for code, _ in ROW.findall(PAGE.read_text()))

    assert documented == sorted(finding_codes())
