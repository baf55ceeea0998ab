"""Build a graph from units, their manifests, a plan and kind rows.

There are two passes over the objects: first the providers, then the requirements. Their cost is
linear in objects and references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from tidegate.errors import Location
from tidegate.graph.declared import find_parse_problems, honors_annotations, may_declare_order
from tidegate.graph.inputs import GraphInputs
from tidegate.graph.positions import StepIndex, parse_origin
from tidegate.graph.providers import Provider, ProviderIndex
from tidegate.graph.requirements import Requirement, find_change_rule_pairs, find_requirements
from tidegate.graph.selectors import find_services_without_pods
from tidegate.knowledge.named_objects import PodTemplate
from tidegate.model.k8s.json_fields import object_kind
from tidegate.model.k8s.objects import JsonObject, Kind, Ref, versionless_key
from tidegate.model.operators.rows import Effect, RequiredState
from tidegate.model.plans.graph import (
    NO_STEP,
    EdgeKind,
    Graph,
    GraphEdge,
    GraphNode,
    GraphStep,
    HealthCoverage,
    NodeKind,
    UnparsedAnnotation,
)
from tidegate.model.plans.manifest import Manifest, Manifests
from tidegate.model.plans.plan import ItemAction, Plan
from tidegate.model.units.unit import Strength, Unit, UnitId


def build_graph(
    desired: Iterable[Manifests],
    plan: Plan,
    inputs: GraphInputs,
    *,
    incomplete_units: Iterable[UnitId] = (),
    lookup_coverage: CoverageLookup | None = None,
    unit_resources: Mapping[UnitId, JsonObject] = MappingProxyType({}),
) -> Graph:
    """Return the graph of units, in the order of the plan.

    The plan may be partial: objects that are in none of its steps are in no step of the graph.
    Without `lookup_coverage`, every kind is assumed to have a health check. `unit_resources` are
    those that no unit of the repository contains; their references are requirements of their units.
    """
    builder = _GraphBuilder(inputs, tuple(desired), plan, lookup_coverage)
    builder.add_nodes()
    builder.connect_units()
    builder.connect_objects()
    builder.connect_unit_resources(unit_resources)
    all_incomplete = tuple(dict.fromkeys((*incomplete_units, *builder.unknown_units)))
    return Graph(
        nodes=tuple(builder.nodes),
        steps=builder.build_steps(),
        order=plan.edges,
        edges=tuple(builder.edges),
        incomplete_units=all_incomplete,
        unparsed_annotations=tuple(builder.unparsed_annotations),
        services_without_endpoints=frozenset()
        if all_incomplete
        else builder.services_without_pods(),
    )


MAX_ALTERNATIVES = 8
CoverageLookup = Callable[[Unit, JsonObject], HealthCoverage]
"""Returns the health rules of a unit for the kind of this body."""


class _GraphObject(NamedTuple):
    """An object, for the second pass."""

    number: int
    unit: Unit
    manifest: Manifest
    body: JsonObject
    pods: PodTemplate | None


class _GraphBuilder:
    """State of a graph under construction."""

    def __init__(
        self,
        inputs: GraphInputs,
        desired: Sequence[Manifests],
        plan: Plan,
        lookup_coverage: CoverageLookup | None,
    ) -> None:
        self.nodes: list[GraphNode] = []
        self.edges: list[GraphEdge] = []
        self.unparsed_annotations: list[UnparsedAnnotation] = []
        self.unknown_units: list[UnitId] = [
            unit_manifests.unit.id
            for unit_manifests in desired
            if not unit_manifests.has_known_objects
        ]
        self._inputs = inputs
        self._desired = desired
        self._plan = plan
        self._provider_index = ProviderIndex(inputs)
        self._lookup_coverage = lookup_coverage
        self._coverage: dict[tuple[str, str, str, str], HealthCoverage] = {}
        self._step_index = StepIndex(plan)
        self._objects: list[_GraphObject] = []
        self._units: dict[UnitId, int] = {}
        self._external: dict[tuple[str, ...], int] = {}
        self._next_alternative = 0

    def add_nodes(self) -> None:
        """Add a node for each unit and object, and index all providers."""
        unit_kinds = {kind: group for group, kind in self._inputs.engine_kinds}
        for unit_manifests in self._desired:
            unit = unit_manifests.unit
            self._units[unit.id] = self._add_unit(unit)
            for manifest in unit_manifests.manifests:
                self._add_object(unit, manifest)
        for name, number in self._units.items():
            if name.kind in unit_kinds:
                kind = (unit_kinds[name.kind], name.kind)
                self._provider_index.add_unit(number, name.cluster, kind, name.namespace, name.name)

    def _add_unit(self, unit: Unit) -> int:
        number = len(self.nodes)
        self.nodes.append(
            GraphNode(
                number=number,
                kind=NodeKind.UNIT,
                name=str(unit.id),
                cluster=unit.destination.cluster,
                unit=unit.id,
                location=unit.location,
            )
        )
        return number

    def _add_object(self, unit: Unit, manifest: Manifest) -> None:
        number, ref = len(self.nodes), manifest.ref
        body: JsonObject = msgspec.json.decode(manifest.body)
        pods = self._inputs.references.find_pod_template(body, ref.kind)
        step, gates = self._step_index.find(unit, manifest)
        coverage = self._health_coverage(unit, ref.kind, body)
        self.nodes.append(
            GraphNode(
                number=number,
                kind=NodeKind.OBJECT,
                name=str(ref),
                cluster=unit.destination.cluster,
                unit=unit.id,
                ref=ref,
                step=step,
                location=parse_origin(manifest.origin) or unit.location,
                is_gating=gates,
                has_health_check=coverage.has_health_check,
                ready_without_status=coverage.ready_without_status,
                is_hook=manifest.hook_policies is not None,
                is_task=pods is not None and pods.row.is_task and not pods.row.later,
            )
        )
        self._objects.append(_GraphObject(number, unit, manifest, body, pods))
        if manifest.action is not ItemAction.DELETE:
            self._provider_index.add_object(number, unit.destination.cluster, ref.kind, body, pods)

    def _health_coverage(self, unit: Unit, kind: Kind, body: JsonObject) -> HealthCoverage:
        """Return the health coverage of a kind, looked up once for each kind and set of rules."""
        if self._lookup_coverage is None:
            return HealthCoverage()
        key = (unit.policy.rules, unit.policy.semantics.name, kind.group, kind.name)
        if key not in self._coverage:
            self._coverage[key] = self._lookup_coverage(unit, body)
        return self._coverage[key]

    def connect_units(self) -> None:
        """Add edges for parents and for declared dependencies of units."""
        for unit in (unit_manifests.unit for unit_manifests in self._desired):
            after, location = self._units[unit.id], unit.location
            if unit.parent in self._units:
                before = self._units[unit.parent]
                self._connect(
                    before,
                    after,
                    EdgeKind.PARENT,
                    Strength.HARD,
                    location,
                    required_state=RequiredState.EXISTS,
                )
            for dependency in unit.dependencies:
                if dependency.unit is not None:
                    self._connect_dependency(dependency.unit, unit, after, dependency.location)
                elif dependency.ref is not None:
                    cluster = unit.destination.cluster
                    providers = self._provider_index.find(cluster, *versionless_key(dependency.ref))
                    self._add_requirement(
                        _Dependent(after, unit, dependency.location or location),
                        Requirement(
                            dependency.ref,
                            EdgeKind.DEPENDS_ON,
                            required_state=RequiredState.READY,
                            strength=Strength.HARD,
                        ),
                        providers,
                    )

    def _connect_dependency(
        self, name: UnitId, unit: Unit, after: int, location: Location | None
    ) -> None:
        if name in self._units:
            before = self._units[name]
        else:
            key = ("unit", str(name))
            before = self._external_node(key, str(name), unit.id.cluster, None, name)
        self._connect(
            before,
            after,
            EdgeKind.DEPENDS_ON,
            Strength.HARD,
            location,
            required_state=RequiredState.READY,
        )

    def connect_objects(self) -> None:
        """Add edges for the requirements of each object."""
        for graph_object in self._objects:
            node, ref = self.nodes[graph_object.number], graph_object.manifest.ref
            dependent = _Dependent(graph_object.number, graph_object.unit, node.location)
            requirements = find_requirements(
                ref,
                graph_object.body,
                graph_object.pods,
                node.cluster,
                self._provider_index,
                self._inputs,
            )
            for requirement, providers in requirements:
                self._add_requirement(dependent, requirement, providers)
        self._add_declared_order(
            [
                graph_object
                for graph_object in self._objects
                if may_declare_order(graph_object.manifest)
            ]
        )

    def _add_declared_order(self, objects: list[_GraphObject]) -> None:
        """Add the edges of kapp's rules, and the annotations that cannot be parsed."""
        for graph_object in objects:
            namespace = graph_object.manifest.ref.namespace
            self.unparsed_annotations += [
                UnparsedAnnotation(graph_object.number, problem.annotation, problem.text)
                for problem in find_parse_problems(graph_object.body, namespace)
            ]
        units = {graph_object.number: graph_object.unit for graph_object in objects}
        numbered = [(graph_object.number, graph_object.body) for graph_object in objects]
        for before, after, annotation in find_change_rule_pairs(numbered):
            self._connect(
                before,
                after,
                EdgeKind.CHANGE_RULE,
                Strength.HARD,
                self.nodes[after].location,
                required_state=RequiredState.READY,
                field=("metadata", "annotations", annotation),
                is_enforced=honors_annotations(units[after]),
            )

    def _add_requirement(
        self, dependent: _Dependent, requirement: Requirement, providers: Sequence[Provider]
    ) -> None:
        """Add an edge for each provider, or one to an external node if there is none."""
        others = self._nearest_providers(dependent, providers)
        if providers and not others:
            return  # the unit provides it itself
        number = self._next_alternative
        self._next_alternative += 1
        if not others:
            others = [
                Provider(
                    self._unmet_node(requirement, self.nodes[dependent.number]), is_indirect=False
                )
            ]
        for provider in others:
            is_indirect = provider.is_indirect or requirement.kind in (
                EdgeKind.OPERATOR,
                EdgeKind.DEFINITION,
            )
            is_key_missing = (
                requirement.key
                and provider.keys is not None
                and requirement.key not in provider.keys
            )
            self.edges.append(
                GraphEdge(
                    before=provider.number,
                    after=dependent.number,
                    alternative=number,
                    kind=requirement.kind,
                    strength=requirement.strength,
                    effect=requirement.effect,
                    required_state=requirement.required_state,
                    field=requirement.field,
                    required_object=requirement.ref if is_indirect else None,
                    key=requirement.key,
                    is_key_missing=bool(is_key_missing),
                    is_optional=requirement.is_optional,
                    must_be_absent=requirement.must_be_absent,
                    is_certain=requirement.is_certain,
                    is_enforced=requirement.strength is Strength.SOFT
                    or _is_enforced(dependent.unit, requirement.kind),
                    location=dependent.location,
                )
            )

    def services_without_pods(self) -> frozenset[int]:
        """Return the Services whose pods no unit provides."""
        with_pods = {edge.after for edge in self.edges if edge.kind is EdgeKind.SELECTOR}
        bodies = (
            (
                graph_object.number,
                graph_object.unit.destination.cluster,
                graph_object.manifest.ref,
                graph_object.body,
            )
            for graph_object in self._objects
            if graph_object.number not in with_pods
        )
        return find_services_without_pods(bodies, self._inputs)

    def connect_unit_resources(self, unit_resources: Mapping[UnitId, JsonObject]) -> None:
        """Add edges for the requirements of unit resources that no unit contains."""
        for unit in (unit.unit for unit in self._desired if unit.unit.id in unit_resources):
            body, number = unit_resources[unit.id], self._units[unit.id]
            kind = object_kind(body)
            ref = Ref(kind, unit.id.namespace, unit.id.name)
            if (
                self._provider_index.find(unit.id.cluster, *versionless_key(ref))[0].number
                == number
            ):
                requirements = find_requirements(
                    ref, body, None, unit.id.cluster, self._provider_index, self._inputs
                )
                for requirement, providers in requirements:
                    self._add_requirement(
                        _Dependent(number, unit, unit.location), requirement, providers
                    )

    def _nearest_providers(
        self, dependent: _Dependent, providers: Sequence[Provider]
    ) -> list[Provider]:
        """Return the other providers; of many, those of the same unit or else the earliest."""
        others = [provider for provider in providers if provider.number != dependent.number]
        if len(others) <= MAX_ALTERNATIVES:
            return others
        same_unit = [
            provider for provider in others if self.nodes[provider.number].unit == dependent.unit.id
        ]
        first = sorted(others, key=lambda provider: self.nodes[provider.number].step)
        return (same_unit or first)[:MAX_ALTERNATIVES]

    def _unmet_node(self, requirement: Requirement, dependent: GraphNode) -> int:
        if requirement.ref is None:
            key: tuple[str, ...] = ("operator", dependent.cluster, requirement.name)
            return self._external_node(
                key, f"operator {requirement.name}", dependent.cluster, None, None
            )
        group, kind, namespace, name = versionless_key(requirement.ref)
        if self._inputs.is_cluster_scoped(group, kind):
            namespace = ""
        ref = Ref(requirement.ref.kind, namespace, name)
        key = (dependent.cluster, group, kind, namespace, name)
        return self._external_node(key, str(ref), dependent.cluster, ref, None)

    def _external_node(
        self,
        key: tuple[str, ...],
        name: str,
        cluster: str,
        ref: Ref | None,
        unit: UnitId | None,
    ) -> int:
        if key not in self._external:
            self._external[key] = len(self.nodes)
            self.nodes.append(
                GraphNode(
                    number=len(self.nodes),
                    kind=NodeKind.EXTERNAL,
                    name=name,
                    cluster=cluster,
                    ref=ref,
                    unit=unit,
                )
            )
        return self._external[key]

    def _connect(
        self,
        before: int,
        after: int,
        kind: EdgeKind,
        strength: Strength,
        location: Location | None,
        *,
        required_state: RequiredState,
        field: tuple[str | int, ...] = (),
        is_enforced: bool = True,
    ) -> None:
        self.edges.append(
            GraphEdge(
                before=before,
                after=after,
                alternative=self._next_alternative,
                kind=kind,
                strength=strength,
                effect=Effect.BLOCKED,
                required_state=required_state,
                field=field,
                is_enforced=is_enforced,
                location=location,
            )
        )
        self._next_alternative += 1

    def build_steps(self) -> tuple[GraphStep, ...]:
        members: list[list[int]] = [[] for _ in self._plan.steps]
        for node in self.nodes:
            if node.step != NO_STEP:
                members[node.step].append(node.number)
        semantics = {
            planned_unit.id: planned_unit.policy.semantics for planned_unit in self._plan.units
        }
        return tuple(
            GraphStep(
                number=index,
                id=step.id,
                unit=step.unit,
                phase=step.phase,
                wave=step.wave,
                stage=step.stage,
                part=step.part,
                nodes=tuple(members[index]),
                is_last=step.is_last,
                is_gated=not step.is_last or semantics[step.unit].gates_last,
                is_fenced=semantics[step.unit].fenced,
            )
            for index, step in enumerate(self._plan.steps)
        )


class _Dependent(NamedTuple):
    """A node with requirements, and the location that declares them."""

    number: int
    unit: Unit
    location: Location | None


def _is_enforced(unit: Unit, kind: EdgeKind) -> bool:
    return kind is not EdgeKind.ANNOTATION or honors_annotations(unit)
