"""A required field that one unit leaves out is a mistake; if several do, something adds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.file_trees import GIT_REPOSITORY, kustomization, lint_report, write_files


@pytest.mark.parametrize(("count", "severities"), [(2, {"error"}), (3, {"note"})])
def test_a_field_that_many_units_leave_out_is_no_mistake(
    tmp_path: Path, count: int, severities: set[str]
) -> None:
    unit = kustomization("{0}", "./web")
    assert "prune: true" in unit
    files = {
        f"base/{number}/ks.yaml": unit.replace("{0}", f"unit{number}").replace(
            "prune: true", "x: 1"
        )
        for number in range(count)
    }
    root = write_files(tmp_path, {"source.yaml": GIT_REPOSITORY, **files})

    findings = [item for item in lint_report(root).findings if item.code == "flux.required"]

    assert {finding.severity for finding in findings} == severities
