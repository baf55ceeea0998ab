"""Scratch directories, while other processes remove leftovers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tidegate.render.scratch import remove_leftovers, scratch_directory


def test_a_directory_that_is_removed_before_it_is_locked_is_created_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another command may begin in that very moment: this one ended in an ExceptionGroup."""
    created, make = list[Path](), tempfile.mkdtemp

    def quickly(prefix: str, dir: Path) -> str:  # noqa: A002 - as it is called there
        path = make(prefix=prefix, dir=dir)
        created.append(Path(path))
        if len(created) == 1:
            remove_leftovers(dir)
        return path

    monkeypatch.setattr(tempfile, "mkdtemp", quickly)

    with scratch_directory() as folder:
        assert folder.is_dir()
        remove_leftovers(folder.parent)
        assert folder.is_dir()

    assert created[1:] == [folder]
    assert not folder.exists()
