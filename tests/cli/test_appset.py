"""`tidegate appset generate` from outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.rolling_appset import Ladder
from tests.support.tidegate_runs import ROOT, tidegate

HOMELAB = ROOT / "examples" / "homelab"


@pytest.fixture
def ladder(tmp_path: Path) -> Ladder:
    made = Ladder(tmp_path)
    made.step(1, "a", most=1)
    made.step(2, "b")
    return made


def test_names_are_in_the_order_of_the_generators(ladder: Ladder) -> None:
    ran = tidegate(
        "argocd", "appset", "generate", ladder.write() / "set.yaml", "-o", "names", "--offline"
    )

    assert ran.stdout == "argocd/a\nargocd/b\n"
    assert ran.returncode == 0


def test_generated_applications_equal_those_of_argo_cd(ladder: Ladder) -> None:
    ran = tidegate(
        "argocd", "appset", "generate", ladder.write() / "set.yaml", "-o", "json", "--offline"
    )

    first, _ = map(json.loads, ran.stdout.splitlines())
    assert first["metadata"] == {
        "name": "a",
        "namespace": "argocd",
        "labels": {"step": "1"},
        "finalizers": ["resources-finalizer.argocd.argoproj.io"],
    }
    assert first["spec"]["source"]["path"] == "apps/a"


def test_parameters_are_printed_with_their_generator_and_step(
    wording: RecordedWording, ladder: Ladder
) -> None:
    ladder.write()
    args = ("argocd", "appset", "generate", ladder.folder / "set.yaml", "--params", "--offline")

    lines = [json.loads(line) for line in tidegate(*args, "-o", "json").stdout.splitlines()]
    text = tidegate(*args).stdout

    assert [(line["generator"], line["number"], line["step"]) for line in lines] == [
        (0, 1, 1),
        (0, 2, 2),
    ]
    assert lines[1]["params"] == {"name": "b", "step": "2"}
    assert lines[1]["application"]["metadata"]["name"] == "b"
    wording(text)


def test_a_directory_means_all_sets_below_it() -> None:
    ran = tidegate("argocd", "appset", "generate", HOMELAB, "-o", "json", "--params", "--offline")

    sets = {json.loads(line)["set"].rpartition("/")[2] for line in ran.stdout.splitlines()}
    assert len(sets) == 3


def test_units_shows_the_generated_applications_of_a_set() -> None:
    shown = json.loads(tidegate("units", HOMELAB, "--offline", "-o", "json").stdout)
    ran = tidegate("argocd", "appset", "generate", HOMELAB, "-o", "names", "--offline")

    of_sets = {f"{unit['namespace']}/{unit['name']}" for unit in shown["units"] if unit["set"]}
    assert set(ran.stdout.split()) == of_sets


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("- list:", "- lists:", "appset.generator"),
        ("{name: b, ", "{name: a, ", "appset.duplicate"),
        (", maxUpdate: 1", ", maxUpdate: abc", "appset.steps"),
    ],
)
def test_an_error_has_a_code_and_a_location(ladder: Ladder, old: str, new: str, code: str) -> None:
    file = ladder.write() / "set.yaml"
    file.write_text(file.read_text().replace(old, new, 1))

    ran = tidegate("argocd", "appset", "generate", file, "--offline")

    assert ran.returncode == 3
    assert f"error[{code}]" in ran.stderr
    assert "at set.yaml:" in ran.stderr


def test_a_file_without_a_set_is_an_error(ladder: Ladder) -> None:
    ladder.write()

    ran = tidegate(
        "argocd", "appset", "generate", ladder.folder / "apps" / "a" / "web.yaml", "--offline"
    )

    assert ran.returncode == 3
    assert "error[plan.appsets]" in ran.stderr
