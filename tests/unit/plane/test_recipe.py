"""The key that built programs are kept under."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from plane.binaries.recipe import SOURCE_NAMES, SOURCES, read_recipe


def a_copy_of_the_sources(directory: Path) -> Path:
    copy = directory / "go"
    shutil.copytree(SOURCES, copy)
    return copy


def test_the_key_names_the_versions_and_the_machine() -> None:
    recipe = read_recipe(kwok="v9.9.9", system="linux-arm64")

    start = f"kubernetes-{recipe.kubernetes}-kwok-v9.9.9-linux-arm64-"
    assert recipe.key.startswith(start)


def test_equal_sources_in_another_place_have_the_same_key(tmp_path: Path) -> None:
    copy = a_copy_of_the_sources(tmp_path)

    assert read_recipe(copy).key == read_recipe(SOURCES).key


@pytest.mark.parametrize("name", SOURCE_NAMES)
def test_a_change_in_a_source_file_changes_the_key(tmp_path: Path, name: str) -> None:
    copy = a_copy_of_the_sources(tmp_path)

    with (copy / name).open("a") as source:
        source.write("\n// changed\n")

    assert read_recipe(copy).key != read_recipe(SOURCES).key


def test_the_key_differs_between_machines_and_versions_of_kwok() -> None:
    keys = {
        read_recipe(kwok=kwok, system=system).key
        for kwok in ("v0.8.0", "v0.8.1")
        for system in ("linux-amd64", "linux-arm64")
    }

    assert len(keys) == 4


def test_the_server_is_stamped_with_its_version() -> None:
    recipe = read_recipe()

    stamp = f"k8s.io/component-base/version.gitVersion={recipe.kubernetes}"
    assert stamp in " ".join(recipe.plane_arguments)
