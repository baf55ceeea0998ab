"""Needs between units that no order declares: what one unit deploys and another one needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from tidegate.lint.context import LintContext, LintObject
from tidegate.lint.crd_providers import possible_crd_providers
from tidegate.lint.dependencies import DependencyIndex, dependency_index
from tidegate.lint.rule import FieldRef
from tidegate.lint.unit_positions import UnitPair, UnitPositions, unit_positions
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.operators.rows import Effect
from tidegate.model.plans.graph import NO_STEP, EdgeKind, GraphEdge, NodeKind
from tidegate.model.units.unit import UnitId

ENGINE_GROUPS = (".toolkit.fluxcd.io", "fluxcd.controlplane.io")
"""Endings of the API groups of Flux; its controllers retry what their objects refer to."""
ARGO_KINDS = frozenset({"Application", "ApplicationSet", "AppProject"})
BUILD_DATA_PATHS = {
    "Kustomization": ("spec", "postBuild", "substituteFrom"),
    "HelmRelease": ("spec", "valuesFrom"),
}
"""Fields with the ConfigMaps and Secrets that a unit needs for its build."""
STATEFUL_KINDS = frozenset({("apps", "StatefulSet")})


class Consequence(IntEnum):
    """What happens to a unit until the other unit is deployed; a higher value is worse."""

    WAITS = 1
    """An object is applied, and becomes ready only later."""
    FAILS = 2
    """A task fails when its attempts are used up."""
    REFUSED = 3
    """The unit cannot be built or applied."""


class UnitNeed(NamedTuple):
    """An object that a unit needs, and that another unit deploys."""

    pair: UnitPair
    name: str
    """The needed object as text."""
    consequence: Consequence
    at: FieldRef
    """The field that needs it."""
    dependent: LintObject | None
    """The object that needs it; None if the build of the unit does."""
    provider: FieldRef | None
    """The object that provides it, if it is known."""
    is_guess: bool = False
    """Whether only the name of a chart or repository shows that the unit provides it."""


@lru_cache(maxsize=2)
def find_unit_needs(context: LintContext) -> dict[UnitPair, list[UnitNeed]]:
    """Return the needs between units without order, by pair of units.

    If two units need each other, only the direction with the worse consequence counts.
    """
    needs: dict[UnitPair, list[UnitNeed]] = {}
    for need in (*_ObjectNeeds(context).find(), *_build_needs(context)):
        needs.setdefault(need.pair, []).append(need)
    return {
        pair: pair_needs
        for pair, pair_needs in needs.items()
        if _worst(pair_needs) > _worst(needs.get(UnitPair(pair.provider, pair.dependent), ()))
    }


def _belongs_to_engine(obj: LintObject) -> bool:
    """Return whether Argo CD or Flux defines the kind of an object."""
    return obj.ref.kind.group.endswith(ENGINE_GROUPS) or obj.is_kind("argoproj.io", *ARGO_KINDS)


def _worst(needs: Iterable[UnitNeed]) -> int:
    return max((need.consequence for need in needs), default=0)


class _ObjectNeeds:
    """Search for the needs of objects."""

    def __init__(self, context: LintContext) -> None:
        self.context = context
        self.index: DependencyIndex = dependency_index(context)
        self.positions: UnitPositions = unit_positions(context)
        self._providers_by_kind: dict[tuple[str, str, str], list[UnitId]] = {}

    def find(self) -> Iterator[UnitNeed]:
        for edges in self.index.met_requirements:
            obj = self.index.objects.get(edges[0].after)
            if obj is None or _belongs_to_engine(obj):
                continue
            if edges[0].kind is EdgeKind.DEFINITION and self.context.is_in_helmfile(obj.ref.kind):
                continue
            consequence = self._consequence(edges[0])
            if self.index.graph.nodes[edges[0].before].kind is NodeKind.EXTERNAL:
                if edges[0].kind is EdgeKind.DEFINITION:
                    yield from self._unknown_definition(obj, edges[0])
            elif consequence is Consequence.WAITS and not self.context.has_check(
                obj.unit, obj.body
            ):
                continue  # no gate sees that it is not ready, and it recovers by itself
            elif consequence is not None:
                yield from self._known_provider(obj, edges, consequence)

    def _consequence(self, edge: GraphEdge) -> Consequence | None:
        """Return what happens without the dependency; None for a pod that calls again."""
        if edge.kind in {EdgeKind.NAMESPACE, EdgeKind.DEFINITION}:
            return Consequence.REFUSED
        if edge.effect is Effect.FAILS:
            return Consequence.FAILS
        if edge.kind is EdgeKind.HOST:
            return Consequence.WAITS if self._is_stateful(edge) else None
        return Consequence.WAITS

    def _is_stateful(self, edge: GraphEdge) -> bool:
        """Return whether a called Service belongs to a database or another stateful workload."""
        if edge.required_object is not None:
            return True  # an operator creates the Service
        nodes = self.index.backing_nodes(edge)
        return any(
            node.ref is not None and (node.ref.kind.group, node.ref.kind.name) in STATEFUL_KINDS
            for node in nodes
        )

    def _known_provider(
        self, obj: LintObject, edges: list[GraphEdge], consequence: Consequence
    ) -> Iterator[UnitNeed]:
        """Yield the need if all of its providers are in other units, without order."""
        providers: list[LintObject] = []
        for edge in edges:
            provider = self.index.objects.get(edge.before)
            if provider is None or self._is_ordered(obj, edge, provider):
                return
            providers.append(provider)
        pair = self.positions.pair(obj.unit.id, providers[0].unit.id)
        if pair is not None:
            yield UnitNeed(
                pair,
                self.index.requirement_name(edges[0]),
                consequence,
                FieldRef(obj.document, edges[0].field),
                obj,
                FieldRef(providers[0].document),
            )

    def _is_ordered(self, obj: LintObject, edge: GraphEdge, provider: LintObject) -> bool:
        """Return whether an object and its provider are in one unit, or are ordered.

        Other rules report the wrong order.
        """
        graph, order = self.index.graph, self.context.order
        step, provider_step = graph.nodes[edge.after].step, graph.nodes[edge.before].step
        if provider.unit.id == obj.unit.id or NO_STEP in {step, provider_step}:
            return True
        step_id, provider_id = graph.steps[step].id, graph.steps[provider_step].id
        is_declared = self.positions.is_ordered(obj.unit.id, provider.unit.id)
        return (
            is_declared
            or order.is_after(step_id, provider_id)
            or order.is_after(provider_id, step_id)
        )

    def _unknown_definition(self, obj: LintObject, edge: GraphEdge) -> Iterator[UnitNeed]:
        """Yield the need of a CRD that no rendered unit has, if an operator or a name shows it."""
        operators = [
            provider
            for at in self.index.graph.dependency_edges[edge.after]
            if self.index.graph.edges[at].kind is EdgeKind.OPERATOR
            and (provider := self.index.objects.get(self.index.graph.edges[at].before))
        ]
        units = {provider.unit.id: FieldRef(provider.document) for provider in operators}
        candidates: list[tuple[UnitId, FieldRef | None]] = [
            *units.items(),
            *((unit, None) for unit in self._units_by_name(obj)),
        ]
        if not candidates or any(self._is_unit_before(obj, unit) for unit, _ in candidates):
            return
        if any(unit.name in self.context.helmfile_charts for unit, _ in candidates):
            return
        unit, target = candidates[0]
        pair = self.positions.pair(obj.unit.id, unit)
        if pair is not None:
            yield UnitNeed(
                pair,
                f"the CRD of {obj.ref.kind.name}",
                Consequence.REFUSED,
                FieldRef(obj.document, ("kind",)),
                obj,
                target,
                is_guess=target is None,
            )

    def _is_unit_before(self, obj: LintObject, unit: UnitId) -> bool:
        """Return whether an object is part of a unit, or deployed after it."""
        if unit in self.positions.ancestors(obj.unit.id) or obj.unit.id in self.positions.ancestors(
            unit
        ):
            return True
        return self.positions.is_ordered(obj.unit.id, unit)

    def _units_by_name(self, obj: LintObject) -> list[UnitId]:
        """Return the incomplete units whose charts or repositories have the name of an operator."""
        kind = obj.ref.kind
        key = (obj.unit.destination.cluster, kind.group, kind.name)
        if key not in self._providers_by_kind:
            self._providers_by_kind[key] = possible_crd_providers(self.context, key[0], kind)
        return self._providers_by_kind[key]


def _build_needs(context: LintContext) -> Iterator[UnitNeed]:
    """Yield the variables and values of units that other units deploy."""
    positions = unit_positions(context)
    for unit, unit_resource in context.unit_resources.items():
        if unit not in context.units:
            continue
        path = BUILD_DATA_PATHS.get(unit.kind, ())
        for at, entry in enumerate(get_mappings(unit_resource.body, *path)):
            kind, name = get_text(entry, "kind"), get_text(entry, "name")
            providers = [
                lint_object
                for lint_object in context.objects_of_kind("", kind)
                if (lint_object.ref.namespace, lint_object.ref.name) == (unit.namespace, name)
            ]
            if entry.get("optional") or not providers:
                continue
            if any(_is_built_after(context, unit, provider) for provider in providers):
                continue
            pair = positions.pair(unit, providers[0].unit.id)
            if pair is not None:
                yield UnitNeed(
                    pair,
                    f"{kind} `{unit.namespace}/{name}`",
                    Consequence.REFUSED,
                    FieldRef(unit_resource, (*path, at)),
                    None,
                    FieldRef(providers[0].document),
                )


def _is_built_after(context: LintContext, unit: UnitId, provider: LintObject) -> bool:
    """Return whether a unit is built after an object is deployed, or another rule reports it."""
    steps, step = context.order.by_unit.get(unit, ()), context.step_for(provider)
    if step is None or not steps or unit_positions(context).is_ordered(unit, provider.unit.id):
        return True
    is_before = any(context.order.is_after(unit_step.id, step.id) for unit_step in steps)
    return is_before or any(context.order.is_after(step.id, unit_step.id) for unit_step in steps)
