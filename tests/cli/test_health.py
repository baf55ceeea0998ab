"""`tidegate health`, from outside: verdicts, the rules that gave them, and how it ends."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import tidegate

ROOT = Path(__file__).parents[2]
OBJECTS = ROOT / "examples" / "health" / "objects.yaml"
RULES = ROOT / "examples" / "health" / "argocd-cm.yaml"
CERTIFICATE = """\
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web, namespace: shop}
status:
  conditions: [{type: Ready, status: "True", reason: Ready, message: it is up to date}]
"""
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {password: hunter2}\n"


def run(*arguments: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
    return tidegate("health", *arguments, given=given)


def results_by_name(*arguments: str | Path, given: str = "") -> dict[str, tuple[str, str]]:
    """Health and rule by kind."""
    lines = run(*arguments, "-o", "json", given=given).stdout.splitlines()
    matches = [json.loads(line) for line in lines]
    return {item["kind"]: (item["health"], item["rule"]) for item in matches}


def written(folder: Path, text: str) -> Path:
    path = folder / "file.yaml"
    path.write_text(text)
    return path


def test_each_object_is_judged_by_the_rule_for_its_kind() -> None:
    assert results_by_name(OBJECTS) == {
        "Application": ("Progressing", "row"),
        "Backup": ("Healthy", "kstatus"),
        "Deployment": ("Progressing", "argo"),
    }


def test_scripts_take_precedence_over_other_rules() -> None:
    assert results_by_name(OBJECTS, "--health-rules", RULES) == {
        "Application": ("Progressing", "lua"),
        "Backup": ("Degraded", "lua"),
        "Deployment": ("Progressing", "argo"),
    }


def test_fluxs_rules_are_kstatus_and_take_no_scripts(wording: RecordedWording) -> None:
    rules = {rule for _, rule in results_by_name(OBJECTS, "--rules", "kstatus").values()}
    both = run(OBJECTS, "--rules", "kstatus", "--health-rules", RULES)

    assert rules == {"kstatus"}
    assert both.returncode == 2
    assert "--health-rules" in both.stderr
    wording(both.stderr.splitlines()[-1])


def test_objects_come_from_standard_input_and_lists_are_their_items() -> None:
    items = [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}}
        for kind in ("ConfigMap", "Namespace")
    ]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})

    assert results_by_name("-", given=CERTIFICATE) == {"Certificate": ("Healthy", "row")}
    assert set(results_by_name("-", given=given)) == {"ConfigMap", "Namespace"}


def test_an_object_that_is_being_deleted_needs_no_script(tmp_path: Path) -> None:
    leaving = OBJECTS.read_text().replace(
        "  name: nightly\n", "  name: nightly\n  deletionTimestamp: 2026-01-01T00:00:00Z\n"
    )

    result = results_by_name(written(tmp_path, leaving), "--health-rules", RULES)

    assert result["Backup"] == ("Progressing", "argo")


def test_the_exit_code_depends_on_health_only_with_the_option() -> None:
    quiet, loud = run(OBJECTS), run(OBJECTS, "--exit-code")
    healthy = run("-", "--exit-code", given=CERTIFICATE)

    assert (quiet.returncode, loud.returncode, healthy.returncode) == (0, 4, 0)
    assert quiet.stdout == loud.stdout


def test_a_script_error_is_a_health_status_and_no_error(tmp_path: Path) -> None:
    rules = written(tmp_path, "resource.customizations.health.example.com_Backup: return obj.a.b\n")

    shown = run(OBJECTS, "--health-rules", rules)

    assert shown.returncode == 0
    assert "LuaError" in shown.stdout
    assert "<string>:1: attempt to index field 'a' (a nil value)" in shown.stdout


def test_invalid_input_has_exit_code_three_and_a_location(tmp_path: Path) -> None:
    rules = written(tmp_path, "resource.customizations.heath.example.com_Backup: x\n")

    wrong = run(OBJECTS, "--health-rules", rules)
    incomplete = run("-", given="kind: Pod\n")
    empty = run("-", given="")

    assert [item.returncode for item in (wrong, incomplete, empty)] == [3, 3, 3]
    assert "error[health.lua.key]" in wrong.stderr
    assert f"at {rules}:1" in wrong.stderr
    assert "error[documents.incomplete]" in incomplete.stderr
    assert "error[documents.empty]" in empty.stderr


def test_no_secret_is_shown() -> None:
    for form in ("text", "json"):
        shown = run("-", "-o", form, given=SECRET)

        assert "key" in shown.stdout
        assert "hunter2" not in shown.stdout + shown.stderr


EXPRESSIONS = """\
health:
- apiVersion: example.org/v1
  kind: Gadget
  current: status.phase == 'Running'
  failed: status.phase == 'Broken'
"""


@pytest.mark.parametrize(
    ("phase", "health"),
    [("Running", "Healthy"), ("Broken", "Degraded"), ("New", "Progressing"), ("", "Unknown")],
)
def test_health_expressions_of_the_repository_are_used(
    tmp_path: Path, phase: str, health: str
) -> None:
    (tmp_path / "tidegate.yaml").write_text(EXPRESSIONS)
    gadget = tmp_path / "gadget.yaml"
    status = f"status: {{phase: {phase}}}" if phase else ""
    gadget.write_text(
        f"apiVersion: example.org/v2\nkind: Gadget\nmetadata: {{name: one}}\n{status}\n"
    )

    ran = run(gadget, "-o", "json")

    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    assert (document["health"], document["rule"]) == (health, "cel")
    assert document["script"].endswith("tidegate.yaml:2")
