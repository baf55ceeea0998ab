"""Every script of Argo CD 3.5.6 has a row or a rule, and both agree.

The objects are the test objects of the scripts, read from the Go module of Argo CD.
"""

from __future__ import annotations

import pytest

from tests.conformance.oracles.argo_health import shipped
from tidegate.health.argo import builtin_rows, judge
from tidegate.health.argo.judge import RULES

PATTERNS = shipped.PATTERNS.read_text().split()
WITHOUT_ROW: set[str] = set()
"""Scripts without a row or a rule."""
DIFFERING: set[str] = set()
"""Scripts that say something else of a body of their own."""


def is_known(pattern: str) -> bool:
    group, kind = pattern.replace("*", "any").split("/")
    return (group, kind) in RULES or builtin_rows().find(group, kind) is not None


def test_every_script_of_argo_cd_has_a_row_or_a_rule() -> None:
    assert {pattern for pattern in PATTERNS if not is_known(pattern)} == WITHOUT_ROW


def test_every_row_belongs_to_a_script_of_argo_cd() -> None:
    named = {f"{row.group}/{kind}" for row in builtin_rows().named.values() for kind in row.kinds}
    groups = {pattern.split("/")[0] for pattern in PATTERNS if pattern.endswith("/*")}

    assert {item for item in named - set(PATTERNS) if item.split("/")[0] not in groups} == set()


@pytest.mark.kube
def test_the_list_of_scripts_equals_the_one_of_argo_cd() -> None:
    assert shipped.patterns(shipped.folder()) == PATTERNS


@pytest.mark.kube
@pytest.mark.parametrize("pattern", sorted(set(PATTERNS) - DIFFERING))
def test_our_verdicts_equal_those_of_the_scripts_on_their_test_data(pattern: str) -> None:
    differing = [
        (name, state, verdict)
        for name, body, state in shipped.cases(shipped.folder(), pattern)
        if (verdict := judge(body)) is None or verdict.health != state
    ]

    assert differing == []
