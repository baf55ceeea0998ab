"""Gates of Flux that open before the operator of a custom resource has written a status."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.lint.context import LintContext, LintObject
from tidegate.lint.dependencies import DependencyIndex, dependency_index, is_required, needs_ready
from tidegate.lint.names import object_name
from tidegate.lint.rule import Diagnostic, FieldRef
from tidegate.lint.snippets import health_expression_snippet
from tidegate.lint.unit_positions import unit_positions
from tidegate.model.finding import Severity
from tidegate.model.plans.graph import NO_STEP

KUSTOMIZATION = "Kustomization"


def gates_before_status(context: LintContext) -> Iterator[Diagnostic]:
    """Yield custom resources that a Kustomization waits for, but that are Current at once.

    cli-utils v1.2.2, pkg/kstatus/status/core.go (`checkGenericProperties`): an object without
    conditions and without an observed generation is Current.
    """
    index, positions = dependency_index(context), unit_positions(context)
    for node in context.graph.nodes:
        obj = index.objects.get(node.number)
        if (
            obj is None
            or node.step == NO_STEP
            or not (node.is_gating and node.ready_without_status)
        ):
            continue
        if obj.unit.id.kind != KUSTOMIZATION or _has_expression(obj):
            continue
        row = context.catalog.find_row(obj.ref.kind)
        snippet = health_expression_snippet(obj.ref.kind, row) if row is not None else ""
        if not snippet or not positions.has_dependents(obj.unit.id):
            continue
        later = next(_later_consumers(context, index, node.number, obj), None)
        yield _open_gate(context, obj, later, snippet)


def _has_expression(obj: LintObject) -> bool:
    kind = obj.ref.kind
    return any(
        expression.group == kind.group and expression.kind in {"", kind.name}
        for expression in obj.unit.policy.expressions
    )


def _later_consumers(
    context: LintContext, index: DependencyIndex, node: int, obj: LintObject
) -> Iterator[LintObject]:
    """Yield the objects of dependent units that need an object to be ready."""
    for at in index.graph.dependent_edges[node]:
        edge = index.graph.edges[at]
        consumer = index.objects.get(edge.after)
        if consumer is None or not is_required(edge) or not needs_ready(edge):
            continue
        if unit_positions(context).depends_on(consumer.unit.id, obj.unit.id):
            yield consumer


def _open_gate(
    context: LintContext, obj: LintObject, later: LintObject | None, snippet: str
) -> Diagnostic:
    unit, name = obj.unit.id, object_name(obj.ref)
    unit_resource = context.unit_resources.get(unit)
    consequence = (
        f"the units that depend on `{unit}` start before {name} is ready"
        if later is None
        else f"`{later.unit.id}` starts, although {object_name(later.ref)} needs {name}"
    )
    return Diagnostic(
        message=f"`{unit}` does not wait until {name} is ready",
        at=FieldRef(unit_resource, ("spec", "wait")) if unit_resource else obj.unit.location,
        related=(FieldRef(obj.document),),
        severity=Severity.NOTE if later is None else Severity.WARNING,
        sequence=(
            f"Flux applies {name} and checks its status",
            (
                f"{name} has no status before its operator writes one, and an object without a"
                " status counts as ready"
            ),
            f"`{unit}` may be Ready at once, and {consequence}",
        ),
        why="an object without conditions and without an observed generation counts as ready",
        fix=f"add these lines to Kustomization `{unit.namespace}/{unit.name}`",
        snippet=snippet,
        semantics=("flux",),
        cause=f"{unit} {obj.ref.kind.group} {obj.ref.kind.name}",
    )
