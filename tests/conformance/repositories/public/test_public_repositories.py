"""Parts of public repositories: their output, with the dependencies that they lack.

`--golden` records the output. The missing dependencies of an empty cluster are written by hand.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner

from tidegate.cli.main import cli
from tidegate.documents import read_documents

HERE = Path(__file__).parent
CASES = sorted(path.name for path in (HERE / "cases").iterdir())
LACKS = cast(
    "dict[str, list[str] | None]",
    read_documents((HERE / "empty_cluster.yaml").read_bytes(), "empty_cluster.yaml")[0].body,
)
FAULTS = ["gone-version"]
"""Those that a cluster refuses for what they say."""
FAILURES = ["missing-secret", "smoke-test"]
"""Those that would fail in a real cluster, too."""
ASSUMING = [
    name for name in CASES if "\ngiven:\n" in (HERE / "expected" / f"{name}.txt").read_text()
]
"""Repositories with assumed dependencies."""
FAR = [name for name, lacks in LACKS.items() if lacks is None]
"""Repositories that lack a part of themselves, which cannot be fetched."""
UNSEEN = ["argo-elsewhere"]
"""Those of which no unit at all could be looked into."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory outside of any repository."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def simulate(place: Path, case: str, *words: str) -> tuple[int, str]:
    """The exit code and the output."""
    if not (place / case).exists():
        shutil.copytree(HERE / "cases" / case, place / case)
    ran = CliRunner().invoke(cli, ["simulate", case, *words], standalone_mode=False)
    if ran.exception is not None:
        raise ran.exception
    return ran.return_value, ran.stdout


def lacks_of(result: str) -> list[str]:
    documents = [json.loads(line) for line in result.splitlines()]
    return [
        f"{document['type']} {document['name']}"
        for document in documents
        if document["event"] == "cluster.missing-dependency"
    ]


def test_there_are_enough_repositories() -> None:
    assert len(CASES) >= 30
    assert sorted(LACKS) == CASES


@pytest.mark.parametrize("case", CASES)
def test_every_command_handles_a_part_of_a_repository(
    case: str, place: Path, pytestconfig: pytest.Config
) -> None:
    code, result = simulate(place, case)
    golden = HERE / "expected" / f"{case}.txt"
    if pytestconfig.getoption("--golden"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(result)

    assert result == golden.read_text()
    incomplete = 9 if "incomplete: " in result else 0
    expected = 3 if case in (*FAULTS, *FAR, *UNSEEN) else 4 if case in FAILURES else incomplete
    assert code == expected


@pytest.mark.parametrize("case", [case_ for case_ in CASES if case_ not in FAR])
def test_an_empty_cluster_has_exactly_these_missing_dependencies(case: str, place: Path) -> None:
    _, result = simulate(place, case, "--empty-cluster", "-o", "json")

    assert lacks_of(result) == LACKS[case]


@pytest.mark.parametrize("case", ASSUMING)
def test_the_printed_assumptions_are_a_valid_scenario(case: str, place: Path) -> None:
    code, result = simulate(place, case)
    head, _, rest = result.partition("\ngiven:\n")
    lines, _, scenario = f"given:\n{rest}".partition("\n\n")
    (place / "pasted.yaml").write_text(f"{lines}\n")

    again = simulate(place, case, "--scenario", "pasted.yaml")

    assert head.endswith(":")
    assert again == (code, scenario)
