"""The corpus tool, from outside, over two directories of the examples."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.corpus.results import CheckoutResult

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two checkouts: manifests without mistakes, and a missing dependency of a Kustomization."""
    directory = tmp_path_factory.mktemp("checkouts")
    shutil.copytree(EXAMPLES / "first", directory / "first")
    shutil.copytree(EXAMPLES / "broken" / "dependency-nowhere", directory / "nowhere")
    return directory


@pytest.fixture(scope="module")
def saved(checkouts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of one run, saved as JSON."""
    file = tmp_path_factory.mktemp("results") / "round.json"
    file.write_text(corpus(checkouts, "-o", "json"))
    return file


def corpus(*arguments: str | Path) -> str:
    """Run the tool and return what it printed."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.corpus", *map(str, arguments)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def test_each_checkout_has_exit_codes_units_objects_and_findings(saved: Path) -> None:
    first, nowhere = msgspec.json.decode(saved.read_bytes(), type=list[CheckoutResult])

    assert (first.name, first.read, first.units, first.rendered) == ("first", "whole", 1, 1)
    assert first.objects == first.planned > 0
    assert first.simulated == "passed"
    assert {name: timing.exit_code for name, timing in first.commands.items()} == {
        "units": 0,
        "lint": 0,
        "graph": 0,
        "plan": 0,
        "simulate": 0,
    }
    assert nowhere.read == "whole"
    assert nowhere.commands["lint"].exit_code == 3
    assert "ORD001" in {finding.code for finding in nowhere.findings}
    assert not any(timing.traceback for timing in nowhere.commands.values())


def test_the_table_has_a_row_per_checkout_and_counts_causes(checkouts: Path, saved: Path) -> None:
    lines = corpus(checkouts, "--results", saved).splitlines()

    assert [line.split()[:2] for line in lines[1:3]] == [["first", "whole"], ["nowhere", "whole"]]
    assert any(line.startswith("ORD001: 1 ") for line in lines)


def test_a_sample_has_the_lines_of_each_finding_and_repeats_with_its_seed(
    checkouts: Path, saved: Path
) -> None:
    options = (checkouts, "--results", saved, "--sample", "1", "--seed", "3")

    sample = corpus(*options)

    assert sample.count("## ") == 1
    assert sample.startswith("## 1. nowhere: ")
    assert "\n   >" in sample
    assert corpus(*options) == sample


def test_a_command_that_takes_too_long_is_stopped_and_the_checkout_is_not_read(
    checkouts: Path,
) -> None:
    output = corpus(checkouts, "--commands", "lint", "--limit", "0.01", "-o", "json")

    results = msgspec.json.decode(output, type=list[CheckoutResult])
    assert [(result.read, result.commands["lint"].exit_code) for result in results] == [
        ("no", -1),
        ("no", -1),
    ]
