"""`tidegate delete`, from outside: what it shows, what it asks, and what goes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

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
    own_items = [text.replace("annotations: {", mark) for text in texts]
    placed = [text.replace("metadata: {", "metadata: {namespace: default, ") for text in own_items]
    lines = ("\n    ".join(text.splitlines()) for text in placed)
    path = folder / "scenario.yaml"
    path.write_text("given:\n  objects:\n" + "".join(f"  - {text}\n" for text in lines))
    return path


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A directory whose two objects live."""
    folder = tmp_path / "shop"
    folder.mkdir()
    texts = (a_setting("early", -1), a_setting("late", 2))
    (folder / "objects.yaml").write_text("---\n".join(texts))
    scenario_of(tmp_path, *texts)
    return folder


def scenario(shop: Path) -> tuple[str, Path]:
    return ("--scenario", shop.parent / "scenario.yaml")


def test_where_nothing_lives_there_is_nothing_to_delete(shop: Path) -> None:
    result, unasked = run(shop), run(shop, "--yes")

    assert [(item.returncode, item.stdout, item.stderr) for item in (result, unasked)] == [
        (0, "target: simulated cluster\nnothing to delete\n", "")
    ] * 2


def test_hooks_do_not_run_where_there_is_nothing_to_delete(shop: Path) -> None:
    (shop / "hook.yaml").write_text(HOOK)

    ran = run(shop, "--yes")

    assert (ran.returncode, ran.stdout) == (0, "target: simulated cluster\nnothing to delete\n")


def test_programs_read_that_there_is_nothing_as_a_note(shop: Path) -> None:
    ran = run(shop, "--sandbox", "-o", "json")

    assert (ran.returncode, ran.stdout) == (0, "")
    note = json.loads(ran.stderr)
    assert (note["severity"], note["message"]) == ("note", "nothing to delete")


def test_a_simulated_cluster_is_nothing_to_ask_about(shop: Path) -> None:
    ran = run(shop, *scenario(shop))

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("target: simulated cluster\n")
    assert "passed" in ran.stdout


def test_where_nobody_can_be_asked_nothing_is_deleted(shop: Path, tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, "https://127.0.0.1:1")

    ran = tidegate("delete", shop, "--kubeconfig", config)

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "add --yes to go on without being asked" in ran.stderr


def test_events_tell_the_last_wave_first(shop: Path) -> None:
    ran = run(shop, *scenario(shop), "--yes", "-o", "json")

    events = [json.loads(line) for line in ran.stdout.splitlines()]
    pruned = [event["name"] for event in events if event["event"] == "object.pruned"]
    assert (ran.returncode, ran.stderr) == (0, "")
    assert pruned == ["late", "early"]


@pytest.mark.parametrize(
    ("consent", "told"),
    [
        (
            "confirm",
            "note: ConfigMap default/late stays, as it asks for; `--confirm-delete` deletes it\n",
        ),
        ("false", "note: ConfigMap default/late stays, as it asks for\n"),
    ],
)
def test_what_stays_is_told(shop: Path, consent: str, told: str) -> None:
    more = f", argocd.argoproj.io/sync-options: Delete={consent}"
    scenario_of(shop.parent, a_setting("early", -1), a_setting("late", 2, more=more))

    ran = run(shop, *scenario(shop), "--yes")

    assert (ran.returncode, ran.stderr) == (0, told)


def test_what_asks_goes_with_confirm(shop: Path) -> None:
    more = ", argocd.argoproj.io/sync-options: Prune=confirm"
    scenario_of(shop.parent, a_setting("late", 2, more=more))

    ran = run(shop, *scenario(shop), "--yes", "--confirm-delete", "-o", "json")

    assert (ran.returncode, ran.stderr) == (0, "")
    assert '"object.pruned"' in ran.stdout


def test_without_a_cluster_nothing_is_asked(shop: Path, tmp_path: Path) -> None:
    missing = tmp_path / "kubeconfig"
    ran = tidegate("delete", shop, "--kubeconfig", missing)

    assert ran.returncode == 3
    assert ran.stderr.startswith("error[config.")


def test_what_a_unit_at_fault_has_brought_is_not_guessed(tmp_path: Path) -> None:
    """It ended in a traceback."""
    folder = tmp_path / "repo"
    shutil.copytree(
        ROOT / "tests" / "conformance" / "repositories" / "cases" / "root-of-applications", folder
    )
    site = folder / "overlays" / "storefront" / "site.yaml"
    site.write_text(site.read_text().replace("apiVersion: ", "api: ", 1))

    ran = run(folder)

    assert (ran.returncode, ran.stdout) == (3, "")
    assert "error[plan.faults]: nothing is deleted: it is not known what `App" in ran.stderr
    assert "error[dialect.incomplete]" in ran.stderr
