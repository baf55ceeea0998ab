"""What templates have looked up, asked again when the turn of their release comes.

planned ──▶ its turn: is it still as it was found? ──▶ if not, everything is planned anew

Helm renders a chart when it releases it, and so sees what came before it. Each release is asked for
once: what is planned then is what it comes to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from tidegate.engine.vocabulary import Refresh
from tidegate.errors import RenderError
from tidegate.flows.cluster_lookups import ClusterLookups
from tidegate.flows.session import Session
from tidegate.model.release import LookedUp
from tidegate.model.unit import Unit, UnitId


class SoughtObjects(msgspec.Struct, frozen=True):
    """What a unit's templates asked a cluster for, and what they were answered.

    `unmet`: why nothing is known of it before it is answered more.
    """

    unit: Unit
    answers: Mapping[str, LookedUp]
    unmet: RenderError | None = None


class LateLookups(msgspec.Struct):
    """The lookups of a rollout. `sought` tells those of the newest plan."""

    session: Session
    sought: Callable[[], Mapping[UnitId, SoughtObjects]]
    settled: set[UnitId] = msgspec.field(default_factory=set)
    """Releases whose turn has come before."""

    def is_first(self, wanted: Refresh | None) -> bool:
        """Whether a release is about to begin whose templates look something up."""
        return wanted is not None and wanted.failure is None and wanted.unit in self.sought()

    async def have_changed(self, unit: UnitId) -> bool:
        """Whether something is found by now that was not, or is another; it is asked once."""
        if unit in self.settled:
            return False
        self.settled.add(unit)
        sought, ask = self.sought()[unit], ClusterLookups(self.session)
        for path, answer in sought.answers.items():
            if await ask(sought.unit, path) != answer:
                return True
        return False

    def unmet(self, unit: UnitId) -> str:
        """Why it cannot be rendered, still."""
        sought = self.sought().get(unit)
        return "" if sought is None or sought.unmet is None else sought.unmet.problem
