"""Files that never end, are none, or hold what takes a reader down."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.in_process_command import run_in_process
from tests.support.recorded_wording import RecordedWording
from tests.support.releases import helm_release
from tests.support.repositories import Repository, git_repository
from tests.support.tidegate_runs import FIRST, config_map, tidegate, write_unit
from tidegate.model.k8s.objects import Json

OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata: {{a: {value}}}\n"
SWOLLEN = {
    "4,301 digits": "9" * 4_301,
    "4,301 digits with a sign": "-" + "9" * 4_301,
    "100,000 zeros": "0" * 100_000,
    "a hundred thousand bits": "0b" + "1" * 100_000,
    "5,000 brackets": "[" * 5_000 + "]" * 5_000,
    "5,000 braces": "{a: " * 5_000 + "}" * 5_000,
    "an exponent": "1e999999999",
    "a wide string": "'" + "a" * 1_000_000 + "'",
}
VERBS = (("render",), ("units",), ("plan",), ("simulate",), ("sandbox", "run"))
OPTIONS = ("--scenario", "--profile", "--operator-defs", "--health-rules", "--ignore-differences")


@pytest.mark.parametrize("what", SWOLLEN)
def test_a_value_that_swells_is_read_or_refused(what: str, tmp_path: Path) -> None:
    folder = write_unit(tmp_path / "unit", web=OBJECT.format(value=SWOLLEN[what]))

    for verb in VERBS:
        ran = run_in_process(tmp_path, {"HOME": str(tmp_path)}, (*verb, str(folder)))

        assert ran.code in {0, 3}, (verb, ran.stderr[-300:])
        assert "Traceback" not in ran.stderr


@pytest.fixture(params=["/dev/zero", "fifo", "directory", "large"])
def endless(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """What cannot be read to its end."""
    match request.param:
        case "fifo":
            os.mkfifo(tmp_path / "fifo.yaml")
            return str(tmp_path / "fifo.yaml")
        case "large":
            with (tmp_path / "large.yaml").open("wb") as file:
                file.truncate(10 * 1024**3)
            return str(tmp_path / "large.yaml")
        case "directory":
            (tmp_path / "folder.yaml").mkdir()
            return str(tmp_path / "folder.yaml")
        case path:
            return str(path)


@pytest.mark.parametrize("option", OPTIONS)
def test_a_file_of_the_users_is_bounded(option: str, endless: str) -> None:
    ran = tidegate("simulate", FIRST, option, endless)

    assert ran.returncode in {2, 3}
    assert "Traceback" not in ran.stderr


def test_a_kubeconfig_is_bounded(endless: str) -> None:
    ran = tidegate("plan", FIRST, "--kubeconfig", endless)

    assert ran.returncode == 3
    assert "error[config.file]" in ran.stderr


@pytest.mark.parametrize("verb", [("sandbox", "run"), ("health",)], ids=" ".join)
def test_a_file_that_is_named_is_bounded(verb: tuple[str, ...], endless: str) -> None:
    ran = tidegate(*verb, endless)

    assert ran.returncode in {2, 3}
    assert "error[documents" in ran.stderr or "Error: " in ran.stderr


def test_the_size_of_a_directory_is_limited(tmp_path: Path) -> None:
    folder = write_unit(tmp_path / "unit", web=config_map())
    os.mkfifo(folder / "pipe.yaml")
    (folder / "device.yaml").symlink_to("/dev/zero")

    for verb in VERBS:
        ran = run_in_process(tmp_path, {"HOME": str(tmp_path)}, (*verb, "unit"))

        assert ran.code in {0, 3}, verb
        assert "Traceback" not in ran.stderr


def test_a_pipe_in_the_place_of_an_overlay_is_not_waited_for(
    tmp_path: Path, wording: RecordedWording
) -> None:
    """A search for the line of a missing file must not wait for a writer of the pipe."""
    app = (
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
        "metadata: {name: web, namespace: flux-system}\n"
        "spec: {interval: 5m, prune: true, path: ./web,"
        " sourceRef: {kind: GitRepository, name: a}}\n"
    )
    source = (
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n"
        "metadata: {name: a, namespace: flux-system}\n"
        "spec: {interval: 5m, url: https://git.example.com/a.git}\n"
    )
    write_unit(tmp_path / "clusters", app=app, source=source)
    write_unit(tmp_path / "web", web=config_map("web"))
    os.mkfifo(tmp_path / "web" / "kustomization.yaml")

    ran = run_in_process(tmp_path, {"HOME": str(tmp_path)}, ("plan", ".", "--offline"))

    assert ran.code == 3
    wording(ran.stderr.splitlines()[0])
    wording(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize("verb", ["lint", "plan", "units"])
def test_a_pipe_among_the_templates_of_a_chart_is_not_waited_for(verb: str, tmp_path: Path) -> None:
    """A search for units in a chart must not wait for a writer of the pipe."""
    source: Json = {"kind": "GitRepository", "name": "platform"}
    made = Repository(tmp_path / "platform")
    chart: Json = {"spec": {"chart": "./chart", "sourceRef": source}}
    release = helm_release("flux-system", chart=chart)
    made.put("clusters/main/all.yaml", git_repository(), release)
    (made.root / "chart" / "templates").mkdir(parents=True)
    (made.root / "chart" / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 1.0.0\n")
    os.mkfifo(made.root / "chart" / "templates" / "pipe.tpl")

    ran = run_in_process(tmp_path, {"HOME": str(tmp_path)}, (verb, str(made.root), "--offline"))

    assert ran.code == 3
    output = ran.stdout + ran.stderr
    (line,) = [line for line in output.splitlines() if "error[render.helm.irregular]" in line]
    assert "`templates/pipe.tpl`" in line
