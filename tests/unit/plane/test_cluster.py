"""Starting that goes wrong, with scripts in place of the real programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from plane import ControlPlane, PlaneError
from plane.binaries.build import Binaries
from plane.binaries.recipe import KWOK_STAGES
from plane.cluster import PORT_ATTEMPTS
from plane.parts.site import Ports
from plane.ports import pick_ports


def programs(directory: Path, *, script: str) -> Binaries:
    binaries = Binaries(directory)
    for name in KWOK_STAGES:
        stage = binaries.stages / name
        stage.parent.mkdir(parents=True, exist_ok=True)
        stage.write_text(
            "metadata: {name: some}\nspec: {selector: {matchExpressions: []}, next: {}}\n"
        )
    for program in (binaries.plane, binaries.kwok):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    return binaries


def a_root(directory: Path) -> Path:
    root = directory / "root"
    root.mkdir()
    return root


def test_a_program_that_exits_is_reported_with_its_last_lines_and_its_log(tmp_path: Path) -> None:
    root = a_root(tmp_path)
    binaries = programs(tmp_path / "bin", script='echo "$1 wants more memory"; exit 3')

    with pytest.raises(PlaneError) as caught:
        ControlPlane.start(binaries=binaries, root=root)

    kept = root / "failed-etcd.log"
    assert caught.value.code == "plane.ended"
    assert caught.value.problem == "`etcd` ended with status 3 instead of starting"
    assert caught.value.tail == ("etcd wants more memory",)
    assert str(kept) in str(caught.value)
    assert kept.read_text() == "etcd wants more memory\n"


def test_a_failed_start_leaves_no_data(tmp_path: Path) -> None:
    root = a_root(tmp_path)
    binaries = programs(tmp_path / "bin", script="exit 3")

    with pytest.raises(PlaneError):
        ControlPlane.start(binaries=binaries, root=root)

    assert [path.name for path in root.iterdir()] == ["failed-etcd.log"]


def test_a_used_port_is_replaced_by_another_one(tmp_path: Path) -> None:
    picked: list[Ports] = []
    binaries = programs(tmp_path / "bin", script="echo listen: address already in use; exit 1")

    def pick() -> Ports:
        picked.append(pick_ports())
        return picked[-1]

    with pytest.raises(PlaneError) as caught:
        ControlPlane.start(binaries=binaries, root=a_root(tmp_path), pick=pick)

    assert caught.value.code == "plane.port"
    assert len(set(picked)) == PORT_ATTEMPTS


def test_programs_take_no_settings_from_our_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETCD_DATA_DIR", "/elsewhere")
    binaries = programs(tmp_path / "bin", script='echo "data: ${ETCD_DATA_DIR-ours}"; exit 3')

    with pytest.raises(PlaneError) as caught:
        ControlPlane.start(binaries=binaries, root=a_root(tmp_path))

    assert caught.value.tail == ("data: ours",)
