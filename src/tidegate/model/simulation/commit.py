"""Commits to the repository during a simulation."""

from __future__ import annotations

import msgspec

from tidegate.model.times import Ms


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """Files that are copied over the repository, and paths that are removed from it."""

    at: Ms
    """Time since the start of the simulation."""
    files_directory: str = ""
    """Directory with the files."""
    removed_paths: tuple[str, ...] = ()
    scenario_file: str = ""
    """The scenario file that defines the commit."""
