"""Repositories laid out like public ones: `lint` finds what a person finds, and nothing else.

Each repository of `tests/data/corpus` has a file with its findings of severity error or warning:
code, file, and the reason.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.mutations.repository import CORPUS, Repository, repositories
from tests.mutations.run import lint_changed

REPOSITORIES = {repository.name: repository for repository in repositories()}


class ExpectedFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finding that a person has judged to be true."""

    code: str
    file: str
    why: str


def expected_findings(name: str) -> list[ExpectedFinding]:
    (path,) = CORPUS.glob(f"*/{name}.findings.yaml")
    return msgspec.yaml.decode(path.read_bytes(), type=list[ExpectedFinding])


@pytest.mark.parametrize("repository", REPOSITORIES.values(), ids=REPOSITORIES)
def test_lint_finds_what_a_person_finds(repository: Repository) -> None:
    findings = lint_changed(repository, {})

    assert not isinstance(findings, str), findings
    reported = sorted({(finding.code, finding.file) for finding in findings})
    expected = [(finding.code, finding.file) for finding in expected_findings(repository.name)]
    assert reported == sorted(expected)


def test_each_repository_has_recorded_findings() -> None:
    files: list[Path] = sorted(CORPUS.glob("*/*.findings.yaml"))

    assert sorted(file.name.removesuffix(".findings.yaml") for file in files) == [*REPOSITORIES]
    assert len(REPOSITORIES) >= 24
