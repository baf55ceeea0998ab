"""`tidegate plan`, from outside: against an empty cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import FIRST, ROOT, config_map, tidegate, tidegate_in, write_unit

PASSWORD = "only-for-this-example"


def test_a_plan_lists_what_would_be_done_in_the_order_of_waves(wording: RecordedWording) -> None:
    ran = tidegate("plan", FIRST)

    messages = [line.split()[-1] for line in ran.stdout.splitlines() if " create " in line]
    assert ran.returncode == 0, ran.stderr
    assert messages[:2] == ["default/shop-credentials", "default/shop-settings"]
    assert messages[-1] == "default/shop"
    wording(ran.stdout.splitlines()[-1])


def test_the_document_of_a_plan_holds_every_object_and_no_value_of_a_secret() -> None:
    ran = tidegate("plan", FIRST, "-o", "json")

    plan = json.loads(ran.stdout)
    assert ran.returncode == 0
    assert (plan["kind"], plan["version"], plan["refused"]) == ("Plan", 2, 0)
    assert plan["summary"] == {"create": 10}
    assert len(plan["objects"]) == 10
    assert PASSWORD not in ran.stdout + ran.stderr
    (secret,) = [item for item in plan["objects"] if item["kind"] == "Secret"]
    assert secret["object"] is None
    assert (secret["operation"], secret["step"]) == ("create", "default/first/sync/-3")
    assert secret["location"].startswith("examples/first/") or secret["location"].count(":") == 2


def test_every_key_of_the_document_is_described() -> None:
    page = (ROOT / "docs" / "reference" / "json.md").read_text()

    plan = json.loads(tidegate("plan", FIRST, "-o", "json").stdout)

    keys = {*plan, *plan["units"][0], *plan["steps"][0], *plan["objects"][0]}
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []


def test_the_exit_code_of_a_plan_shows_whether_there_are_changes(tmp_path: Path) -> None:
    full = write_unit(tmp_path / "full", web=config_map())
    empty = write_unit(tmp_path / "empty", nothing="# nothing yet\n")

    codes = [tidegate("plan", unit, "--exit-code").returncode for unit in (full, empty)]

    assert codes == [10, 0]


def test_a_plan_is_the_same_in_every_run() -> None:
    first = tidegate("plan", FIRST, "-o", "json", PYTHONHASHSEED="1")
    second = tidegate("plan", FIRST, "-o", "json", PYTHONHASHSEED="2")

    assert first.stdout == second.stdout
    assert first.stdout


def test_a_kind_that_an_empty_cluster_does_not_serve_can_be_planned(tmp_path: Path) -> None:
    text = "apiVersion: kinda.rocks/v1\nkind: Database\nmetadata: {name: shop}\n"

    ran = tidegate("plan", write_unit(tmp_path / "unit", database=text))

    assert ran.returncode == 0, ran.stderr
    assert "create    Database default/shop" in ran.stdout


def test_a_chart_sees_the_version_of_the_cluster_it_is_planned_for(tmp_path: Path) -> None:
    chart = tmp_path / "web"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: web, version: 0.1.0}\n")
    (chart / "templates" / "web.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
        "data: {version: {{ .Capabilities.KubeVersion.Version | quote }}}\n"
    )

    planned = tidegate("plan", chart, "-o", "json", HOME=str(tmp_path))
    rendered = tidegate("render", chart, HOME=str(tmp_path))

    assert '"version":"v1.36.4"' in planned.stdout, planned.stderr
    assert "version: v1.36.0" in rendered.stdout, rendered.stderr


def test_standard_input_is_a_file_of_manifests(tmp_path: Path) -> None:
    given = config_map("web", wave="2") + "---\n" + config_map("soon")
    ran = tidegate_in(tmp_path, "plan", "-", given=given)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert [line.split()[-1] for line in ran.stdout.splitlines() if " create " in line] == [
        "default/soon",
        "default/web",
    ]
    assert not [*tmp_path.iterdir()]


def test_an_error_in_standard_input_has_its_line() -> None:
    ran = tidegate("plan", "-", given=config_map("web") + "---\nkind: [\n")

    assert (ran.returncode, ran.stdout) == (3, "")
    assert "  at stdin.yaml:8" in ran.stderr


@pytest.mark.parametrize(
    "args",
    [(FIRST, "--set", "a=b"), ("",)],
    ids=["values without a chart", "an empty path"],
)
def test_arguments_that_have_no_meaning_here_are_refused(
    wording: RecordedWording, args: tuple[str, ...]
) -> None:
    ran = tidegate("plan", *args)

    assert (ran.returncode, ran.stdout) == (2, "")
    wording(ran.stderr)
