"""What the engine is handed: judgement of bodies that other parts know how to make."""

from __future__ import annotations

from typing import Protocol

from tidegate.engine.vocabulary import Compared
from tidegate.model.moment import Ms
from tidegate.model.objects import Json
from tidegate.model.plan import Item, PlannedUnit
from tidegate.model.verdict import Verdict
from tidegate.schema.fit import Misfit

Body = dict[str, Json]


class Means(Protocol):
    """Pure questions about one object."""

    def judge(self, unit: PlannedUnit, body: Body, now: Ms) -> Verdict:
        """How it is, by the rules of its unit."""
        ...

    def stand(self, unit: PlannedUnit, item: Item, live: Body | None, seal: str) -> Compared:
        """How it stands against what lives; `seal` is of the write that brought this very text."""
        ...

    def misfit(self, item: Item, definition: bytes) -> Misfit | None:
        """What is wrong with its text, by the schema of its kind; None: nobody here knows it.

        `definition` is the CRD of its kind, where there is one.
        """
        ...

    def seal(self, unit: PlannedUnit, live: Body) -> str:
        """A name for everything in it that we own."""
        ...

    def adopt(self, unit: PlannedUnit, live: Body) -> bytes | None:
        """The patch that makes fields of earlier appliers ours, where there are any."""
        ...
