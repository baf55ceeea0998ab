"""The unit for a path or an address, and its default name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.errors import RenderError
from tidegate.model.units.chart_request import ChartRequest, ValuesFile, ValuesUrl
from tidegate.model.units.rendering import ToolDetection
from tidegate.model.units.source import (
    ChartSource,
    GitRef,
    GitRefKind,
    GitSource,
    LocalSource,
    OciSource,
)
from tidegate.workspace.request import unit_for_path


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("shop", "shop"),
        ("web/overlays/prod", "web-overlays-prod"),
        ("web/base", "web-base"),
        ("web/Charts", "web-Charts"),
        ("clusters/prod/shop", "shop"),
    ],
)
def test_a_unit_name_includes_parent_directories_if_needed(
    tmp_path: Path, path: str, name: str
) -> None:
    (tmp_path / path).mkdir(parents=True)

    assert unit_for_path(str(tmp_path / path)).id.name == name


def test_the_name_is_the_same_from_inside_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "web" / "prod"
    folder.mkdir(parents=True)
    outside = unit_for_path(str(folder))

    monkeypatch.chdir(folder)

    assert unit_for_path(".").id == outside.id


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://host/org/repo//path?ref=v2", "path"),
        ("https://host/org/repo//path?ref=main", "path"),
        ("https://host/org/repo//path", "path"),
        ("https://host/org/repo//web/overlays/prod?ref=v2", "web-overlays-prod"),
        ("https://host/org/repo.git//deploy?ref=v2", "repo-deploy"),
        ("https://host/org/repo?ref=v2", "repo"),
        ("https://host/org/repo.git", "repo"),
        ("git@host:org/repo.git//deploy?ref=v2", "repo-deploy"),
        ("oci://registry/org/web", "web"),
        ("oci://registry/org/web/deploy/", "web-deploy"),
    ],
)
def test_an_address_gives_a_name_without_its_revision(address: str, name: str) -> None:
    assert unit_for_path(address).id.name == name


@pytest.mark.parametrize("address", ["https://host/org/repo//path", "oci://registry/org/path"])
def test_another_revision_is_the_same_unit(address: str) -> None:
    units = [unit_for_path(address, revision=revision) for revision in ("", "v1.0.0", "v2.0.0")]

    assert len({unit.id for unit in units}) == 1
    assert len({unit.sources[0].source for unit in units}) == 3


def test_the_revision_option_overrides_that_of_the_url() -> None:
    unit = unit_for_path("https://host/org/repo//path?ref=v1", revision="v2")

    source = unit.sources[0].source
    assert isinstance(source, GitSource)
    assert source.ref == GitRef(GitRefKind.ANY, "v2")


@pytest.mark.parametrize(
    ("revision", "source"),
    [
        ("", OciSource("oci://host/web")),
        ("1.2.0+7", OciSource("oci://host/web", tag="1.2.0_7")),
        (">=1.0 <2.0", OciSource("oci://host/web", range=">=1.0 <2.0")),
        ("sha256:abc", OciSource("oci://host/web", digest="sha256:abc")),
    ],
)
def test_a_revision_of_an_artifact_is_a_tag_a_range_or_a_digest(
    revision: str, source: OciSource
) -> None:
    assert unit_for_path("oci://host/web", revision=revision).sources[0].source == source


def test_a_chart_of_a_repository_is_called_like_the_chart() -> None:
    unit = unit_for_path("https://charts.example", chart="web", revision="1.x")

    assert unit.id.name == "web"
    assert unit.sources[0].source == ChartSource("https://charts.example", "web", "1.x")


def test_a_packed_chart_is_called_like_its_file_and_is_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "web-1.2.0.tgz").write_bytes(b"")

    unit = unit_for_path(str(tmp_path / "web-1.2.0.tgz"))

    assert unit.id.name == "web-1.2.0"
    assert isinstance(unit.sources[0].request, ChartRequest)


def test_options_of_the_user_are_used(tmp_path: Path) -> None:
    (tmp_path / "prod").mkdir()

    unit = unit_for_path(str(tmp_path / "prod"), name="shop", namespace="web", cluster="east")

    assert (unit.id.cluster, str(unit.id)) == ("east", "east:web/shop")
    assert (unit.destination.cluster, unit.destination.namespace) == ("east", "web")


def test_a_tree_reaches_to_the_root_of_its_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "web" / "prod").mkdir(parents=True)

    (source,) = unit_for_path(str(tmp_path / "web" / "prod")).sources

    assert source.source == LocalSource(str(tmp_path.resolve()))
    assert isinstance(source.request, ToolDetection)
    assert source.request.path == "web/prod"


def test_values_can_be_files_or_urls(tmp_path: Path) -> None:
    values = (str(tmp_path / "v.yaml"), "https://host/v.yaml")

    (source,) = unit_for_path(str(tmp_path), values=values, parameters=(("a", "1"),)).sources

    assert isinstance(source.request, ToolDetection)
    file, address, *_ = source.request.chart.layers
    assert file == ValuesFile(str((tmp_path / "v.yaml").resolve()), root="/")
    assert address == ValuesUrl("https://host/v.yaml")


def test_a_path_that_is_neither_a_directory_nor_a_url_is_rejected(
    tmp_path: Path, wording: RecordedWording
) -> None:
    with pytest.raises(RenderError) as missing:
        unit_for_path(str(tmp_path / "nothing"))
    with pytest.raises(RenderError) as versioned:
        unit_for_path(str(tmp_path), revision="v1")

    assert missing.value.code == versioned.value.code == "render.path"
    wording([missing.value.problem, versioned.value.problem])
