"""What comes into a repository while it is simulated."""

from __future__ import annotations

import msgspec

from tidegate.model.moment import Ms


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """Files that are laid over the repository, and paths that leave it.

    `at` counts from the start of the simulation. `files` is a directory, `where` the file that
    says so.
    """

    at: Ms
    files: str = ""
    removes: tuple[str, ...] = ()
    where: str = ""
