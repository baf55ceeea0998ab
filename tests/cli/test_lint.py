"""`tidegate lint` and `tidegate explain`, from outside."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import ROOT, config_map, tidegate, tidegate_in, write_unit

BROKEN = ROOT / "examples" / "broken"
LATE = BROKEN / "settings-too-late"
CODE = "ORD006"


@pytest.fixture
def deadlocked(tmp_path: Path) -> Path:
    """A copy outside of Git, in which wave 1 reads a ConfigMap of wave 5."""
    return Path(shutil.copytree(LATE, tmp_path / "late"))


def codes(stdout: str) -> list[str]:
    return [finding["code"] for finding in json.loads(stdout)["findings"]]


def test_a_deadlock_is_reported_at_its_line_with_its_consequence(
    wording: RecordedWording, deadlocked: Path
) -> None:
    ran = tidegate_in(deadlocked, "lint")

    assert (ran.returncode, ran.stderr) == (3, "")
    lines = ran.stdout.splitlines()
    assert lines[0].startswith("error[ORD006]: ")
    assert lines[1].startswith("  at shop/web.yaml:15:11 ")
    assert lines[5].strip(" |") == "^" * len("configMapRef: {name: settings}")
    assert "\033" not in ran.stdout
    wording(ran.stdout)


def test_a_finding_of_argo_cd_is_not_reported_for_flux(deadlocked: Path) -> None:
    """Flux knows no waves: all of it is applied at once, and recovers."""
    ran = tidegate_in(deadlocked, "lint", "--engine", "flux", "-o", "json")

    assert ran.returncode == 0, ran.stdout
    assert CODE not in codes(ran.stdout)


def test_a_baseline_hides_known_findings_and_not_new_ones(
    wording: RecordedWording, deadlocked: Path
) -> None:
    written = tidegate_in(deadlocked, "lint", "--baseline", "known.json", "--update-baseline")
    again = tidegate_in(deadlocked, "lint", "--baseline", "known.json")
    web = deadlocked / "shop" / "web.yaml"
    web.write_text("# a line above does not matter\n" + web.read_text())
    moved = tidegate_in(deadlocked, "lint", "--baseline", "known.json")
    shutil.copy(web, deadlocked / "shop" / "other.yaml")
    (deadlocked / "shop" / "other.yaml").write_text(web.read_text().replace("web", "other"))
    grown = tidegate_in(deadlocked, "lint", "--baseline", "known.json", "-o", "json")

    assert (written.returncode, again.returncode, moved.returncode) == (0, 0, 0)
    wording(again.stdout.splitlines()[-1])
    assert grown.returncode == 3
    assert [
        finding["file"]
        for finding in json.loads(grown.stdout)["findings"]
        if finding["code"] == CODE
    ] == ["shop/other.yaml"]


def test_an_invalid_baseline_is_an_error(deadlocked: Path) -> None:
    (deadlocked / "known.json").write_text("[]")

    ran = tidegate_in(deadlocked, "lint", "--baseline", "known.json")

    assert ran.returncode == 3
    assert ran.stderr.startswith("error[file.baseline]: ")


def ignored(deadlocked: Path, text: str) -> None:
    web = deadlocked / "shop" / "web.yaml"
    wave = '{argocd.argoproj.io/sync-wave: "1"}'
    assert wave in web.read_text()
    web.write_text(web.read_text().replace(wave, wave[:-1] + f', tidegate.dev/ignore: "{text}"}}'))


def test_an_annotation_with_a_reason_ignores_a_finding(
    wording: RecordedWording, deadlocked: Path
) -> None:
    ignored(deadlocked, f"{CODE}: it is made by hand")

    ran = tidegate_in(deadlocked, "lint", "--severity", "warning")

    assert ran.returncode == 0, ran.stdout
    wording(ran.stdout.splitlines()[-1])


def test_an_ignore_annotation_without_a_reason_has_no_effect(deadlocked: Path) -> None:
    ignored(deadlocked, CODE)

    ran = tidegate_in(deadlocked, "lint", "-o", "json")

    assert ran.returncode == 3
    assert {CODE, "lint.reason"} <= set(codes(ran.stdout))


def test_the_configuration_ignores_paths_and_sets_severities(deadlocked: Path) -> None:
    (deadlocked / "tidegate.yaml").write_text(
        f"lint:\n  ignore: [{{rule: {CODE}, paths: [shop/], reason: known}}]\n"
        "  severity: {units.repository-assumed: error}\n"
    )

    ran = tidegate_in(deadlocked, "lint", "-o", "json")

    by_name = {
        finding["code"]: finding["severity"] for finding in json.loads(ran.stdout)["findings"]
    }
    assert CODE not in by_name
    assert by_name["units.repository-assumed"] == "error"
    assert ran.returncode == 3


def test_an_ignore_of_the_configuration_needs_a_reason(deadlocked: Path) -> None:
    (deadlocked / "tidegate.yaml").write_text(f"lint:\n  ignore: [{{rule: {CODE}, reason: ' '}}]\n")

    ran = tidegate_in(deadlocked, "lint")

    assert ran.returncode == 3
    assert "error[file.value]: " in ran.stderr
    assert "(lint.ignore[0].reason)" in ran.stderr


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--select", "ORD"], {CODE}),
        (["--select", "ORD006,units."], {CODE, "units.repository-assumed"}),
        (["--ignore", "ORD"], {"units.repository-assumed"}),
        (["--severity", "error"], {CODE}),
        (["--severity", "ORD006=note", "--severity", "warning"], set()),
    ],
)
def test_options_select_findings(deadlocked: Path, args: list[str], expected: set[str]) -> None:
    ran = tidegate_in(deadlocked, "lint", *args, "-o", "json")

    assert set(codes(ran.stdout)) == expected
    assert ran.returncode == (3 if CODE in expected else 0)


def test_an_unknown_severity_is_refused() -> None:
    ran = tidegate("lint", LATE, "--severity", "terrible")

    assert ran.returncode == 2
    assert "`terrible`" in ran.stderr


@pytest.mark.parametrize("paths", [(".", "gone.yaml"), ("a.yaml", "gone.yaml")])
def test_a_file_that_does_not_exist_is_an_error(tmp_path: Path, paths: tuple[str, str]) -> None:
    (tmp_path / "a.yaml").write_text(config_map("a"))

    ran = tidegate_in(tmp_path, "lint", *paths)

    assert ran.returncode == 2
    assert "gone.yaml" in ran.stderr


def test_update_baseline_needs_a_file() -> None:
    ran = tidegate("lint", LATE, "--update-baseline")

    assert ran.returncode == 2
    assert "--baseline FILE" in ran.stderr


def test_lines_of_a_secret_are_never_shown(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: default}\n"
        "stringData:\n  password: pa55-w0rd-of-shop\n"
    )

    for form in ("text", "json", "sarif", "junit", "github", "markdown"):
        ran = tidegate_in(tmp_path, "lint", "-o", form)
        assert "ORD044" in ran.stdout
        assert "pa55" not in ran.stdout + ran.stderr


def test_unavailable_sources_are_reported_once_and_are_incomplete(
    wording: RecordedWording, tmp_path: Path
) -> None:
    for number in range(8):
        (tmp_path / f"app-{number}.yaml").write_text(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\n"
            f"metadata: {{name: app-{number}, namespace: argocd}}\n"
            "spec:\n  project: default\n"
            f"  source: {{repoURL: https://charts.example.com, chart: c{number},"
            " targetRevision: 1.0.0}\n"
            "  destination: {server: https://kubernetes.default.svc, namespace: shop}\n"
            "  syncPolicy: {automated: {}}\n"
        )

    ran = tidegate_in(tmp_path, "lint", "--offline", "--severity", "warning")

    assert ran.returncode == 9, ran.stdout
    wording(ran.stdout)


def test_a_missing_directory_is_an_error_where_it_is_named(
    tmp_path: Path,
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "setting.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: setting}\n"
    )
    for name in ("here", "gone"):
        (tmp_path / f"{name}.yaml").write_text(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\n"
            f"metadata: {{name: {name}, namespace: argocd}}\n"
            "spec:\n  project: default\n"
            f"  source: {{repoURL: https://git.example.com/shop.git, path: {name}}}\n"
            "  destination: {server: https://kubernetes.default.svc, namespace: default}\n"
            "  syncPolicy: {automated: {}}\n"
        )

    ran = tidegate_in(tmp_path, "lint", "--offline", "--severity", "warning")
    in_json = tidegate_in(tmp_path, "lint", "--offline", "--severity", "warning", "-o", "json")

    assert ran.returncode == 3, ran.stdout
    assert "error[source.path]: `Application/argocd/gone` " in ran.stdout
    assert "at gone.yaml:6:55 (spec.source.path)" in ran.stdout
    assert json.loads(in_json.stdout)["unknown"] == []


def test_prerequisites_missing_on_an_empty_cluster_are_listed() -> None:
    certificate = ROOT / "examples" / "certificate"

    missing = tidegate("lint", certificate, "--empty-cluster", "-o", "json")

    document = json.loads(missing.stdout)["emptyCluster"]
    assert (missing.returncode, document["complete"]) == (3, False)
    messages = [item["what"] for item in document["assumed"]]
    assert any("cert-manager (Certificate, ClusterIssuer)" in message for message in messages)


def test_nothing_is_missing_on_an_empty_cluster_if_the_repository_contains_it(
    wording: RecordedWording,
) -> None:
    ran = tidegate("lint", "examples/first", "--empty-cluster")

    assert ran.returncode == 0
    wording(ran.stdout)


def test_the_page_of_a_rule_is_printed_without_markup() -> None:
    ran = tidegate("rule", "ord006")

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("# ORD006: ")
    assert "```" not in ran.stdout
    assert "    kind: Deployment" in ran.stdout.splitlines()


def test_the_code_of_a_finding_is_explained_by_its_rule() -> None:
    assert tidegate("rule", "units.unknown").stdout.startswith("# ORD001")


def test_an_unknown_rule_is_refused() -> None:
    ran = tidegate("rule", "ORD999")

    assert ran.returncode == 2
    assert ran.stderr.startswith("error[usage.rule]: ")
    assert "`ORD999`" in ran.stderr


def test_a_file_that_git_ignores_is_a_note(tmp_path: Path) -> None:
    subprocess.run([str(shutil.which("git")), "init", "--quiet", tmp_path], check=True)
    overlay = "resources: [web.yaml, sealed.yaml]\n"
    write_unit(tmp_path, kustomization=overlay, web=config_map(), sealed=config_map("sealed"))
    (tmp_path / ".gitignore").write_text("sealed.yaml\n")

    ran = tidegate("lint", tmp_path)

    assert ran.returncode == 0, ran.stdout
    assert "note[ORD049]: `sealed.yaml` " in ran.stdout


def test_a_directory_without_objects_is_a_note(tmp_path: Path) -> None:
    ran = tidegate("lint", write_unit(tmp_path / "empty"))

    assert ran.returncode == 9
    assert "note[render.nothing]" in ran.stdout
