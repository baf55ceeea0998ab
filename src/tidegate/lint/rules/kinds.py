"""Rules about units and custom resources: dependencies, CRDs, operators and certificates."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from tidegate.lint.context import LintContext, LintObject
from tidegate.lint.crd_providers import possible_crd_providers
from tidegate.lint.dependencies import DependencyIndex, dependency_index
from tidegate.lint.names import object_name, step_name_in_unit
from tidegate.lint.pods import LONG_RUNNING_KINDS
from tidegate.lint.rule import Diagnostic, FieldRef, rule
from tidegate.lint.rules.deadlocks import deadlocks
from tidegate.lint.rules.flux_references import (
    missing_health_check_targets,
    missing_service_accounts,
)
from tidegate.model.display import join_limited
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_int, get_text
from tidegate.model.plans.graph import EdgeKind, GraphEdge, NodeKind
from tidegate.model.units.policy import Tracking
from tidegate.model.units.unit import UnitId

SKIP_DRY_RUN_OPTION = "SkipDryRunOnMissingResource=true"
CRD_KIND = "CustomResourceDefinition"


@rule(
    "ORD001",
    "Dependency on a missing unit or object",
    Severity.ERROR,
    why=("the dependent never starts, because its dependency does not exist or has another kind"),
    fix="correct the name, or add the missing unit or object",
)
def missing_dependency(context: LintContext) -> Iterator[Diagnostic]:
    """Yield missing targets of depends-on annotations and health checks.

    Dependencies of units themselves are checked during discovery.
    """
    yield from missing_health_check_targets(context)
    yield from missing_service_accounts(context)
    index = dependency_index(context)
    for edge in context.graph.edges:
        if edge.kind is not EdgeKind.ANNOTATION or edge.must_be_absent:
            continue
        node = context.graph.nodes[edge.before]
        obj = index.objects.get(edge.after)
        if node.kind is not NodeKind.EXTERNAL or obj is None:
            continue
        yield Diagnostic(
            message=f"{object_name(obj.ref)} depends on {node.name}, which is not in this"
            " repository",
            at=FieldRef(obj.document, edge.field),
            severity=Severity.WARNING,
            why=f"unless {node.name} already exists in the cluster, {object_name(obj.ref)} waits"
            " forever",
        )


@rule(
    "ORD002",
    "Dependency cycle between units",
    Severity.ERROR,
    why="none of the units ever starts, because each waits for another one",
    fix="remove one of the dependencies, or merge the units",
)
def dependency_cycle(context: LintContext) -> Iterator[Diagnostic]:
    after = {
        unit.id: [
            dependency.unit for dependency in unit.dependencies if dependency.unit in context.units
        ]
        for unit in context.units.values()
    }
    reported: set[frozenset[UnitId]] = set()
    for unit in _unstartable(after):
        cycle = _shortest_cycle(unit, after)
        if not cycle or frozenset(cycle) in reported:
            continue
        reported.add(frozenset(cycle))
        unit_resource = context.unit_resources.get(unit)
        names = [f"`{member}`" for member in (*cycle, cycle[0])]
        at = next(
            n
            for n, dependency in enumerate(context.units[unit].dependencies)
            if dependency.unit == [*cycle, unit][1]
        )
        yield Diagnostic(
            message=f"dependency cycle: {' → '.join(names)}",
            at=(
                FieldRef(unit_resource, ("spec", "dependsOn", at))
                if unit_resource
                else context.units[unit].location
            ),
            related=tuple(
                FieldRef(context.unit_resources[member])
                for member in cycle[1:]
                if member in context.unit_resources
            ),
            sequence=tuple(
                f"`{member}` starts only after `{next_member}` is ready"
                for member, next_member in zip(cycle, (*cycle[1:], cycle[0]), strict=True)
            ),
        )


def _unstartable(after: Mapping[UnitId, list[UnitId | None]]) -> list[UnitId]:
    """Return the units that are in a cycle or wait for one."""
    unmet_counts = {unit: len(set(before)) for unit, before in after.items()}
    waiting: dict[UnitId | None, list[UnitId]] = {}
    for unit, before in after.items():
        for dependency in set(before):
            waiting.setdefault(dependency, []).append(unit)
    startable = [unit for unit, count in unmet_counts.items() if not count]
    for unit in startable:  # grows during the loop
        for dependent in waiting.get(unit, ()):
            unmet_counts[dependent] -= 1
            if not unmet_counts[dependent]:
                startable.append(dependent)
    return [unit for unit, count in unmet_counts.items() if count]


def _shortest_cycle(unit: UnitId, after: Mapping[UnitId, list[UnitId | None]]) -> list[UnitId]:
    """Return the shortest cycle of dependencies from a unit to itself; empty if there is none."""
    previous: dict[UnitId, UnitId] = {}
    pending = deque([unit])
    while pending:
        current = pending.popleft()
        for dependency in after.get(current, ()):
            if dependency == unit:
                cycle = [current]
                while cycle[-1] != unit:
                    cycle.append(previous[cycle[-1]])
                return cycle[::-1]
            if dependency is not None and dependency not in previous:
                previous[dependency] = current
                pending.append(dependency)
    return []


@rule(
    "ORD008",
    "Custom resource is applied before its CRD or operator",
    Severity.ERROR,
    why=(
        "the API server rejects a custom resource without its CRD, and without its operator the"
        " custom resource never becomes ready"
    ),
    fix=(
        "deploy the CRD and the operator first: in an earlier wave, or in a unit that this unit"
        " depends on"
    ),
)
def resource_before_crd(context: LintContext) -> Iterator[Diagnostic]:
    diagnostics = [*deadlocks(context, "ORD008")]
    yield from diagnostics
    reported = {item.at.document.location for item in diagnostics if isinstance(item.at, FieldRef)}
    for objects in context.by_unit.values():
        if objects[0].unit.policy.tracking is Tracking.FLUX:
            remaining = [obj for obj in objects if obj.document.location not in reported]
            yield from _next_to_release(context, remaining)


def _next_to_release(context: LintContext, objects: list[LintObject]) -> Iterator[Diagnostic]:
    """Yield objects whose CRD is part of a HelmRelease in the same Kustomization.

    Flux runs a dry run of all objects of a Kustomization before it applies the first one.
    """
    unit = objects[0].unit
    defined = {
        lint_object.manifest.defined_kind
        for lint_object in objects
        if all(lint_object.manifest.defined_kind)
    }
    child_units = {
        unit_id: lint_object
        for lint_object in objects
        for unit_id in lint_object.manifest.child_units
    }
    if not child_units:
        return
    definers = _definers(context, child_units)
    for obj in objects:
        kind = (obj.ref.kind.group, obj.ref.kind.name)
        if kind in defined or obj.manifest.child_units or context.is_in_helmfile(obj.ref.kind):
            continue
        source = definers.get(kind) or _by_chart(context, obj, child_units)
        if source is not None and not _may_be_defined_elsewhere(context, obj, child_units):
            yield _rejected_together(unit.id, obj, child_units[source], source)


def _definers(context: LintContext, units: Iterable[UnitId]) -> dict[tuple[str, str], UnitId]:
    """Return by kind the first of these units that has its CRD."""
    definers: dict[tuple[str, str], UnitId] = {}
    for unit in units:
        for crd in context.by_unit.get(unit, ()):
            if all(crd.manifest.defined_kind):
                definers.setdefault(crd.manifest.defined_kind, unit)
    return definers


def _may_be_defined_elsewhere(
    context: LintContext, obj: LintObject, child_units: Mapping[UnitId, LintObject]
) -> bool:
    """Return whether something that was not read may have the CRD, such as a remote base."""
    cluster = obj.unit.destination.cluster
    providers = possible_crd_providers(context, cluster, obj.ref.kind)
    return not child_units.keys() >= {*providers}


def _by_chart(
    context: LintContext, obj: LintObject, child_units: dict[UnitId, LintObject]
) -> UnitId | None:
    """Return the release whose chart is the operator of a kind, or None if a unit has the CRD."""
    row = context.catalog.find_row(obj.ref.kind)
    if row is None or not row.operator:
        return None
    defined_kinds = {
        crd.manifest.defined_kind
        for crd in context.objects_of_kind("apiextensions.k8s.io", CRD_KIND)
    }
    if (obj.ref.kind.group, obj.ref.kind.name) in defined_kinds:
        return None
    for child, unit_resource in child_units.items():
        chart = get_text(unit_resource.body, "spec", "chart", "spec", "chart") or get_text(
            unit_resource.body, "spec", "chartRef", "name"
        )
        if chart.rpartition("/")[2] == row.operator:
            return child
    return None


def _rejected_together(
    unit: UnitId, obj: LintObject, release: LintObject, child: UnitId
) -> Diagnostic:
    return Diagnostic(
        message=(
            f"deadlock: {object_name(obj.ref)} is in the same Kustomization as"
            f" {object_name(release.ref)}, which installs its CRD"
        ),
        at=FieldRef(obj.document, ("kind",)),
        related=(FieldRef(release.document),),
        sequence=(
            f"Flux runs a dry run of all objects of `{unit}` before it applies the first one",
            (
                f"the dry run fails because the CRD of {obj.ref.kind.name} does not exist, so Flux"
                " applies nothing"
            ),
            f"`{child}` installs the CRD, but is not applied either",
        ),
        fix=(
            f"move {obj.ref.kind.name} to a separate Kustomization with `dependsOn` on this one,"
            " and add `wait: true` to this one"
        ),
        semantics=("flux",),
        cause=f"{unit} {child}",
    )


@rule(
    "ORD009",
    "Dry run fails because the CRD does not exist yet",
    Severity.WARNING,
    why=(
        "Argo CD runs a dry run of all objects before it applies the first one; the dry run fails"
        " for a kind that is not served, so Argo CD applies nothing"
    ),
    fix=(
        f"annotate the object with `argocd.argoproj.io/sync-options: {SKIP_DRY_RUN_OPTION}`, or"
        " deploy its CRD first"
    ),
)
def unserved_kind(context: LintContext) -> Iterator[Diagnostic]:
    """Yield objects whose CRD is created by an operator of the same Application."""
    index = dependency_index(context)
    for edge in context.graph.edges:
        obj = index.objects.get(edge.after)
        if obj is None or edge.kind is not EdgeKind.DEFINITION:
            continue
        is_outside = context.graph.nodes[edge.before].kind is NodeKind.EXTERNAL
        is_argocd = obj.unit.policy.semantics.name == "argocd"
        if not is_outside or not is_argocd or obj.manifest.options.skip_missing_kind:
            continue
        operator = _operator_in_unit(index, edge, obj)
        if operator is not None and obj.unit.id in context.complete_units:
            yield Diagnostic(
                message=(
                    f"the dry run of {object_name(obj.ref)} fails until {object_name(operator.ref)}"
                    f" has created the CRD of {obj.ref.kind.name}"
                ),
                at=FieldRef(obj.document, ("kind",)),
                related=(FieldRef(operator.document),),
                sequence=(
                    (
                        f"the CRD of {obj.ref.kind.name} is not in this repository; the operator"
                        f" {object_name(operator.ref)} creates the CRD at startup"
                    ),
                    (
                        "Argo CD runs a dry run of all objects first, which fails because"
                        f" {obj.ref.kind.name} is not served"
                    ),
                    f"the sync fails before Argo CD applies {object_name(operator.ref)}",
                ),
                semantics=("argocd",),
                cause=f"{obj.unit.id} {operator.ref}",
            )


def _operator_in_unit(
    index: DependencyIndex, edge: GraphEdge, obj: LintObject
) -> LintObject | None:
    for at in index.graph.dependency_edges[edge.after]:
        operator_edge = index.graph.edges[at]
        provider = index.objects.get(operator_edge.before)
        if (
            operator_edge.kind is EdgeKind.OPERATOR
            and provider is not None
            and provider.unit.id == obj.unit.id
        ):
            return provider
    return None


@rule(
    "ORD041",
    "CRDs are part of the operator chart",
    Severity.NOTE,
    why=(
        "uninstalling or renaming the release deletes the CRDs and all custom resources; units with"
        " custom resources cannot be deployed before the operator"
    ),
    fix=(
        "deploy the CRDs in a separate unit, and disable them in the chart (`installCRDs: false`,"
        " `crds.enabled: false`)"
    ),
)
def bundled_crds(context: LintContext) -> Iterator[Diagnostic]:
    """Yield charts with CRDs whose custom resources are in other units."""
    users: dict[tuple[str, str], set[UnitId]] = {}
    for obj in context.objects:
        kind = obj.ref.kind
        users.setdefault((kind.group, kind.name), set()).add(obj.unit.id)
    for unit, objects in context.by_unit.items():
        defined = [lint_object for lint_object in objects if all(lint_object.manifest.defined_kind)]
        workloads = [
            lint_object
            for lint_object in objects
            if lint_object.is_kind("apps", *LONG_RUNNING_KINDS)
        ]
        used = [crd for crd in defined if users.get(crd.manifest.defined_kind, set()) - {unit}]
        if used and workloads and "/templates/" in f"/{used[0].document.location.name}":
            unit_resource = context.unit_resources.get(unit)
            yield Diagnostic(
                message=(
                    f"`{unit}` deploys {join_limited([object_name(crd.ref) for crd in used])}"
                    f" together with {object_name(workloads[0].ref)}, and other units have custom"
                    " resources of this kind"
                ),
                at=FieldRef(unit_resource) if unit_resource else context.units[unit].location,
            )


def _start_together(context: LintContext, obj: LintObject, provider: LintObject) -> bool:
    """Return whether both start together, or one after the other without a gate between them."""
    object_step, provider_step = context.step_for(obj), context.step_for(provider)
    if object_step is None or provider_step is None:
        return False
    return object_step.id == provider_step.id or context.order.is_after(
        object_step.id, provider_step.id
    )


@rule(
    "ORD056",
    "Job runs in parallel with the Service that it calls",
    Severity.ERROR,
    why="the Job and the Service are not ordered, so the Job fails if it starts first",
    fix="move the Job to a wave or unit after the Service, or increase `backoffLimit`",
)
def task_parallel_to_service(context: LintContext) -> Iterator[Diagnostic]:
    """Yield Jobs without retries that start in parallel with what they call."""
    index = dependency_index(context)
    for unmet in index.races:
        obj, provider = unmet.dependent, unmet.provider
        limit = get_int(obj.body, "spec", "backoffLimit", default=6)
        if provider is None or limit > 0 or not obj.is_kind("batch", "Job"):
            continue
        yield Diagnostic(
            message=(
                f"{object_name(obj.ref)} calls {unmet.requirement} once, but does not wait until"
                f" {object_name(provider.ref)} is ready"
            ),
            at=FieldRef(obj.document, unmet.edge.field),
            related=(FieldRef(provider.document),),
            sequence=(
                (f"{step_name_in_unit(obj, context.step_for(obj))} applies {object_name(obj.ref)}"),
                (
                    f"{object_name(provider.ref)} in"
                    f" {step_name_in_unit(provider, context.step_for(provider))} is not ready yet"
                ),
                f"with `backoffLimit: 0` {object_name(obj.ref)} fails after the first attempt",
            ),
            severity=(
                Severity.ERROR if _start_together(context, obj, provider) else Severity.WARNING
            ),
            semantics=(obj.unit.policy.semantics.name,),
        )
