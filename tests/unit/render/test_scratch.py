"""Directories for what must not stay, while others tidy up what was left behind."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tidegate.render.scratch import remove_leftovers, scratch_directory


def test_one_that_somebody_tidies_away_before_it_is_held_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another command may begin in that very moment: this one ended in an ExceptionGroup."""
    made, make = list[Path](), tempfile.mkdtemp

    def quickly(prefix: str, dir: Path) -> str:  # noqa: A002 - as it is called there
        path = make(prefix=prefix, dir=dir)
        made.append(Path(path))
        if len(made) == 1:
            remove_leftovers(dir)
        return path

    monkeypatch.setattr(tempfile, "mkdtemp", quickly)

    with scratch_directory() as folder:
        assert folder.is_dir()
        remove_leftovers(folder.parent)
        assert folder.is_dir()

    assert made[1:] == [folder]
    assert not folder.exists()
