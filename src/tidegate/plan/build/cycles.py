"""Topological order of steps and units, and the cycle that prevents it."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from tidegate.errors import Location, PlanError, parse_location, sanitize
from tidegate.model.plans.manifest import Manifests
from tidegate.model.plans.plan import Edge, Step
from tidegate.model.units.unit import Unit, UnitId

MAX_LOCATIONS = 4
Name = TypeVar("Name", bound=Hashable)
UnitDependencies: TypeAlias = Mapping[UnitId, Mapping[UnitId, Location | None]]
"""Dependencies by unit, with the locations that declare them."""


def sort_steps(steps: Mapping[str, Step], edges: Iterable[Edge]) -> tuple[Step, ...]:
    """Return the steps in their order, each moved back only as far as edges require.

    Edges may lead to other steps. Raises PlanError for a cycle.
    """
    inner_edges = [edge for edge in edges if edge.before in steps and edge.after in steps]
    ordered, cycle = topological_sort(steps, ((edge.before, edge.after) for edge in inner_edges))
    if cycle:
        waits = {*pairwise([*cycle, cycle[0]])}
        declared_at = (
            edge.location
            for edge in inner_edges
            if edge.location and (edge.after, edge.before) in waits
        )
        locations = [*map(parse_location, dict.fromkeys(declared_at))]
        raise _cycle_error((steps[name].unit for name in cycle), locations)
    return tuple(steps[name] for name in ordered)


def reject_cycles(dependencies: UnitDependencies) -> None:
    """Raise PlanError for units that depend on each other. All dependencies must be known."""
    _, error = _find_cycle(dependencies)
    if error is not None:
        raise error


class Cycle(NamedTuple):
    """Units that wait for each other, each for the next, and the error."""

    units: tuple[UnitId, ...]
    error: PlanError


class CycleResolution(msgspec.Struct):
    """Units without the dependencies that form cycles, and the cycles that were broken."""

    desired: list[Manifests]
    cycles: list[Cycle] = msgspec.field(default_factory=list)


def break_cycles(desired: Iterable[Manifests]) -> CycleResolution:
    """Break cycles one after another, so that all other units can be ordered."""
    resolution = CycleResolution(list(desired))
    while True:
        cycle, error = _find_cycle(
            {
                unit_manifests.unit.id: unit_dependencies(unit_manifests.unit)
                for unit_manifests in resolution.desired
            }
        )
        if error is None:
            return resolution
        resolution.cycles.append(Cycle(tuple(cycle), error))
        next_units = dict(pairwise([*cycle, cycle[0]]))
        resolution.desired = [
            _without_dependency(unit_manifests, next_units.get(unit_manifests.unit.id))
            for unit_manifests in resolution.desired
        ]


def unit_dependencies(unit: Unit) -> dict[UnitId, Location | None]:
    """Return the units that a unit depends on, with the locations that declare them."""
    return {
        dependency.unit: dependency.location
        for dependency in unit.dependencies
        if dependency.unit is not None
    }


def _without_dependency(unit_manifests: Manifests, target: UnitId | None) -> Manifests:
    if target is None:
        return unit_manifests
    remaining = tuple(
        dependency for dependency in unit_manifests.unit.dependencies if dependency.unit != target
    )
    unit = msgspec.structs.replace(unit_manifests.unit, dependencies=remaining)
    return msgspec.structs.replace(unit_manifests, unit=unit)


def _find_cycle(dependencies: UnitDependencies) -> tuple[list[UnitId], PlanError | None]:
    """Return units that wait for each other, each for the next, and the error; or [] and None."""
    pairs = ((before, name) for name, others in dependencies.items() for before in others)
    _, cycle = topological_sort(dependencies, pairs)
    if not cycle:
        return [], None
    locations = [
        dependencies[unit][dependency] for unit, dependency in pairwise([*cycle, cycle[0]])
    ]
    return cycle, _cycle_error(cycle, [location for location in locations if location is not None])


def topological_sort(
    names: Iterable[Name], pairs: Iterable[tuple[Name, Name]]
) -> tuple[list[Name], list[Name]]:
    """Return the names in order; if some are left over, also a cycle, each waiting for the next."""
    indexes = {name: index for index, name in enumerate(names)}
    successors: dict[Name, list[Name]] = {name: [] for name in indexes}
    in_degrees = dict.fromkeys(indexes, 0)
    for before, after in pairs:
        successors[before].append(after)
        in_degrees[after] += 1
    all_names = list(indexes)
    ready = [index for name, index in indexes.items() if not in_degrees[name]]
    ordered: list[Name] = []
    while ready:
        name = all_names[heapq.heappop(ready)]
        ordered.append(name)
        for after in successors[name]:
            in_degrees[after] -= 1
            if not in_degrees[after]:
                heapq.heappush(ready, indexes[after])
    blocked = [name for name, count in in_degrees.items() if count]
    return ordered, _find_cycle_among(blocked, successors) if blocked else []


def _find_cycle_among(blocked: list[Name], successors: dict[Name, list[Name]]) -> list[Name]:
    """Walk from a blocked name to the name it waits for, until one is repeated."""
    waits_for: dict[Name, Name] = {}
    for name in blocked:
        for after in successors[name]:
            waits_for.setdefault(after, name)
    seen: dict[Name, int] = {}
    current = blocked[0]
    while current not in seen:
        seen[current] = len(seen)
        current = waits_for[current]
    return list(seen)[seen[current] :]


def _cycle_error(cycle: Iterable[UnitId], locations: Sequence[Location] = ()) -> PlanError:
    units = [f"`{unit}`" for unit in dict.fromkeys(cycle)]
    unit_problem = "waits for itself" if len(units) == 1 else ""
    if unit_problem:
        problem = f"{units[0]} {unit_problem}"
    else:
        chain = sanitize(" → ".join([*units, units[0]]))
        problem = f"units wait for each other: {chain}"
    hint = "remove one of these dependencies"
    if len(locations) > 1:
        more = ", …" if len(locations) > MAX_LOCATIONS else ""
        hint += f"; the others are at {', '.join(map(str, locations[1:MAX_LOCATIONS]))}{more}"
    location = locations[0] if locations else None
    error = PlanError("plan.cycle", problem, location=location, hint=hint)
    error.unit_problem = unit_problem
    return error
