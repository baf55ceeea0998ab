"""Directories of running planes, and those of dead ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from plane.state import KEEP, claim_state


def test_a_directory_is_for_its_owner_alone(tmp_path: Path) -> None:
    state = claim_state(tmp_path, is_tied=True)

    mode = state.path.stat().st_mode & 0o777
    state.discard()
    assert mode == 0o700


def test_the_directory_of_a_dead_plane_is_deleted_by_the_next(tmp_path: Path) -> None:
    dead = tmp_path / "run-dead"
    (dead / "etcd").mkdir(parents=True)

    claim_state(tmp_path, is_tied=True).discard()

    assert not dead.exists()


def test_the_directory_of_a_live_plane_stays(tmp_path: Path) -> None:
    live = claim_state(tmp_path, is_tied=True)

    claim_state(tmp_path, is_tied=True).discard()

    stays = live.path.is_dir()
    live.discard()
    assert stays


def test_the_directory_of_a_detached_plane_stays(tmp_path: Path) -> None:
    detached = claim_state(tmp_path, is_tied=False)

    claim_state(tmp_path, is_tied=True).discard()

    assert detached.path.is_dir()


def test_discarding_again_is_fine(tmp_path: Path) -> None:
    state = claim_state(tmp_path, is_tied=True)

    state.discard()
    state.discard()

    assert not state.path.exists()


def test_a_developer_can_keep_what_a_plane_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEEP, "1")
    state = claim_state(tmp_path, is_tied=True)
    (state.path / "audit.log").touch()

    state.discard()
    claim_state(tmp_path, is_tied=False)

    assert (tmp_path / f"kept-{state.path.name}" / "audit.log").exists()
