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
from tidegate.model.release import LookupResult
from tidegate.model.unit import Unit, UnitId


class UnitLookups(msgspec.Struct, frozen=True):
    """The lookups of a unit's templates, with their results."""

    unit: Unit
    results: Mapping[str, LookupResult]
    lookup_error: RenderError | None = None
    """Why the unit cannot be rendered until a lookup finds more; None if it can."""


class LookupRecheck(msgspec.Struct):
    """Repeats the lookups of a release when it is due.

    Helm renders a chart when it releases it, and so sees what was deployed before. Each release
    is checked once.
    """

    session: Session
    current_lookups: Callable[[], Mapping[UnitId, UnitLookups]]
    """Returns the lookups of the newest plan."""
    checked: set[UnitId] = msgspec.field(default_factory=set)
    """Releases that were checked already."""

    def is_release_start(self, request: Refresh | None) -> bool:
        """Whether a release with lookups is about to start."""
        return (
            request is not None
            and request.failure is None
            and request.unit in self.current_lookups()
        )

    async def has_changed(self, unit: UnitId) -> bool:
        """Whether a lookup finds something else now; checked once for each release."""
        if unit in self.checked:
            return False
        self.checked.add(unit)
        lookups, query = self.current_lookups()[unit], ClusterLookups(self.session)
        for path, answer in lookups.results.items():
            if await query(lookups.unit, path) != answer:
                return True
        return False

    def lookup_error(self, unit: UnitId) -> str:
        """Return why a release still cannot be rendered; empty if it can."""
        lookups = self.current_lookups().get(unit)
        return (
            "" if lookups is None or lookups.lookup_error is None else lookups.lookup_error.problem
        )
