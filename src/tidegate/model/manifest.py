"""A rendered object, and where in its unit's order it stands."""

from __future__ import annotations

import msgspec

from tidegate.model.objects import Ref
from tidegate.model.plan import PlannedUnit


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One object as Git wants it. The phase and the wave are those its dialect gives it.

    `defines`: the group and kind that a definition brings; empty for everything else.
    """

    ref: Ref
    body: bytes
    origin: str = ""
    phase: str = "sync"
    wave: int = 0
    defines: tuple[str, str] = ("", "")


class WantedUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit with everything it deploys.

    `staged`: its objects come in stages by kind, not in waves. `after`: the units it depends on.
    """

    unit: PlannedUnit
    manifests: tuple[Manifest, ...] = ()
    staged: bool = False
    after: tuple[str, ...] = ()
