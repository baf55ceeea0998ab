"""`plan --save` and `sync --plan`: what was looked at is what is rolled out, or nothing is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.in_process_command import CommandOutput, run_in_process
from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import config_map, write_unit

SECRET = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: keep-me-quiet}\n"
)
SERVED = """
given:
  objects:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: web, namespace: default}
    data: {colour: green}
"""


@pytest.fixture
def unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return write_unit(tmp_path / "unit", web=config_map(), login=SECRET)


def run_here(*args: str | Path) -> CommandOutput:
    return run_in_process(Path.cwd(), os.environ, tuple(map(str, args)))


def synced(*args: str | Path) -> CommandOutput:
    return run_here("sync", "--plan", "unit.plan", "--sandbox", *args)


def refusal(ran: CommandOutput) -> str:
    """The one sentence that says why nothing was done."""
    assert ran.code == 3, ran
    assert ran.stdout == ""
    head, place, hint = ran.stderr.splitlines()[-3:]
    assert place == "  at unit.plan"
    assert "`tidegate plan --save FILE`" in hint
    return head


def test_a_saved_plan_is_run_without_naming_the_path_again(
    wording: RecordedWording, unit: Path
) -> None:
    saved = run_here("plan", "unit", "--save", "unit.plan")

    ran = synced()

    wording(saved.stdout.splitlines()[-1])
    assert ran.code == 0, ran.stderr
    wording(line for line in ran.stdout.splitlines() if "  rollout  " in line)
    assert "keep-me-quiet" not in Path("unit.plan").read_text()
    del unit


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("web", config_map().replace("blue", "red")),
        ("web", config_map("other")),
        ("more", config_map("more")),
        ("web", config_map(wave="3")),
        ("login", SECRET.replace("quiet", "still")),
    ],
    ids=["other data", "another name", "another object", "another wave", "another secret"],
)
def test_a_plan_is_refused_when_what_it_was_made_of_has_changed(
    wording: RecordedWording, file: str, text: str, unit: Path
) -> None:
    run_here("plan", "unit", "--save", "unit.plan")
    write_unit(unit, **{file: text})

    wording(refusal_of_inputs(synced()))


def refusal_of_inputs(ran: CommandOutput) -> str:
    assert ran.code == 3, ran
    assert ran.stdout == ""
    return ran.stderr


def test_a_plan_is_refused_when_the_cluster_has_changed(
    wording: RecordedWording, unit: Path
) -> None:
    run_here("plan", "unit", "--save", "unit.plan")
    Path("given.yaml").write_text(SERVED)

    result = refusal(synced("--scenario", "given.yaml"))

    wording(result)
    del unit


def test_different_options_are_rejected_and_the_hint_names_the_original_ones(
    wording: RecordedWording,
    unit: Path,
) -> None:
    run_here("plan", "unit", "--namespace", "shop", "--save", "unit.plan")

    ran = synced()

    wording(refusal(ran))
    wording(ran.stderr.splitlines()[-1])
    del unit


def test_a_plan_for_no_cluster_is_not_run_on_a_real_one(unit: Path, tmp_path: Path) -> None:
    run_here("plan", "unit", "--save", "unit.plan")
    document = json.loads(Path("unit.plan").read_text())
    document["servers"] = {"": "https://prod.example.org"}
    Path("unit.plan").write_text(json.dumps(document))

    ran = synced()

    assert any(
        "error[plan.target]" in line and "https://prod.example.org" in line
        for line in ran.stderr.splitlines()
    )
    assert ran.code == 3
    del unit, tmp_path


def test_a_plan_with_an_error_is_not_saved(unit: Path) -> None:
    write_unit(unit, bad="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndada: {}\n")

    ran = run_here("plan", "unit", "--save", "unit.plan")

    assert ran.code == 3
    assert "warning[preflight.not-saved]" in ran.stderr
    assert not Path("unit.plan").exists()


@pytest.mark.parametrize("text", ["", "{}", '{"kind": "TidegatePlan"}', "kind: [", "[" * 5_000])
def test_an_invalid_plan_file_is_rejected(text: str, unit: Path) -> None:
    Path("unit.plan").write_text(text)

    ran = synced()

    assert ran.code == 3
    assert "error[plan.document]" in ran.stderr
    del unit


def test_a_saved_plan_cannot_be_run_partially(wording: RecordedWording, unit: Path) -> None:
    run_here("plan", "unit", "--save", "unit.plan")

    ran = synced("--resource", ":ConfigMap:web")

    assert ran.code == 2
    wording(ran.stderr.splitlines()[-1])
    del unit


def test_a_plan_that_cannot_be_written_is_an_error_with_its_place(unit: Path) -> None:
    ran = run_here("plan", "unit", "--save", "nowhere/unit.plan")

    assert ran.code == 3
    assert any(
        "error[file.plan]" in line and "No such file or directory" in line
        for line in ran.stderr.splitlines()
    )
    assert "  at nowhere/unit.plan" in ran.stderr
    del unit
