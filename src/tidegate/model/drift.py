"""What others did to an object behind a rollout, and what became of it."""

from __future__ import annotations

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import Ref
from tidegate.model.unit import UnitId


class ObjectDrift(msgspec.Struct, frozen=True, gc=False):
    """What others have changed of an object: in words, and how many fields it takes to mend it.

    `is_gone`: they have deleted it.
    """

    sentence: str
    is_gone: bool = False
    added: int = 0
    changed: int = 0
    removed: int = 0


class Drift(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An object of a unit that is no longer as Git has it.

    `at`: since when, by the world's clock. `healed`: when it was as wanted again; None: it stays,
    and `stays` says why. `attempts`: how often it was put back until then.
    """

    unit: UnitId
    ref: Ref
    at: Ms
    sentence: str
    cluster: str = ""
    healed: Ms | None = None
    stays: str = ""
    attempts: int = 0
