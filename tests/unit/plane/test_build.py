"""Building once, wholly, and by one process at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from plane.binaries.build import build
from plane.binaries.recipe import KWOK_STAGES
from plane.errors import PlaneError

# Replaces Go: takes a moment, so that two builds at once would overlap.
FAKE_GO = """\
case $1 in
version) echo go version go1.99.0 linux/amd64 ;;
build) echo built >> {home}/builds; sleep 0.2; while [ "$1" != -o ]; do shift; done; touch "$2" ;;
install) touch "$GOBIN/kwok" ;;
list) echo {home}/kwok-module ;;
esac
"""


def a_fake_go(directory: Path, *, script: str = FAKE_GO) -> str:
    for name in KWOK_STAGES:
        stage = directory / "kwok-module" / "kustomize" / "stage" / name
        stage.parent.mkdir(parents=True, exist_ok=True)
        stage.write_text(f"name: {name}\n")
    go = directory / "path" / "go"
    go.parent.mkdir()
    go.write_text("#!/bin/sh\n" + script.replace("{home}", str(directory)))
    go.chmod(0o755)
    return f"{go.parent}:/usr/bin:/bin"


def test_everything_that_starting_needs_is_kept_together(tmp_path: Path) -> None:
    path = a_fake_go(tmp_path)

    binaries = build(say=print, directory=tmp_path / "kept", search=path)

    assert binaries.plane.exists()
    assert binaries.kwok.exists()
    assert all((binaries.stages / name).exists() for name in KWOK_STAGES)


def test_an_existing_binary_is_not_built_again_and_nothing_is_printed(tmp_path: Path) -> None:
    text: list[str] = []
    path = a_fake_go(tmp_path)
    first = build(say=print, directory=tmp_path / "kept", search=path)

    second = build(say=text.append, directory=tmp_path / "kept", search=path)

    assert second == first
    assert text == []
    assert (tmp_path / "builds").read_text() == "built\n"


def test_concurrent_builds_build_once(tmp_path: Path) -> None:
    path = a_fake_go(tmp_path)

    with ThreadPoolExecutor(2) as pool:
        requests = [
            pool.submit(build, say=print, directory=tmp_path / "kept", search=path)
            for _ in range(2)
        ]
        homes = {future.result().directory for future in requests}

    assert len(homes) == 1
    assert (tmp_path / "builds").read_text() == "built\n"


def test_a_build_that_breaks_shows_the_end_of_its_log_and_leaves_no_half(tmp_path: Path) -> None:
    script = """\
case $1 in
version) echo go version go1.99.0 linux/amd64 ;;
*) seq 1000 >&2; echo "main.go:1: no such thing" >&2; exit 2 ;;
esac
"""
    path = a_fake_go(tmp_path, script=script)

    with pytest.raises(PlaneError) as caught:
        build(say=print, directory=tmp_path / "kept", search=path)

    log = tmp_path / "kept" / "build.log"
    assert caught.value.code == "plane.build"
    assert caught.value.tail[-1] == "main.go:1: no such thing"
    assert str(log) in str(caught.value)
    assert log.read_text().startswith("1\n2\n")
    assert {child.name for child in log.parent.iterdir()} == {"build.lock", "build.log"}


def test_files_of_a_killed_build_are_removed(tmp_path: Path) -> None:
    path = a_fake_go(tmp_path)
    left = tmp_path / "kept" / ".building-abc"
    left.mkdir(parents=True)

    build(say=print, directory=tmp_path / "kept", search=path)

    assert not left.exists()
