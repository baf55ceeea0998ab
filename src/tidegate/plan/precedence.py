"""What comes before what, said of units, objects and steps, becomes edges between steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.model.objects import Spot
from tidegate.model.plan import Edge, End, Precedence, Step, items_of
from tidegate.model.unit import UnitId


def make_edges(told: Iterable[Precedence], chains: Mapping[UnitId, list[Step]]) -> list[Edge]:
    """Edges between the steps of these units; steps by their ids may be elsewhere."""
    told = list(told)
    ends = _Ends(chains, told)
    return [
        Edge(before, after, one.because, one.strength, one.where)
        for one in told
        for after in ends.begin(one.after)
        for before in ends.done(one.before)
        if before != after
    ]


class _Ends:
    """Where units and objects begin, and where they are done."""

    def __init__(self, chains: Mapping[UnitId, list[Step]], told: list[Precedence]) -> None:
        self._chains = {
            name: [step.id for step in chain if not step.rescues] for name, chain in chains.items()
        }
        wanted = {end for one in told for end in (one.before, one.after) if isinstance(end, Spot)}
        self._steps: dict[Spot, list[str]] = {spot: [] for spot in wanted}
        steps = (step for chain in chains.values() for step in chain) if wanted else ()
        for step in steps:
            for spot in {Spot(step.cluster, item.ref) for item in items_of(step)} & wanted:
                self._steps[spot].append(step.id)
        self._behind: dict[UnitId, list[End]] = {}
        for one in told:
            if isinstance(one.after, UnitId):
                self._behind.setdefault(one.after, []).append(one.before)

    def begin(self, end: End) -> list[str]:
        match end:
            case UnitId():
                return self._chains.get(end, [])[:1]
            case Spot():
                return self._steps[end]
            case _:
                return [end]

    def done(self, end: End) -> list[str]:
        """A unit without objects is done when those are that it waits for."""
        found: dict[str, None] = {}
        seen: set[End] = set()
        pending = [end]
        while pending:
            one = pending.pop()
            if one in seen:
                continue
            seen.add(one)
            last = self._chains.get(one, [])[-1:] if isinstance(one, UnitId) else self.begin(one)
            found |= dict.fromkeys(last)
            if not last and isinstance(one, UnitId):
                pending += reversed(self._behind.get(one, []))
        return list(found)
