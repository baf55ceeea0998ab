"""`tidegate render`, from outside: several paths, options, and the cache."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.helm_charts import CHARTS, write_chart
from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_command import Tidegate
from tidegate.model.units.chart_request import DEFAULT_KUBE_VERSION
from tidegate.workers.rendering import available_cores

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"
SEES = """apiVersion: v1
kind: ConfigMap
metadata:
  name: sees
data:
  version: {{ .Capabilities.KubeVersion.Version }}
  gateway: {{ .Capabilities.APIVersions.Has "gateway.example/v1" | quote }}
"""


GENERATES = """resources: [config.yaml]
configMapGenerator:
- name: made
  literals: [b=2, a=1, ä=3, Z=4]
"""
SURROUNDINGS = (
    {"LC_ALL": "C", "TZ": "UTC", "PYTHONHASHSEED": "0"},
    {"LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "1"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "TZ": "America/Los_Angeles", "PYTHONHASHSEED": "2"},
)


@pytest.fixture
def tidegate(tmp_path: Path) -> Tidegate:
    return Tidegate(tmp_path / "home")


def write_overlay(place: Path, *, name: str = "web") -> Path:
    place.mkdir(parents=True)
    (place / "kustomization.yaml").write_text("resources: [config.yaml]\nnamePrefix: shop-\n")
    (place / "config.yaml").write_text(CONFIG.format(name=name))
    return place


def write_directory(place: Path, *, name: str = "plain") -> Path:
    place.mkdir(parents=True)
    (place / "config.yaml").write_text(CONFIG.format(name=name))
    return place


async def test_several_paths_are_rendered_in_the_given_order(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    chart = write_chart(tmp_path / "web")
    overlay = write_overlay(tmp_path / "overlay")
    directory = write_directory(tmp_path / "plain")

    ran = await tidegate.run("render", overlay, directory, chart, "-o", "names")

    assert ran.code == 0
    assert ran.lines == ["v1 ConfigMap shop-web", "v1 ConfigMap plain", "v1 ConfigMap web"]


async def test_an_error_in_one_path_does_not_stop_the_others(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    broken = write_overlay(tmp_path / "broken")
    (broken / "config.yaml").unlink()
    directory = write_directory(tmp_path / "plain")

    ran = await tidegate.run("render", broken, directory, tmp_path / "absent", "-o", "names")

    assert ran.code == 3
    assert ran.lines == ["v1 ConfigMap plain"]
    assert "error[render.kustomize.missing]" in ran.stderr
    assert "error[render.path]" in ran.stderr
    assert "Traceback" not in ran.stderr


async def test_a_chart_sees_the_versions_that_are_given(tidegate: Tidegate, tmp_path: Path) -> None:
    chart = write_chart(tmp_path / "web", template=SEES)
    given = ("--kube-version", "1.31.2", "--api-versions", "a.example/v1,gateway.example/v1")

    result = await tidegate.run("render", chart, *given)
    by_itself = await tidegate.run("render", chart)

    assert "version: v1.31.2" in result.stdout
    assert 'gateway: "true"' in result.stdout
    assert f"version: {DEFAULT_KUBE_VERSION}" in by_itself.stdout
    assert 'gateway: "false"' in by_itself.stdout


@pytest.mark.parametrize(
    "options",
    [("--kube-version", "latest"), ("--name", "shop"), ("--set", "oops")],
    ids=" ".join,
)
async def test_wrong_options_are_refused_with_exit_code_two(
    wording: RecordedWording, tidegate: Tidegate, tmp_path: Path, options: tuple[str, ...]
) -> None:
    item, two = write_directory(tmp_path / "one"), write_directory(tmp_path / "two")

    ran = await tidegate.run("render", item, two, *options)

    assert ran.code == 2
    wording(ran.stderr)


async def test_an_invalid_repo_map_is_an_error(tidegate: Tidegate, tmp_path: Path) -> None:
    ran = await tidegate.run("render", write_directory(tmp_path / "a"), "--repo-map", "nonsense")

    assert ran.code == 3
    assert "error[source.map]" in ran.stderr


async def test_jsonnet_in_a_directory_is_evaluated(tidegate: Tidegate, tmp_path: Path) -> None:
    directory = write_directory(tmp_path / "plain")
    thing = "{apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: 'n' + 1}}"
    (directory / "a.jsonnet").write_text(f"[{thing}]\n")

    ran = await tidegate.run("render", directory, "-o", "names")

    assert ran.lines == ["v1 ConfigMap n1", "v1 ConfigMap plain"]


@pytest.mark.parametrize("write", [write_chart, write_overlay])
async def test_a_cached_render_starts_no_program(
    tidegate: Tidegate, tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    place = write(tmp_path / "web")

    first = await tidegate.run("render", place, "--origins")
    second = await tidegate.run("render", place, "--origins")

    assert first.started > 0
    assert second.started == 0
    assert second.stdout == first.stdout


async def test_a_copy_elsewhere_is_the_same_chart(tidegate: Tidegate, tmp_path: Path) -> None:
    chart = write_chart(tmp_path / "web")
    copy = shutil.copytree(chart, tmp_path / "elsewhere" / "web")

    await tidegate.run("render", chart)
    again = await tidegate.run("render", copy)

    assert again.started == 0
    assert "name: web" in again.stdout


async def test_a_change_of_any_input_renders_again(tidegate: Tidegate, tmp_path: Path) -> None:
    chart = write_chart(tmp_path / "web", template=SEES + "  motto: {{ .Values.motto }}\n")
    values = tmp_path / "values.yaml"

    raw = []
    for text, options in (
        ("motto: one", ()),
        ("motto: two", ()),
        ("motto: two", ("--set", "motto=three")),
        ("motto: two", ("--kube-version", "v1.30.0")),
    ):
        values.write_text(text)
        ran = await tidegate.run("render", chart, "-f", values, *options)
        raw += [line for line in ran.lines if "motto" in line or "version:" in line]
    (chart / "templates" / "config.yaml").write_text(CONFIG.format(name="new"))
    changed = await tidegate.run("render", chart, "-f", values)

    usual = f"  version: {DEFAULT_KUBE_VERSION}"
    assert raw == [
        *("  motto: one", usual, "  motto: two", usual, "  motto: three", usual),
        *("  motto: two", "  version: v1.30.0"),
    ]
    assert "name: new" in changed.stdout


async def test_a_base_next_to_the_overlay_is_an_input(tidegate: Tidegate, tmp_path: Path) -> None:
    write_overlay(tmp_path / "repository" / "base")
    (tmp_path / "repository" / ".git").mkdir()
    overlay = tmp_path / "repository" / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text("resources: [../base]\n")
    before = await tidegate.run("render", overlay, "-o", "names")

    base = tmp_path / "repository" / "base" / "config.yaml"
    base.write_text(CONFIG.format(name="other"))
    after = await tidegate.run("render", overlay, "-o", "names")

    assert (before.lines, after.lines) == (["v1 ConfigMap shop-web"], ["v1 ConfigMap shop-other"])


async def test_a_neighbour_that_a_chart_needs_counts(tidegate: Tidegate, tmp_path: Path) -> None:
    charts = shutil.copytree(CHARTS, tmp_path / "charts")
    (charts / ".git").mkdir()
    before = await tidegate.run("render", charts / "neighbour", "-o", "names")

    (charts / "queue" / "templates" / "config.yaml").write_text(CONFIG.format(name="other"))
    after = await tidegate.run("render", charts / "neighbour", "-o", "names")

    assert "v1 ConfigMap other" not in before.lines
    assert "v1 ConfigMap other" in after.lines


async def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    chart = write_chart(tmp_path / "web")
    (tmp_path / "file").touch()

    ran = await tidegate.run("render", chart, XDG_CACHE_HOME=str(tmp_path / "file"))

    assert (ran.code, ran.stderr) == (0, "")
    assert "name: web" in ran.stdout


async def test_many_charts_share_the_workers(tidegate: Tidegate, tmp_path: Path) -> None:
    charts = [write_chart(tmp_path / f"web{number}") for number in range(12)]

    ran = await tidegate.run("render", *charts, "-o", "names")

    assert ran.lines == [f"v1 ConfigMap web{number}" for number in range(12)]
    assert 0 < ran.started <= available_cores()


async def test_neither_locale_nor_clock_nor_order_of_hashing_changes_a_byte(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    shutil.copytree(CHARTS / "umbrella", tmp_path / "umbrella")
    overlay = write_overlay(tmp_path / "overlay", name="i")
    (overlay / "kustomization.yaml").write_text(GENERATES)
    (overlay / "config.yaml").write_text(CONFIG.format(name="web") + "data: {I: 'ä €'}\n")
    commands = (
        (overlay, write_directory(tmp_path / "plain")),
        (tmp_path / "umbrella", "--set", "db.motto=ÄÖ"),
    )

    for units, mark in zip(commands, ("ä €", "ÄÖ"), strict=True):
        texts = [
            await Tidegate(tmp_path / f"home{number}").run(
                "render", *units, "--origins", cwd=None, **more
            )
            for number, more in enumerate(SURROUNDINGS)
        ]
        assert {ran.stdout for ran in texts} == {texts[0].stdout}
        assert mark in texts[0].stdout
        assert [(ran.code, ran.stderr) for ran in texts] == [(0, "")] * len(SURROUNDINGS)
