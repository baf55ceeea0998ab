"""The effective configuration of a repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.model.config import Config
from tidegate.source import Checkout
from tidegate.workspace.config import configured_checkouts, filter_ignored, read_config

FILES = ("apps/docs/a.yaml", "apps/web.yaml", "docs/a.yaml", "docs/keep.yaml")


def config_of(folder: Path, text: str, root: Path | None = None) -> Config:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tidegate.yaml").write_text(text)
    return read_config(folder, root or folder)


def test_a_destination_is_found_by_its_name_and_by_its_server(tmp_path: Path) -> None:
    text = "clusters: {prod: {context: eu, server: 'https://prod/'}, 'https://odd': {}, test: {}}"

    config = config_of(tmp_path, text)

    request = ("prod", "https://prod", "https://prod/", "https://odd", "test", "", "in-cluster")
    matches = [item.name if item else None for item in map(config.find_cluster, request)]
    assert matches == ["prod", "prod", "prod", "https://odd", "test", None, None]
    assert config.contexts == (("prod", "eu"), ("https://odd", "https://odd"), ("test", "test"))


def test_maps_become_checkouts_charts_before_repositories(tmp_path: Path) -> None:
    (tmp_path / "vendor" / "redis").mkdir(parents=True)
    chart = "apiVersion: v2\nname: redis\nversion: 17.0.1\n"
    (tmp_path / "vendor" / "redis" / "Chart.yaml").write_text(chart)
    (tmp_path / "packed.tgz").touch()
    text = (
        "repositories: {'https://charts': ../vendor}\n"
        "charts:\n"
        "- {repository: 'https://charts', chart: redis, path: ../vendor/redis, version: 17.0.1}\n"
        "- {repository: 'https://charts', chart: web, path: ../packed.tgz}\n"
    )

    config = config_of(tmp_path / "clusters", text, tmp_path)

    redis, packed = tmp_path / "vendor" / "redis", tmp_path / "packed.tgz"
    assert configured_checkouts(config) == (
        Checkout("https://charts", redis, is_override=True, chart="redis", version="17.0.1"),
        Checkout("https://charts", packed, is_override=True, chart="web"),
        Checkout("https://charts", tmp_path / "vendor", is_override=True),
    )
    assert configured_checkouts(Config()) == ()


@pytest.mark.parametrize(
    ("folder", "patterns", "kept"),
    [
        (".", "docs/", ("apps/web.yaml",)),
        (".", "/docs", ("apps/docs/a.yaml", "apps/web.yaml")),
        (".", "docs/, '!keep.yaml'", ("apps/web.yaml", "docs/keep.yaml")),
        ("apps", "docs/", ("apps/web.yaml", "docs/a.yaml", "docs/keep.yaml")),
        (".", "", FILES),
    ],
)
def test_patterns_are_seen_from_their_file(
    tmp_path: Path, folder: str, patterns: str, kept: tuple[str, ...]
) -> None:
    config = config_of(tmp_path / folder, f"ignore: [{patterns}]\n", tmp_path)

    assert filter_ignored(FILES, tmp_path, config) == kept


def test_patterns_reach_a_tree_below_their_file(tmp_path: Path) -> None:
    config = config_of(tmp_path, "ignore: [apps/docs/]\n")

    assert filter_ignored(("docs/a.yaml", "web.yaml"), tmp_path / "apps", config) == ("web.yaml",)


def test_without_a_file_nothing_is_ignored(tmp_path: Path) -> None:
    assert read_config(tmp_path, tmp_path) == Config()
    assert filter_ignored(FILES, tmp_path, Config()) == FILES


def test_above_its_root_a_path_has_no_file(tmp_path: Path) -> None:
    config_of(tmp_path, "settings: {a: b}\n")
    (tmp_path / "inner").mkdir()

    assert read_config(tmp_path, tmp_path / "inner") == Config()
