"""Missing, invalid and empty input is reported by every command, and is never a success."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.in_process_command import CommandOutput, run_in_process
from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import (
    URL,
    Repository,
    application,
    git_repository,
    kustomization,
    setting,
)
from tests.support.tidegate_runs import write_unit
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import JsonObject

OFFLINE = [("render",), ("plan",), ("simulate",), ("sync", "--sandbox"), ("lint",), ("units",)]
NO_MANIFESTS = {
    "no YAML": ("a: [\n", "error[documents.syntax]", ":2:1"),
    "a text": ("hello\n", "error[documents.object]", ":1:1"),
    "no kind": ("a: 1\n", "error[render.directory.manifest]", ":1:1"),
}
FAR = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: far, namespace: argocd}
spec:
  project: default
  source: {repoURL: https://charts.example.invalid, chart: web, targetRevision: 1.0.0}
  destination: {server: https://kubernetes.default.svc, namespace: default}
  syncPolicy: {automated: {}}
"""
LACKING = """\
apiVersion: v2
name: chart
version: 1.0.0
dependencies: [{name: redis, version: 1.x, repository: "https://charts.example.invalid"}]
"""


def run(folder: Path, *args: str) -> CommandOutput:
    return run_in_process(folder, os.environ, args)


@pytest.mark.parametrize("verb", OFFLINE, ids=lambda verb: verb[0])
@pytest.mark.parametrize(("text", "error", "line"), NO_MANIFESTS.values(), ids=NO_MANIFESTS)
def test_a_file_that_is_named_must_be_a_manifest(
    text: str, error: str, line: str, verb: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "web.yaml").write_text(text)

    ran = run(tmp_path, *verb, "web.yaml")

    assert (ran.code, ran.stdout) == (3, "")
    assert error in ran.stderr
    assert f"  at web.yaml{line}" in ran.stderr


def test_standard_input_without_objects_is_a_warning(
    wording: RecordedWording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pipe(text: bytes) -> CommandOutput:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text)))
        return run(tmp_path, "plan", "-")

    broken, empty = pipe(b"a: [\n"), pipe(b"\n")

    assert (broken.code, empty.code) == (3, 0)
    assert "  at stdin.yaml:2:1" in broken.stderr
    wording(empty.stderr)


@pytest.mark.parametrize("verb", [*OFFLINE[:4], *OFFLINE[5:]], ids=lambda verb: verb[0])
def test_a_base_that_is_not_there_is_missing_and_not_too_far_away(
    verb: tuple[str, ...], tmp_path: Path
) -> None:
    write_unit(tmp_path / "overlays" / "prod", kustomization="resources: [../../base]\n")

    ran = run(tmp_path, *verb, "overlays/prod")

    assert ran.code == 3
    assert any(
        "error[render.kustomize.missing]" in line and "`../../base`" in line
        for line in ran.stderr.splitlines()
    )
    assert "  at overlays/prod/kustomization.yaml:1:13 (resources[0])" in ran.stderr


@pytest.mark.parametrize("verb", OFFLINE[1:4], ids=lambda verb: verb[0])
def test_a_directory_without_yaml_files_is_reported(verb: tuple[str, ...], tmp_path: Path) -> None:
    write_unit(tmp_path / "unit", web="apiVersion: v1\nkind: [\n")

    ran = run(tmp_path, *verb, "unit")

    assert "warning[render.nothing]" in ran.stderr
    assert "warning[documents.syntax]" in ran.stderr
    assert "  at unit/web.yaml:3:1" in ran.stderr


@pytest.mark.parametrize("verb", OFFLINE[1:4], ids=lambda verb: verb[0])
def test_objects_of_standard_input_have_locations(
    verb: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n"
        "  annotations: {argocd.argoproj.io/hook: Presync}\n"
    )
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))

    ran = run(tmp_path, *verb, "-")

    assert "warning[argo.hook]" in ran.stderr
    assert "  at stdin.yaml:5:17 " in ran.stderr


@pytest.mark.parametrize("verb", [*OFFLINE[:4], ("status",)], ids=lambda verb: verb[0])
def test_a_base_that_could_not_be_fetched_is_no_success(
    wording: RecordedWording, verb: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)
    far = "https://git.example.invalid/base//web?ref=v1"
    unit = write_unit(tmp_path / "unit", kustomization=f"resources: ['{far}']\n")
    args = (*verb, str(unit), "--offline")

    ran = cluster.reach(*args) if verb == ("status",) else run(tmp_path, *args)

    assert ran.code == 3
    wording(line for line in ran.stderr.splitlines() if "error[units.incomplete]" in line)
    wording(ran.stdout)


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("verb", ["units", "waves", "graph"])
def test_read_only_commands_have_the_same_exit_code_as_plan(
    verb: str, output: str, tmp_path: Path
) -> None:
    far = "https://git.example.invalid/base//web?ref=v1"
    overlay = write_unit(tmp_path / "overlay", kustomization=f"resources: ['{far}']\n")
    chart = write_unit(tmp_path / "chart", Chart=LACKING)
    form = ("-o", "json") if output == "json" else ()

    for unit in (overlay, chart):
        ran = run(tmp_path, verb, str(unit), "--offline", *form)

        assert ran.code == 3, (verb, unit)
        assert "units.incomplete" in ran.stdout + ran.stderr


def test_lint_counts_missing_inputs_and_reports_none_of_them(tmp_path: Path) -> None:
    far = "https://git.example.invalid/base//web?ref=v1"
    unit = write_unit(tmp_path / "overlay", kustomization=f"resources: ['{far}']\n")

    ran = run(tmp_path, "lint", str(unit), "--offline", "-o", "json")

    report = json.loads(ran.stdout)
    assert (ran.code, report["findings"], report["coverage"]["incomplete"]) == (9, [], True)


@pytest.mark.parametrize("verb", OFFLINE[:4], ids=lambda verb: verb[0])
def test_no_command_passes_if_no_unit_could_be_rendered(
    wording: RecordedWording, verb: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps" / "far.yaml").write_text(FAR)

    ran = run(tmp_path, *verb, ".", "--offline")

    assert ran.code == 3
    wording(line for line in ran.stderr.splitlines() if "`Application/argocd/far`" in line)


@pytest.mark.parametrize(
    "args",
    [
        "status {}",
        "argocd app list -C {}",
        "argocd app get red -C {}",
        "argocd app manifests red -C {}",
    ],
)
def test_a_misspelt_hook_is_reported_by_commands_that_only_read(
    args: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = PersistentSandbox.make(tmp_path, monkeypatch), Repository(tmp_path / "shop")
    lost: JsonObject = setting("lost")
    get_mapping(lost, "metadata")["annotations"] = {"argocd.argoproj.io/hook": "Presync"}
    made.put("apps/red.yaml", application("red", "red", into="default"))
    made.put("red/all.yaml", lost)

    ran = cluster.reach(*args.format(made.root).split(), "--repo-map", f"{URL}={made.root}")

    assert ran.stderr.count("warning[argo.hook]") == 1
    assert "`Presync`" in ran.stderr
    assert "`PreSync`" in ran.stderr


def test_a_bug_is_a_line_of_json_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(*_: object, **__: object) -> None:
        raise ValueError

    monkeypatch.setattr("tidegate.cli.requests.load_request", break_down)

    program, person = run(tmp_path, "plan", ".", "-o", "json"), run(tmp_path, "plan", ".")

    assert (program.code, person.code) == (1, 1)
    assert json.loads(program.stderr.splitlines()[-1])["code"] == "bug"
    assert person.stderr.splitlines()[-1].startswith("error[bug]: ")
    assert "Traceback" in person.stderr


def test_wide_output_shows_the_source_of_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = PersistentSandbox.make(tmp_path, monkeypatch), Repository(tmp_path / "shop")
    made.put("clusters/source.yaml", git_repository())
    made.put("clusters/self.yaml", kustomization("flux-system", "./clusters", into=""))
    made.put("clusters/web.yaml", kustomization("web", "./web", into="default"))
    made.put("web/all.yaml", setting("web"))
    place = ("-C", str(made.root), "--repo-map", f"{URL}={made.root}")

    units = cluster.reach("flux", "get", "ks", "-o", "wide", *place).stdout.splitlines()
    sources = cluster.reach("flux", "get", "sources", "-o", "wide", *place).stdout.splitlines()

    heads = ["NAME", "REVISION", "SUSPENDED", "READY", "SOURCE", "PATH", "MESSAGE"]
    assert units[0].split() == sources[0].split() == heads
    assert any("GitRepository/platform  ./web" in unit for unit in units)
    assert URL in sources[1]


def test_a_source_that_no_unit_applies_is_a_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, made = PersistentSandbox.make(tmp_path, monkeypatch), Repository(tmp_path / "shop")
    made.put("clusters/source.yaml", git_repository())
    made.put("clusters/self.yaml", kustomization("flux-system", "./clusters", into=""))
    spare = git_repository()
    get_mapping(spare, "metadata")["name"] = "spare"
    made.put("spare/source.yaml", spare)
    place = ("-C", str(made.root), "--repo-map", f"{URL}={made.root}")

    shown = cluster.reach("flux", "get", "sources", *place)
    result = cluster.reach("flux", "get", "sources", "-o", "json", *place)

    assert shown.code == 0, shown.stderr
    assert [line.split()[0] for line in shown.stdout.splitlines()[1:]] == ["platform", "spare"]
    names = [json.loads(line)["metadata"]["name"] for line in result.stdout.splitlines()]
    assert names == ["platform", "spare"]


def test_an_empty_repository_is_not_a_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, made = PersistentSandbox.make(tmp_path, monkeypatch), Repository(tmp_path / "shop")
    made.put("clusters/web.yaml", kustomization("web", "./web"))

    ran = cluster.reach("flux", "get", "sources", "-C", str(made.root))

    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr == 'error[usage.unit]: no sources found in "flux-system" namespace\n'
