"""Dependency index of a lint context: requirements of objects, and those that are never met."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache

import msgspec
from msgspec.structs import replace

from tidegate.lint.context import LintContext, LintObject, Reachability
from tidegate.lint.names import object_name
from tidegate.model.operators.rows import Effect, RequiredState
from tidegate.model.plans.graph import (
    NO_STEP,
    EdgeKind,
    Graph,
    GraphEdge,
    GraphNode,
    GraphStep,
    NodeKind,
)


class UnmetRequirement(msgspec.Struct, frozen=True):
    """A requirement of an object that is not met in time."""

    dependent: LintObject
    edge: GraphEdge
    """The edge with the requirement."""
    provider: LintObject | None
    requirement: str
    """Name of the required object, as text."""
    chain: tuple[str, ...] = ()
    """The links between the requirement and the end of the step, as sentences."""
    depends_on_timing: bool = False
    """Whether the requirement is met if the dependent counts as ready before it is observed."""


class DependencyIndex:
    """Dependencies of a lint context, built once and shared by the rules."""

    def __init__(self, context: LintContext) -> None:
        self.context = context
        self._gated = {step.number: step.is_gated for step in context.graph.steps}

    @property
    def graph(self) -> Graph:
        return self.context.graph

    @cached_property
    def objects(self) -> dict[int, LintObject]:
        """The objects by graph node."""
        phases = {step.number: step.phase for step in self.graph.steps}
        by_phase = {
            (
                lint_object.unit.id,
                lint_object.identity,
                lint_object.manifest.phase.value,
            ): lint_object
            for lint_object in self.context.objects
        }
        by_identity = {
            (lint_object.unit.id, lint_object.identity): lint_object
            for lint_object in self.context.objects
        }
        objects: dict[int, LintObject] = {}
        for node in self.graph.nodes:
            if node.kind is not NodeKind.OBJECT or node.unit is None or node.key is None:
                continue
            phase = phases.get(node.step, "sync")
            obj = by_phase.get((node.unit, node.key, phase)) or by_identity.get(
                (node.unit, node.key)
            )
            if obj is not None:
                objects[node.number] = obj
        return objects

    def is_awaited(self, node: GraphNode) -> bool:
        """Return whether later steps wait until the object is ready."""
        return node.is_gating and node.has_health_check

    @cached_property
    def requirements(self) -> dict[int, list[GraphEdge]]:
        """The edges of each mandatory requirement; one of its providers is enough."""
        requirements: dict[int, list[GraphEdge]] = {}
        for edge in self.graph.edges:
            if is_required(edge):
                requirements.setdefault(edge.alternative, []).append(edge)
        return requirements

    @cached_property
    def deadlocks(self) -> list[UnmetRequirement]:
        """Objects that wait for an object of a later step; each once.

        Those that would only be reached after another deadlock is resolved are among them.
        """
        by_objects: dict[tuple[int, int], UnmetRequirement] = {}
        for unmet in self._deadlocks.values():
            by_objects.setdefault((unmet.edge.after, id(unmet.provider)), unmet)
        return [*by_objects.values()]

    @cached_property
    def _deadlocks(self) -> dict[int, UnmetRequirement]:
        """The deadlocks by requirement; those that depend on timing are last."""
        strict = self.context.strict_reachability
        deadlocks = self._find_deadlocks(self.context.reachability)
        for requirement, unmet in self._find_deadlocks(strict).items() if strict else ():
            deadlocks.setdefault(requirement, replace(unmet, depends_on_timing=True))
        return deadlocks

    @cached_property
    def _resolved_reachability(self) -> Reachability:
        """Reachability if all deadlocks are resolved, independently of timing."""
        reachability = self.context.strict_reachability or self.context.reachability
        return reachability.with_met(self._deadlocks)

    def _is_met_later(self, requirement: int) -> bool:
        """Return whether a requirement is no deadlock and met in the end, whatever the timing."""
        return requirement not in self._deadlocks and self._resolved_reachability.is_met(
            requirement
        )

    def _find_deadlocks(self, reachability: Reachability) -> dict[int, UnmetRequirement]:
        """Return the deadlocks by requirement, also those that another deadlock hides."""
        all_deadlocks: dict[int, UnmetRequirement] = {}
        while deadlocks := dict(self._first_deadlocks(reachability)):
            all_deadlocks.update(deadlocks)
            reachability = reachability.with_met(deadlocks)
        return all_deadlocks

    def _first_deadlocks(
        self, reachability: Reachability
    ) -> Iterator[tuple[int, UnmetRequirement]]:
        """Yield the deadlocks in steps that start, each with the number of its requirement."""
        for requirement, edges in self.requirements.items():
            node = self.graph.nodes[edges[0].after]
            obj = self.objects.get(node.number)
            if reachability.is_met(requirement) or obj is None or node.step == NO_STEP:
                continue
            if not reachability.step_starts(node.step) or not self._blocks_step(node, edges[0]):
                continue
            chain = reachability.wait_chain(requirement, node.step)
            if chain is not None:
                edge = self.graph.edges[chain.edge]
                name, provider = self.requirement_name(edge), self._provider(edge)
                yield requirement, UnmetRequirement(obj, edge, provider, name, chain.links)

    def _blocks_step(self, node: GraphNode, edge: GraphEdge) -> bool:
        """Return whether the step of the object cannot finish without the requirement."""
        return edge.effect is Effect.REJECTED or (
            self._gated.get(node.step, False) and self.is_awaited(node)
        )

    def _provider(self, edge: GraphEdge) -> LintObject | None:
        return self.objects.get(edge.before)

    def requirement_name(self, edge: GraphEdge) -> str:
        """Return the name of the required object as text."""
        if edge.required_object is not None:
            return object_name(edge.required_object)
        node = self.graph.nodes[edge.before]
        return object_name(node.ref) if node.ref is not None else f"`{node.name}`"

    @cached_property
    def _references(self) -> dict[int, list[GraphEdge]]:
        """The edges of each reference, including those that the object is healthy without."""
        references: dict[int, list[GraphEdge]] = {}
        for edge in self.graph.edges:
            if is_required(edge) or (edge.kind is EdgeKind.REFERENCE and not edge.is_optional):
                references.setdefault(edge.alternative, []).append(edge)
        return references

    @cached_property
    def inversions(self) -> list[UnmetRequirement]:
        """Objects that are applied before their dependency and recover; each requirement once."""
        order = self.context.order
        inversions: list[UnmetRequirement] = []
        for requirement, edges in self._references.items():
            node = self.graph.nodes[edges[0].after]
            obj = self.objects.get(node.number)
            if obj is None or not self._is_met_later(requirement):
                continue
            providers = [(edge, self._provider(edge)) for edge in edges]
            steps = self.graph.steps
            if node.step == NO_STEP or edges[0].effect is Effect.REJECTED:
                continue
            earlier = steps[node.step]
            edges_after = [
                edge
                for edge, provider in providers
                if provider is not None
                and (provider_step := self.graph.nodes[edge.before].step) != NO_STEP
                and order.is_after(steps[provider_step].id, earlier.id)
                and not _is_same_step(steps[provider_step], earlier)
            ]
            if len(edges_after) == len(edges):
                edge = edges_after[0]
                inversions.append(
                    UnmetRequirement(obj, edge, self._provider(edge), self.requirement_name(edge))
                )
        return inversions

    @cached_property
    def races(self) -> list[UnmetRequirement]:
        """Tasks that fail until an unordered dependency is ready."""
        steps = self.graph.steps
        result: list[UnmetRequirement] = []
        for edges in self.met_requirements:
            first = edges[0]
            node = self.graph.nodes[first.after]
            obj = self.objects.get(node.number)
            if first.effect is not Effect.FAILS or obj is None or node.step == NO_STEP:
                continue
            dependent_step = steps[node.step].id
            providers = [
                (edge, node_before) for edge in edges for node_before in self.backing_nodes(edge)
            ]
            unordered = [
                (edge, node_before)
                for edge, node_before in providers
                if node_before.step != NO_STEP
                and not self._is_ready_before(
                    steps[node_before.step].id, dependent_step, node_before
                )
            ]
            if unordered and len(unordered) == len(providers):
                edge, node_before = unordered[0]
                provider = self.objects.get(node_before.number)
                result.append(UnmetRequirement(obj, edge, provider, self.requirement_name(edge)))
        return result

    @property
    def met_requirements(self) -> Iterator[list[GraphEdge]]:
        """The edges of each mandatory requirement that is met in the end, whatever the timing."""
        return (
            edges
            for requirement, edges in self.requirements.items()
            if self._is_met_later(requirement)
        )

    def _is_ready_before(self, earlier: str, later: str, provider: GraphNode) -> bool:
        """Return whether one step is ready before the other starts."""
        is_before = self.context.order.is_after(later, earlier)
        return is_before and self._gated.get(provider.step, False) and self.is_awaited(provider)

    def backing_nodes(self, edge: GraphEdge) -> list[GraphNode]:
        """Return the nodes that must be ready for the requirement; for a Service, its workloads."""
        node = self.graph.nodes[edge.before]
        workloads = [
            self.graph.nodes[self.graph.edges[at].before]
            for at in self.graph.dependency_edges[edge.before]
            if self.graph.edges[at].kind is EdgeKind.SELECTOR
        ]
        return workloads or [node]


def _is_same_step(later: GraphStep, earlier: GraphStep) -> bool:
    """Return whether users see two steps as one wave; its units are deployed before its objects."""
    return (later.unit, later.phase, later.wave, later.stage) == (
        earlier.unit,
        earlier.phase,
        earlier.wave,
        earlier.stage,
    )


def is_required(edge: GraphEdge) -> bool:
    """Return whether an object cannot work without the requirement of an edge."""
    is_between_units = edge.kind in {EdgeKind.PARENT, EdgeKind.DEPENDS_ON, EdgeKind.SELECTOR}
    has_no_effect = edge.is_optional or edge.must_be_absent or edge.effect is Effect.NONE
    return edge.is_enforced and not is_between_units and not has_no_effect


def needs_ready(edge: GraphEdge) -> bool:
    """Return whether the provider must be ready, not only exist."""
    return edge.required_object is not None or edge.required_state is not RequiredState.EXISTS


@lru_cache(maxsize=2)
def dependency_index(context: LintContext) -> DependencyIndex:
    """Return the dependency index of a context; consecutive rules share it."""
    return DependencyIndex(context)
