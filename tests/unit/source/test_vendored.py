"""Charts in a repository: which there are, and when they stand for those of a Helm repository."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support.chart_archives import a_chart
from tests.support.source_access import an_access
from tidegate.errors import SourceError
from tidegate.model.units.source import ChartSource, GitSource, OciSource, SourceRef
from tidegate.source import Checkout, FetchOptions, VendoredCharts, fetch
from tidegate.source.vendored import VendoredChart, pick_vendored

CHARTS = "https://charts.example.com/stable"


def write_chart(place: Path, name: str, version: str, more: str = "") -> Path:
    place.mkdir(parents=True, exist_ok=True)
    text = f"apiVersion: v2\nname: {name}\nversion: {version}\n{more}"
    (place / "Chart.yaml").write_text(text)
    return place


def charts_below(root: Path) -> list[tuple[str, str, str]]:
    return [
        (chart.name, chart.version, chart.path.relative_to(root).as_posix())
        for chart in charts_of(root).charts
    ]


def charts_of(root: Path) -> VendoredCharts:
    files = (path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir())
    return VendoredCharts(tuple(files), root)


def test_every_chart_of_a_tree_is_found(tmp_path: Path) -> None:
    web = write_chart(tmp_path / "apps" / "web", "web", "0.1.0")
    write_chart(web / "charts" / "redis", "redis", "17.0.1")
    (web / "charts" / "cert-manager-v1.14.0-rc.1.tgz").touch()
    (tmp_path / "app-2-1.0.0.tgz").touch()

    assert charts_below(tmp_path) == [
        ("app-2", "1.0.0", "app-2-1.0.0.tgz"),
        ("cert-manager", "v1.14.0-rc.1", "apps/web/charts/cert-manager-v1.14.0-rc.1.tgz"),
        ("redis", "17.0.1", "apps/web/charts/redis"),
        ("web", "0.1.0", "apps/web"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name: {{ .Name }}\nversion: 1.0.0\n",
        "name: web\n",
        "name: web\nversion: 1.0\n",
        "- web\n",
        "name: web\nversion: 1.0.0\n---\nname: web\nversion: 1.0.0\n",
    ],
)
def test_an_unreadable_directory_is_not_a_chart(tmp_path: Path, text: str) -> None:
    (tmp_path / "Chart.yaml").write_text(text)
    (tmp_path / "notes-final.tgz").touch()

    assert charts_below(tmp_path) == []


def test_a_link_out_of_the_tree_is_not_followed(tmp_path: Path) -> None:
    outside = write_chart(tmp_path / "outside", "web", "1.0.0")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "Chart.yaml").symlink_to(outside / "Chart.yaml")

    assert charts_below(tmp_path / "tree") == []


def test_a_chart_around_its_namesake_is_not_confused_with_it(tmp_path: Path) -> None:
    needs = f"dependencies: [{{name: redis, version: 17.0.1, repository: '{CHARTS}'}}]\n"
    write_chart(tmp_path / "redis", "redis", "17.0.1", needs)

    assert charts_below(tmp_path) == []


@pytest.mark.parametrize(
    ("version_range", "path"),
    [
        ("", "new"),
        ("^17", "b"),
        ("17.0.1", "a"),
        ("v17.0.1", "a"),
        (">=19.0.0-0", "early"),
        ("16.x", None),
        ("no range", None),
    ],
)
def test_the_highest_version_in_the_range_is_taken(version_range: str, path: str | None) -> None:
    charts = [
        VendoredChart("redis", "18.0.0", Path("new")),
        VendoredChart("redis", "17.0.1", Path("z")),
        VendoredChart("redis", "17.0.1", Path("a")),
        VendoredChart("redis", "17.2.0", Path("b")),
        VendoredChart("redis", "19.0.0-rc.1", Path("early")),
        VendoredChart("valkey", "20.0.0", Path("other")),
    ]

    result = pick_vendored(charts, ChartSource(CHARTS, "redis", version_range))

    assert (str(result.path) if result else None) == path


def having(tmp_path: Path, checkouts: tuple[Checkout, ...] = ()) -> FetchOptions:
    return an_access(tmp_path, offline=True, checkouts=checkouts)


def having_all(tmp_path: Path) -> FetchOptions:
    """An access to all charts that lie there."""
    return msgspec.structs.replace(having(tmp_path), vendored_charts=charts_of(tmp_path))


@pytest.mark.parametrize("repository", [CHARTS, "oci://registry.example.com/acme"])
async def test_an_unavailable_chart_is_replaced_by_the_vendored_one(
    tmp_path: Path, repository: str
) -> None:
    place = write_chart(tmp_path / "redis", "redis", "17.0.1")
    access = having_all(tmp_path)

    result = await fetch(ChartSource(repository, "redis", "^17"), access)

    assert (result.root, result.files) == (place, ("Chart.yaml",))
    with pytest.raises(SourceError) as caught:
        await fetch(ChartSource(repository, "redis", "^18"), access)
    assert caught.value.code == "source.offline"


async def test_a_packed_chart_is_its_own_directory(tmp_path: Path) -> None:
    (tmp_path / "web-1.0.0.tgz").write_bytes(a_chart())
    access = having_all(tmp_path)

    result = await fetch(ChartSource(CHARTS, "web"), access)

    assert result.files == ("Chart.yaml", "templates/service.yaml")


def mapped(path: Path, version: str = "", url: str = CHARTS) -> Checkout:
    return Checkout(url, path, is_override=True, chart="redis", version=version)


@pytest.mark.parametrize(
    ("source", "path"),
    [
        (ChartSource(f"{CHARTS}/", "redis", "^17"), "old"),
        (ChartSource(CHARTS, "redis", "18.0.0"), "new"),
        (ChartSource(CHARTS, "redis", "16.0.0"), "any"),
        (OciSource("oci://ghcr.io/acme/redis", tag="17.0.1"), "oci"),
    ],
    ids=str,
)
async def test_a_map_of_one_chart_counts_where_its_version_fits(
    tmp_path: Path, source: SourceRef, path: str
) -> None:
    old, new, other, oci = (
        write_chart(tmp_path / name, "redis", version)
        for name, version in (("old", "17.0.1"), ("new", "18.0.0"), ("any", "9.0.0"), ("oci", "1"))
    )
    maps = (
        *(mapped(old, "17.0.1"), mapped(new, "18.0.0"), mapped(other)),
        mapped(oci, "17.0.1", "oci://ghcr.io/acme"),
    )

    result = await fetch(source, having(tmp_path, checkouts=maps))

    assert (result.source, result.root) == (source, tmp_path / path)


@pytest.mark.parametrize(
    "source",
    [
        ChartSource(CHARTS, "valkey"),
        ChartSource("https://elsewhere.example.com", "redis"),
        ChartSource(CHARTS, "redis", "18.0.0"),
        GitSource(CHARTS),
        OciSource("oci://charts.example.com/stable"),
    ],
    ids=str,
)
async def test_a_map_of_a_chart_replaces_only_this_chart(tmp_path: Path, source: SourceRef) -> None:
    place = write_chart(tmp_path / "redis", "redis", "17.0.1")

    with pytest.raises(SourceError) as caught:
        await fetch(source, having(tmp_path, checkouts=(mapped(place, "17.0.1"),)))

    assert caught.value.code == "source.offline"


async def test_a_map_to_a_directory_without_a_chart_is_reported(tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()

    with pytest.raises(SourceError) as caught:
        await fetch(
            ChartSource(CHARTS, "redis"), having(tmp_path, checkouts=(mapped(tmp_path / "redis"),))
        )

    assert caught.value.code == "source.chart.archive"


async def test_the_first_matching_map_is_used(tmp_path: Path) -> None:
    whole = Checkout(CHARTS, tmp_path / "flag", is_override=True)
    write_chart(tmp_path / "flag" / "redis", "redis", "1.0.0")
    unit_resource = mapped(write_chart(tmp_path / "own", "redis", "1.0.0"))

    result = await fetch(
        ChartSource(CHARTS, "redis"), having(tmp_path, checkouts=(whole, unit_resource))
    )

    assert result.root == tmp_path / "flag" / "redis"
