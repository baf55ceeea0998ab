"""`tidegate units`, and a second `plan`: what is rendered for them, and what is not."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.overlays import OverlayCase
from tests.support.tidegate_command import Tidegate

URL = "https://git.example.com/shop/platform.git"
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: {url}, path: {path}}}
  destination: {{server: https://kubernetes.default.svc, namespace: shop}}
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}}}\n"
GROUP = "group: argoproj.io/v1alpha1\n"
CHILD = APPLICATION.format(name="child", url=URL, path="child").replace(
    "argoproj.io/v1alpha1", "{{ .Values.group }}"
)
CHART = "apiVersion: v2\nname: chart\nversion: 1.0.0\n"
NAMES = ("plain", "overlay", "chart", "bringer")
FILES = {
    **{f"apps/{name}.yaml": APPLICATION.format(name=name, url=URL, path=name) for name in NAMES},
    "plain/web.yaml": CONFIG.format("plain"),
    "overlay/kustomization.yaml": "resources: [web.yaml]\n",
    "overlay/web.yaml": CONFIG.format("overlay"),
    "chart/Chart.yaml": CHART,
    "chart/templates/web.yaml": CONFIG.format("chart"),
    "child/web.yaml": CONFIG.format("child"),
    "bringer/Chart.yaml": CHART,
    "bringer/values.yaml": GROUP,
    "bringer/templates/child.yaml": CHILD,
}


@pytest.fixture
def tidegate(tmp_path: Path) -> Tidegate:
    return Tidegate(tmp_path / "home")


def clone(root: Path, files: dict[str, str]) -> Path:
    OverlayCase(files=files).write(root)
    for args in (["init", "--quiet"], ["remote", "add", "origin", URL]):
        subprocess.run(["git", *args], check=True, cwd=root)  # noqa: S607
    return root


async def test_sources_without_units_are_rendered_only_on_request(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    broken = {"chart/templates/web.yaml": '{{ fail "this chart was rendered" }}'}
    root = clone(tmp_path / "platform", FILES | broken)
    args = ("units", str(root), "--offline", "-o", "json")

    quick = await tidegate.run(*args)
    whole = await tidegate.run(*args, "--objects")

    units = {unit["name"]: unit["objects"] for unit in json.loads(whole.stdout)["units"]}
    assert (quick.code, whole.code) == (0, 3)
    assert "this chart was rendered" in whole.stdout
    assert [unit["name"] for unit in json.loads(quick.stdout)["units"]] == [*units]
    assert {name: units[name] for name in (*NAMES, "child")} == {
        "plain": 1,
        "overlay": 1,
        "chart": None,
        "bringer": 1,
        "child": 1,
    }


async def test_a_missing_path_is_reported_all_the_same(tidegate: Tidegate, tmp_path: Path) -> None:
    nowhere = APPLICATION.format(name="nowhere", url=URL, path="nowhere")
    root = clone(tmp_path / "platform", FILES | {"apps/nowhere.yaml": nowhere})

    ran = await tidegate.run("units", str(root), "--offline")

    assert ran.code == 3
    assert any(
        "error[source.path]" in line and "`nowhere`" in line for line in ran.stderr.splitlines()
    )


async def test_a_second_plan_of_what_has_not_changed_starts_no_more_than_git(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    root = clone(tmp_path / "platform", FILES)
    plain = {name: FILES[name] for name in ("apps/plain.yaml", "plain/web.yaml")}
    bare = clone(tmp_path / "bare" / "platform", plain)

    first = await tidegate.run("plan", str(root), "--offline")
    again = await tidegate.run("plan", str(root), "--offline")
    only_git = await tidegate.run("plan", str(bare), "--offline")

    assert (first.code, again.code, again.stdout) == (0, 0, first.stdout)
    assert again.started == only_git.started < first.started


async def test_the_list_of_units_does_not_depend_on_the_cache(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    root = clone(tmp_path / "platform", FILES)

    before = await tidegate.run("units", str(root), "--offline")
    await tidegate.run("plan", str(root), "--offline")
    after = await tidegate.run("units", str(root), "--offline")

    assert (after.code, after.stdout, after.stderr) == (0, before.stdout, before.stderr)


async def test_remotes_are_read_where_a_unit_names_a_repository(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    root = clone(tmp_path / "platform", FILES)

    without_remote = await tidegate.run("plan", str(root / "plain"))
    with_remote = await tidegate.run("plan", str(root / "apps" / "plain.yaml"), "--offline")

    assert (without_remote.code, with_remote.code) == (0, 0)
    assert 1 == without_remote.started < with_remote.started
