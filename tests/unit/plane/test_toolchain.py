"""Which Go builds the control plane."""

from __future__ import annotations

from pathlib import Path

import pytest

from plane.binaries.toolchain import GO_WHEEL, find_go, parse_version


def a_go_on_path(directory: Path, *, script: str) -> str:
    directory.mkdir()
    go = directory / "go"
    go.write_text(f"#!/bin/sh\n{script}\n")
    go.chmod(0o755)
    return str(directory)


def an_installed_wheel(directory: Path) -> Path:
    environment = directory / GO_WHEEL.replace("==", "-")
    go = environment / "lib" / "python3.11" / "site-packages" / "go" / "bin" / "go"
    go.parent.mkdir(parents=True)
    go.touch()
    (environment / ".ready").touch()
    return go


@pytest.mark.parametrize("version", ["1.26.0", "1.26.8", "1.27.0", "2.0.0"])
def test_go_on_path_is_used_if_it_is_new_enough(tmp_path: Path, version: str) -> None:
    text: list[str] = []
    path = a_go_on_path(tmp_path / "bin", script=f"echo go version go{version} linux/amd64")

    go = find_go("1.26.0", directory=tmp_path, search=path, say=text.append)

    assert go == tmp_path / "bin" / "go"
    assert text == []


@pytest.mark.parametrize("script", ["echo go version go1.9.7 linux/amd64", "exit 1", "echo hello"])
def test_the_wheel_is_used_if_go_on_path_is_old_or_broken(tmp_path: Path, script: str) -> None:
    text: list[str] = []
    wheel = an_installed_wheel(tmp_path)
    path = a_go_on_path(tmp_path / "bin", script=script)

    go = find_go("1.26.0", directory=tmp_path, search=path, say=text.append)

    assert go == wheel
    assert "1.26.0 is needed" in text[0]


def test_the_wheel_is_used_without_go(tmp_path: Path) -> None:
    text: list[str] = []
    wheel = an_installed_wheel(tmp_path)

    go = find_go("1.26.0", directory=tmp_path, search=str(tmp_path), say=text.append)

    assert go == wheel
    assert text == [f"no go on PATH: taking the wheel {GO_WHEEL}"]


def test_the_local_toolchain_is_used_without_a_download(tmp_path: Path) -> None:
    path = a_go_on_path(
        tmp_path / "bin",
        script='[ "$GOTOOLCHAIN" = local ] && echo go version go1.26.8 linux/amd64',
    )

    go = find_go("1.26.0", directory=tmp_path, search=path, say=print)

    assert go == tmp_path / "bin" / "go"


def test_versions_are_compared_as_numbers() -> None:
    assert parse_version("go version go1.9.2 linux/amd64") < parse_version("1.26.0")
    assert parse_version("go version go1.26rc1 linux/amd64") == (1, 26)
