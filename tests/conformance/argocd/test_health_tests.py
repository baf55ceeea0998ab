"""`tidegate health test` on scripts and test objects, with the output for wrong ones."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conformance.oracles.argo_health import shipped
from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import tidegate

SCRIPT = """
if obj.status == nil then return { status = "Progressing", message = "no status" } end
if string.upper(obj.status.phase) == "DONE" then return { status = "Healthy" } end
return { status = "Degraded", message = obj.status.phase }
"""
TESTS = """
tests:
- {inputPath: testdata/new.yaml, healthStatus: {status: Progressing, message: no status}}
- {inputPath: testdata/done.yaml, healthStatus: {status: Healthy}}
"""
NEW = "apiVersion: shop.example/v1\nkind: Widget\nmetadata: {name: one}\n"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return tidegate("health", "test", *arguments)


def numbers(ended: subprocess.CompletedProcess[str]) -> list[int]:
    """How many tests passed, and how many there are."""
    (line,) = ended.stdout.splitlines()
    return [int(word) for word in line.split() if word.isdigit()]


def a_folder(
    folder: Path, tests: str = TESTS, *, script: str = SCRIPT, kind: str = "shop.example/Widget"
) -> Path:
    kind_folder = folder / kind
    (kind_folder / "testdata").mkdir(parents=True)
    (kind_folder / "health.lua").write_text(script)
    (kind_folder / "health_test.yaml").write_text(tests)
    (kind_folder / "testdata" / "new.yaml").write_text(NEW)
    (kind_folder / "testdata" / "done.yaml").write_text(f"{NEW}status: {{phase: done}}\n")
    return folder


def test_a_script_with_the_expected_health_passes(tmp_path: Path) -> None:
    ended = run(a_folder(tmp_path))

    assert (ended.returncode, numbers(ended)) == (0, [2, 2])


def test_a_wrong_state_and_a_wrong_message_are_shown(
    tmp_path: Path, wording: RecordedWording
) -> None:
    tests = TESTS.replace("no status}", "none}").replace("Healthy}", "Degraded, message: done}")

    ended = run(a_folder(tmp_path, tests))

    assert ended.returncode == 4
    wording(ended.stdout)


def test_a_script_that_fails_is_reported_with_its_error(tmp_path: Path) -> None:
    ended = run(a_folder(tmp_path, script="return obj.status.phase .. nil"), "-o", "json")

    messages = [json.loads(line) for line in ended.stdout.splitlines()]
    assert ended.returncode == 4
    assert all("attempt to" in item["problem"] for item in messages)


def test_a_body_is_tested_with_the_script_of_its_kind(tmp_path: Path) -> None:
    a_folder(tmp_path)

    ended = run(a_folder(tmp_path, script="return nil", kind="_.example/_"))

    assert (ended.returncode, numbers(ended)) == (0, [4, 4])


@pytest.mark.parametrize(
    ("missing", "code"),
    [("health_test.yaml", "documents.empty"), ("health.lua", "documents.file")],
)
def test_a_folder_without_a_required_file_is_rejected(
    tmp_path: Path, missing: str, code: str
) -> None:
    (a_folder(tmp_path) / "shop.example" / "Widget" / missing).unlink()

    ended = run(tmp_path)

    assert ended.returncode == 3
    assert f"error[{code}]" in ended.stderr
    assert missing in ended.stderr


def test_a_test_without_a_body_is_rejected(tmp_path: Path) -> None:
    ended = run(a_folder(tmp_path, "tests: [{healthStatus: {status: Healthy}}]"))

    assert ended.returncode == 3
    assert "inputPath" in ended.stderr


@pytest.mark.kube
def test_the_scripts_that_argo_cd_ships_pass_their_own_tests() -> None:
    ended = run(str(shipped.folder()))

    assert (ended.returncode, numbers(ended)) == (0, [1127, 1127])
