"""`tidegate delete`: its output, its confirmation, and the deleted objects."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import ROOT, kubeconfig, tidegate

UNIT = "default/shop"
SETTING = """\
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, annotations: {{argocd.argoproj.io/sync-wave: "{wave}"{more}}}}}
"""
HOOK = """\
apiVersion: batch/v1
kind: Job
metadata: {name: goodbye, annotations: {argocd.argoproj.io/hook: PreDelete}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "busybox:1"}]
"""


def run(*arguments: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
    return tidegate("delete", *arguments, "--sandbox", given=given)


def a_setting(name: str, wave: int, *, more: str = "") -> str:
    return SETTING.format(name=name, wave=wave, more=more)


def scenario_of(folder: Path, *texts: str) -> Path:
    """A cluster in which a unit has these objects."""
    mark = f"annotations: {{tidegate.dev/unit: {UNIT}, "
    marked = [text.replace("annotations: {", mark) for text in texts]
    placed = [text.replace("metadata: {", "metadata: {namespace: default, ") for text in marked]
    lines = ("\n    ".join(text.splitlines()) for text in placed)
    path = folder / "scenario.yaml"
    path.write_text("given:\n  objects:\n" + "".join(f"  - {text}\n" for text in lines))
    return path


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A directory whose two objects are in the cluster."""
    folder = tmp_path / "shop"
    folder.mkdir()
    texts = (a_setting("early", -1), a_setting("late", 2))
    (folder / "objects.yaml").write_text("---\n".join(texts))
    scenario_of(tmp_path, *texts)
    return folder


def scenario(shop: Path) -> tuple[str, Path]:
    return ("--scenario", shop.parent / "scenario.yaml")


def test_without_live_objects_there_is_nothing_to_delete(
    wording: RecordedWording, shop: Path
) -> None:
    result, confirmed = run(shop), run(shop, "--yes")

    assert [(item.returncode, item.stderr) for item in (result, confirmed)] == [(0, "")] * 2
    assert result.stdout == confirmed.stdout
    wording(result.stdout)


def test_hooks_do_not_run_where_there_is_nothing_to_delete(shop: Path) -> None:
    (shop / "hook.yaml").write_text(HOOK)

    ran = run(shop, "--yes", "-o", "json")

    assert (ran.returncode, ran.stdout) == (0, ""), "no event"
    assert json.loads(ran.stderr)["severity"] == "note"


def test_json_output_has_a_note_when_there_is_nothing_to_delete(
    wording: RecordedWording, shop: Path
) -> None:
    ran = run(shop, "--sandbox", "-o", "json")

    assert (ran.returncode, ran.stdout) == (0, "")
    note = json.loads(ran.stderr)
    assert note["severity"] == "note"
    wording(note["message"])


def test_a_simulated_cluster_needs_no_confirmation(wording: RecordedWording, shop: Path) -> None:
    ran = run(shop, *scenario(shop))

    assert (ran.returncode, ran.stderr) == (0, "")
    wording(ran.stdout)


def test_without_a_terminal_nothing_is_deleted(shop: Path, tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, "https://127.0.0.1:1")

    ran = tidegate("delete", shop, "--kubeconfig", config)

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--yes" in ran.stderr


def test_the_last_wave_is_deleted_first(shop: Path) -> None:
    ran = run(shop, *scenario(shop), "--yes", "-o", "json")

    events = [json.loads(line) for line in ran.stdout.splitlines()]
    pruned = [event["name"] for event in events if event["event"] == "object.pruned"]
    assert (ran.returncode, ran.stderr) == (0, "")
    assert pruned == ["late", "early"]


@pytest.mark.parametrize("consent", ["confirm", "false"])
def test_an_object_that_is_kept_is_reported(
    wording: RecordedWording, shop: Path, consent: str
) -> None:
    more = f", argocd.argoproj.io/sync-options: Delete={consent}"
    scenario_of(shop.parent, a_setting("early", -1), a_setting("late", 2, more=more))

    ran = run(shop, *scenario(shop), "--yes")

    assert ran.returncode == 0
    assert "ConfigMap default/late" in ran.stderr
    assert ("`--confirm-delete`" in ran.stderr) is (consent == "confirm")
    wording(ran.stderr)


def test_confirm_delete_deletes_what_needs_confirmation(shop: Path) -> None:
    more = ", argocd.argoproj.io/sync-options: Prune=confirm"
    scenario_of(shop.parent, a_setting("late", 2, more=more))

    ran = run(shop, *scenario(shop), "--yes", "--confirm-delete", "-o", "json")

    assert (ran.returncode, ran.stderr) == (0, "")
    assert '"object.pruned"' in ran.stdout


def test_a_missing_kubeconfig_is_an_error(shop: Path, tmp_path: Path) -> None:
    missing = tmp_path / "kubeconfig"
    ran = tidegate("delete", shop, "--kubeconfig", missing)

    assert ran.returncode == 3
    assert ran.stderr.startswith("error[config.")


def test_a_unit_that_cannot_be_read_is_not_deleted(tmp_path: Path) -> None:
    """It used to end in a traceback."""
    folder = tmp_path / "repo"
    shutil.copytree(
        ROOT / "tests" / "conformance" / "repositories" / "cases" / "root-of-applications", folder
    )
    site = folder / "overlays" / "storefront" / "site.yaml"
    site.write_text(site.read_text().replace("apiVersion: ", "api: ", 1))

    ran = run(folder)

    assert (ran.returncode, ran.stdout) == (3, "")
    (error,) = [line for line in ran.stderr.splitlines() if "error[plan.errors]: " in line]
    assert "`Application/" in error
    assert "error[dialect.incomplete]" in ran.stderr
