"""Repositories from outside: what `tidegate units` finds, and how other verbs take a part of it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.terminal_program import on_terminal
from tests.support.tidegate_runs import ROOT, config_map, tidegate, tidegate_in, write_unit

PLATFORM = ROOT / "examples" / "platform"
REPOS = ROOT / "tests" / "conformance" / "repositories" / "cases"
DATABASE_URL = "https://git.example.com/shop/database.git"
SHOWN = [
    "Application/argocd/root",
    "Application/argocd/database",
    "Application/argocd/shop",
    "Kustomization/flux-system/flux-system",
    "Kustomization/flux-system/infrastructure",
    "Kustomization/flux-system/metrics",
]


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    """A copy outside of Git."""
    return Path(shutil.copytree(PLATFORM, tmp_path / "platform"))


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def names(table: str) -> list[str]:
    return [line.split()[0] for line in table.splitlines()[1:]]


def test_units_of_a_directory_outside_of_git_are_shown_below_their_parents(
    platform: Path,
) -> None:
    ran = tidegate_in(platform, "units")

    assert ran.returncode == 0, ran.stderr
    assert names(ran.stdout) == SHOWN
    assert ran.stdout.splitlines()[2].startswith("  Application/argocd/database ")
    assert ran.stderr.startswith("note[units.repository-assumed]: ")
    assert "`https://git.example.com/shop/platform.git`" in ran.stderr
    assert "\033" not in ran.stdout + ran.stderr


def test_the_units_document_has_parents_and_dependencies() -> None:
    ran = tidegate("units", PLATFORM, "--objects", "-o", "json")

    document = json.loads(ran.stdout)
    units = {unit["name"]: unit for unit in document["units"]}
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [unit["id"] for unit in document["units"]] == SHOWN
    assert [item for item, unit in units.items() if unit["root"]] == ["root", "flux-system"]
    assert units["shop"]["parent"] == "Application/argocd/root"
    assert units["shop"]["wave"] == 1
    assert units["metrics"]["dependsOn"] == ["Kustomization/flux-system/infrastructure"]
    assert units["database"]["objects"] == 2
    assert [finding["code"] for finding in document["findings"]] == ["units.repository-assumed"]


def test_a_narrow_terminal_hides_columns_and_names_them(wording: RecordedWording) -> None:
    with on_terminal("tidegate", "units", str(PLATFORM), columns=80, NO_COLOR="1") as program:
        code = program.finish()

    lines = program.vt.text.splitlines()
    assert code == 0
    assert lines[0].split() == ["UNIT", "TO", "AFTER", "STATE"]
    wording(line for line in lines if "SOURCE" in line)


def test_a_terminal_counts_steps_that_do_something() -> None:
    args = ("sync", str(PLATFORM), "--sandbox", "--speed", "40")
    with on_terminal("tidegate", *args, columns=100, NO_COLOR="1") as program:
        code = program.finish()

    assert code == 0
    assert re.search(r" of 7 \w+ · \d+ of 8 ", program.written)
    assert not re.search(r" of 8 \w+ · ", program.written)


@pytest.mark.parametrize(
    ("option", "wrong", "right"),
    [
        ("--root", "Application/argocd/rot", "Application/argocd/root"),
        ("--unit", "metric", "metrics"),
    ],
)
def test_an_unknown_name_is_reported_with_the_nearest(option: str, wrong: str, right: str) -> None:
    ran = tidegate("plan", PLATFORM, option, wrong)

    assert ran.returncode == 3
    assert any(
        "error[plan.named]" in line and f"`{wrong}`" in line for line in ran.stderr.splitlines()
    )
    assert f"`{right}`" in ran.stderr


@pytest.mark.parametrize("entry", ["root", "Application/argocd/root", "argocd/root.yaml", "argocd"])
def test_a_root_can_be_selected_by_name_id_file_or_directory(entry: str) -> None:
    ran = tidegate("units", PLATFORM, "--root", entry)

    assert names(ran.stdout) == SHOWN[:3]


def test_alternatives_are_planned_one_after_another_and_rolled_out_by_name_alone() -> None:
    repo = REPOS / "environments-flux"

    planned = tidegate("plan", repo, "--offline")
    refused = tidegate("sync", repo, "--sandbox", "--offline")
    chosen = tidegate("plan", repo, "--offline", "--root", "clusters/prod")

    heads = [line for line in planned.stdout.splitlines() if "gotk-sync.yaml:16:1" in line]
    assert (planned.returncode, len(heads)) == (0, 2)
    assert refused.returncode == 3
    assert any(
        "error[plan.root]" in line and "`clusters/prod/flux-system/gotk-sync.yaml`" in line
        for line in refused.stderr.splitlines()
    )
    assert (chosen.returncode, "gotk-sync.yaml" in chosen.stdout) == (0, False)


def test_a_directory_of_charts_suggests_a_path() -> None:
    ran = tidegate("plan", "charts")

    assert ran.returncode == 3
    assert ran.stderr.startswith("error[render.ambiguous]: ")
    assert "`charts`" in ran.stderr
    assert "`charts/laravel`" in ran.stderr


def test_every_example_is_named_to_point_at() -> None:
    ran = tidegate_in(ROOT, "plan", "examples")

    named = {item.split("/")[1] for item in re.findall(r"`(examples/[^`]+)`", ran.stderr)}
    examples = {path.name for path in (ROOT / "examples").iterdir() if path.is_dir()}
    assert named == examples - {"__pycache__", "runs", "seen"}, "records are no examples"


def test_a_directory_of_repositories_suggests_a_path() -> None:
    ran = tidegate("plan", "examples/broken")

    examples = [path.name for path in (ROOT / "examples" / "broken").iterdir() if path.is_dir()]
    messages = [example for example in examples if f"`examples/broken/{example}`" in ran.stderr]
    assert ran.returncode == 3
    assert set(examples) == set(messages)


def test_a_repository_further_down_is_found(platform: Path) -> None:
    ran = tidegate("units", platform.parent, "--offline")

    assert ran.returncode == 0, ran.stderr
    assert names(ran.stdout) == SHOWN
    assert f"  at {platform.name}\n" in ran.stderr


def test_path_can_be_a_file() -> None:
    unit = tidegate("units", PLATFORM / "argocd" / "root.yaml")
    plain = tidegate("plan", PLATFORM / "infrastructure" / "namespace.yaml")

    assert names(unit.stdout) == SHOWN[:3]
    assert "create    Namespace metrics" in plain.stdout


def test_a_file_that_is_not_a_manifest_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello\n")

    codes = [tidegate("units", tmp_path / name).returncode for name in ("note.txt", "nowhere")]

    assert codes == [3, 3]


def test_an_empty_directory_has_nothing_to_do(wording: RecordedWording, tmp_path: Path) -> None:
    ran = tidegate("plan", tmp_path)

    assert ran.returncode == 0
    assert "render.nothing" in ran.stderr
    wording(ran.stdout.splitlines()[-1])


def test_a_broken_file_is_reported_with_its_location_and_the_rest_is_still_shown(
    platform: Path,
) -> None:
    text = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: x\n"
    (platform / "drafts").mkdir()
    (platform / "drafts" / "draft.yaml").write_text(text)

    ran = tidegate("units", platform)

    assert ran.returncode == 3
    assert names(ran.stdout) == SHOWN
    assert ran.stderr.startswith("error[documents.syntax]: ")
    assert "  at drafts/draft.yaml:3:" in ran.stderr


def test_a_unit_without_a_source_is_a_finding_and_no_bug(tmp_path: Path) -> None:
    text = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: bare}\nspec: {}\n"
    place = write_unit(tmp_path / "unit", bare=text)

    ran = tidegate("plan", place)

    assert ran.returncode == 3
    assert "error[argo.source]" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_an_invalid_unit_prevents_all_writes_without_skip_broken(
    wording: RecordedWording,
    platform: Path,
) -> None:
    edit(platform / "clusters/production/metrics.yaml", "path: ./metrics", "path: ./gone")

    simulated = tidegate("simulate", platform)
    refused = tidegate("sync", platform, "--sandbox")
    kept = tidegate("sync", platform, "--sandbox", "--skip-broken")

    assert simulated.returncode == 3
    assert refused.returncode == 3
    assert any(
        "error[source.path]" in line and "`Kustomization/flux-system/metrics`" in line
        for line in refused.stderr.splitlines()
    )
    wording(line for line in refused.stderr.splitlines() if "error[plan.errors]" in line)
    wording(refused.stdout)
    assert kept.returncode == 4, kept.stderr
    wording(line for line in kept.stdout.splitlines() if "  applied  " in line)
    assert "metrics/collector" not in kept.stdout


def test_dependents_of_an_invalid_unit_are_skipped(
    wording: RecordedWording, platform: Path
) -> None:
    edit(platform / "clusters/production/infrastructure.yaml", "./infrastructure", "./gone")
    edit(platform / "argocd/apps/database.yaml", "path: database", "path: gone")

    ran = tidegate("sync", platform, "--sandbox", "--skip-broken")

    assert ran.returncode == 4, ran.stderr
    wording(line for line in ran.stdout.splitlines() if "✗ " in line)
    skipped = next(line for line in ran.stdout.splitlines() if " skipped " in line)
    assert "Application/argocd/shop" in skipped
    assert "Kustomization/flux-system/metrics" in skipped


def test_a_suspended_unit_is_shown_and_left_alone(platform: Path) -> None:
    edit(platform / "clusters/production/metrics.yaml", "spec:\n", "spec:\n  suspend: true\n")

    shown = tidegate("units", platform)
    planned = tidegate("plan", platform)

    assert " suspended " in shown.stdout
    assert any(
        "note[units.suspended]" in line and "`Kustomization/flux-system/metrics`" in line
        for line in planned.stderr.splitlines()
    )
    assert "metrics/collector" not in planned.stdout
    assert planned.returncode == 0


def test_a_directory_can_replace_another_repository(platform: Path, tmp_path: Path) -> None:
    edit(platform / "argocd/apps/database.yaml", "shop/platform.git", "shop/database.git")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.move(platform / "database", elsewhere)

    without = tidegate("units", platform, "--offline")
    mapped = tidegate("units", platform, "--offline", "--repo-map", f"{DATABASE_URL}={elsewhere}")

    assert without.returncode == 3
    assert any(
        "error[source.offline]" in line and "`Application/argocd/database`" in line
        for line in without.stderr.splitlines()
    )
    assert (mapped.returncode, names(mapped.stdout)) == (0, SHOWN), mapped.stderr


def test_the_configuration_defines_roots_and_ignored_files(
    platform: Path,
) -> None:
    config = platform / "tidegate.yaml"

    config.write_text("roots: [clusters/production]\n")
    chosen = tidegate("units", platform)
    config.write_text("roots: [clusters/nowhere]\n")
    strange = tidegate("units", platform)
    config.write_text("ignore: [clusters/]\n")
    ignored = tidegate("units", platform)

    assert names(chosen.stdout) == SHOWN[3:]
    assert strange.returncode == 3
    assert any(
        "error[config.root]" in line and "`clusters/nowhere`" in line
        for line in strange.stderr.splitlines()
    )
    assert names(ignored.stdout) == SHOWN[:3]


def test_a_simulation_reports_retries() -> None:
    ran = tidegate("simulate", PLATFORM, "--root", "root")

    assert ran.returncode == 0, ran.stderr
    assert any(
        "Application/argocd/shop: PreSync:" in line
        and "31.0s" in line
        and "Job shop/migrate: Job has reached the specified backoff limit" in line
        for line in ran.stdout.splitlines()
    )


def test_flux_starts_a_unit_at_once_and_checks_dependencies_every_30_seconds() -> None:
    ran = tidegate("simulate", PLATFORM, "--root", "clusters/production")

    applied = {line.split()[0]: line.split()[2] for line in ran.stdout.splitlines()[1:4]}
    assert ran.returncode == 0, ran.stderr
    assert applied == {
        "Kustomization/flux-system/infrastructure:": "0.0s",
        "Kustomization/flux-system/metrics:": "30.0s",
    }


def test_a_plain_directory_is_one_unit(tmp_path: Path) -> None:
    ran = tidegate("units", write_unit(tmp_path / "web", web=config_map()))

    assert ran.returncode == 0
    assert names(ran.stdout) == ["default/web"]


def test_the_children_of_a_unit_are_seen_though_it_cannot_be_rendered(platform: Path) -> None:
    broken = "apiVersion: v1\nkind: ConfigMap\nmetadata: {a: b: c}\n"
    (platform / "argocd" / "apps" / "broken.yaml").write_text(broken)

    shown = tidegate("units", platform, "-o", "json")
    ran = tidegate("sync", platform, "--sandbox", "--skip-broken")

    parents = {unit["name"]: unit["parent"] for unit in json.loads(shown.stdout)["units"]}
    assert shown.returncode == 3
    assert parents["root"] is None
    assert parents["database"] == parents["shop"] == "Application/argocd/root"
    assert "metrics/collector" in ran.stdout
    assert "shop/database" not in ran.stdout


def test_alternatives_are_simulated_one_after_another(wording: RecordedWording) -> None:
    ran = tidegate("simulate", REPOS / "environments-flux", "--offline")

    ends = [line for line in ran.stdout.splitlines() if line.startswith("flux (")]
    assert ran.returncode == 0
    wording(ends)
    assert ["/dev/" in ends[0], "/prod/" in ends[1]] == [True, True]


def test_a_directory_of_manifests_is_read_without_the_charts_in_it(tmp_path: Path) -> None:
    chart = tmp_path / "vendor" / "redis"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: redis\nversion: 1.0.0\n")
    (chart / "templates" / "all.yaml").write_text("{{ fail `nobody asked` }}\n")
    (tmp_path / "web.yaml").write_text(config_map("web"))

    ran = tidegate("plan", tmp_path)

    assert ran.returncode == 0
    assert "ConfigMap default/web" in ran.stdout
    assert any(
        "note[units.not-included]" in line and "`vendor/redis`" in line
        for line in ran.stderr.splitlines()
    )


def test_an_application_written_as_one_line_of_json_is_a_unit(platform: Path) -> None:
    body = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "compact", "namespace": "argocd"},
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://git.example.com/shop/platform.git", "path": "metrics"},
            "destination": {"name": "in-cluster", "namespace": "metrics"},
        },
    }
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": [body]})
    (platform / "compact.yaml").write_text(text)

    ran = tidegate("units", platform, "--root", "compact")

    assert names(ran.stdout) == ["Application/argocd/compact"]


def test_an_unreadable_directory_is_reported_with_the_reason(tmp_path: Path) -> None:
    broken = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a\n"

    ran = tidegate("units", write_unit(tmp_path / "unit", broken=broken))

    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith("error[documents.syntax]")
    assert "broken.yaml:3" in ran.stderr
