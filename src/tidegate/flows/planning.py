"""Units become a plan: rendered for their clusters, read by their dialects, put in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tidegate.dialect.manifests import read_manifests
from tidegate.dialect.units import find_units
from tidegate.documents import Document
from tidegate.errors import DialectError, PlanError, RenderError, TidegateError
from tidegate.flows.render import render_all
from tidegate.flows.rendering import Rendered, Unrendered
from tidegate.flows.rendering.outcome import notes_of
from tidegate.flows.session import Session
from tidegate.flows.sharing import refuse_shared
from tidegate.health.budget import budget
from tidegate.model.manifest import Manifests
from tidegate.model.objects import Kind, Served
from tidegate.model.plan import Plan
from tidegate.model.reading import text
from tidegate.model.unit import Unit
from tidegate.plan.build import build_plan
from tidegate.plan.selection import select

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Read:
    """What a unit deploys, and what it was rendered to."""

    manifests: Manifests
    rendered: Rendered

    @property
    def notes(self) -> tuple[TidegateError, ...]:
        """What is not certain; that there is nothing at all is rarely meant."""
        notes = (*notes_of(self.rendered), *self._brought())
        if self.rendered.documents or notes:
            return notes
        unit = self.manifests.unit
        problem = f"`{unit.sources[0].source}` has no objects"
        hint = "look whether it is the right directory"
        return (RenderError("render.nothing", problem, hint=hint),)

    def _brought(self) -> Iterator[TidegateError]:
        """That units are among the objects: what these bring is not planned."""
        unit = self.manifests.unit
        found = find_units(self.rendered.documents, unit.destination.namespace)
        if found:
            names = ", ".join(str(one.id) for one in found[:MOST_NAMED])
            more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
            problem = f"what these units deploy is not planned: {names}{more}"
            hint = "point at the directory, chart or overlay of each"
            yield DialectError("dialect.units", problem, where=found[0].where, hint=hint)


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and what it was made of."""

    plan: Plan
    read: tuple[Read, ...]

    @property
    def notes(self) -> tuple[TidegateError, ...]:
        return tuple(dict.fromkeys(note for one in self.read for note in one.notes))

    @property
    def rendered(self) -> Rendered:
        return Rendered.together(one.rendered for one in self.read)


async def make_plan(
    units: Sequence[Unit], session: Session, resources: tuple[str, ...] = ()
) -> Planned:
    """The plan of these units, and of that only the resources that are named.

    What is a unit's and not in the plan goes when it prunes, so that the plan must be all of it.
    """
    if resources and any(unit.policy.prunes for unit in units):
        problem = "only a whole unit can be pruned, and this is a part of one"
        raise PlanError("plan.part", problem, hint="`--prune` does not go with `--resource`")
    read = await read_units(units, session)
    for one in read:
        _refuse_empty(one.manifests)
    plan = build_plan([one.manifests for one in read], budget=budget)
    if resources:
        plan = select(plan, resources)
    await refuse_shared(plan, session)
    return Planned(plan, read)


def _refuse_empty(wanted: Manifests) -> None:
    """Raise where pruning would take all of a unit away because nothing is left of it."""
    unit = wanted.unit
    if unit.policy.prunes and not unit.policy.allows_empty and not wanted.manifests:
        problem = f"`{unit.id}` has no objects, and pruning would delete all that it has brought"
        hint = "look whether it is the right directory; `--allow-empty` goes on"
        raise PlanError("plan.empty", problem, where=unit.where, hint=hint)


async def read_units(units: Iterable[Unit], session: Session) -> tuple[Read, ...]:
    """Render units for their clusters and read what they ask for. Raises what is wrong."""
    wanted = [(one, await session.capabilities(one.destination.cluster)) for one in units]
    results = await render_all(wanted, session.setting)
    errors = [one for result in results if isinstance(result, Unrendered) for one in result.errors]
    if errors:
        raise ExceptionGroup("not rendered", errors)
    read = []
    for (unit, _), rendered in zip(wanted, results, strict=True):
        if isinstance(rendered, Rendered):
            kinds = await session.kinds(unit.destination.cluster)
            is_namespaced = _scope_of(kinds, rendered.documents)
            manifests = read_manifests(unit, rendered.documents, is_namespaced)
            read.append(Read(manifests, rendered))
    return tuple(read)


def _scope_of(served: Iterable[Served], documents: Iterable[Document]) -> Callable[[Kind], bool]:
    """Whether a kind has namespaces, by the cluster and by what the documents define."""
    outside = _cluster_wide(served, documents)
    return lambda kind: (kind.group, kind.name) not in outside


def _cluster_wide(served: Iterable[Served], documents: Iterable[Document]) -> set[tuple[str, str]]:
    """Kinds without namespaces: the cluster's, and those that the documents define."""
    found = {(one.kind.group, one.kind.name) for one in served if not one.namespaced}
    for document in documents:
        body = document.body
        kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
        if kind.name == "CustomResourceDefinition" and text(body, "spec", "scope") == "Cluster":
            found.add((text(body, "spec", "group"), text(body, "spec", "names", "kind")))
    return found
