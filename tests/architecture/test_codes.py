"""Everything that Tidegate prints as a code is documented, and `tidegate rule` describes it."""

from __future__ import annotations

import pytest

from tests.support.printed_codes import printed_codes
from tidegate.lint.registry import RULES_BY_FINDING_CODE
from tidegate.linting.code_pages import describe_code, read_code_rows
from tidegate.model.finding import Severity

PRINTED = printed_codes()
CODES = sorted(set[str]().union(*PRINTED.values()))


@pytest.mark.parametrize("table", ["code", "event", "outcome", "reason"])
def test_every_printed_code_is_documented_and_every_documented_one_is_printed(table: str) -> None:
    documented = {code for code, row in read_code_rows().items() if row.table == table}

    assert documented == PRINTED[table]


@pytest.mark.parametrize("code", CODES)
def test_every_printed_code_can_be_looked_up(code: str) -> None:
    page = describe_code(code)

    assert page.code == RULES_BY_FINDING_CODE.get(code, code)
    assert page.title
    assert page.page.startswith(f"# {page.code}")


def test_every_severity_is_documented_as_such() -> None:
    severities = {
        severity
        for row in read_code_rows().values()
        if row.severity
        for severity in row.severity.split(", ")
    }

    assert severities == {severity.value for severity in Severity}
