"""CRDs that a release or an Application skips, although its chart is the only one with them."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.lint.context import LintContext
from tidegate.lint.crd_providers import possible_crd_providers, skipped_charts
from tidegate.lint.dependencies import dependency_index
from tidegate.lint.names import object_name
from tidegate.lint.rule import Diagnostic, FieldRef
from tidegate.model.finding import Severity
from tidegate.model.plans.graph import EdgeKind, NodeKind


def skipped_definitions(context: LintContext) -> Iterator[Diagnostic]:
    """Yield units that skip the CRDs of their chart, if no other unit has these CRDs."""
    skipping = [
        (unit, document, path, chart)
        for unit, document in context.unit_resources.items()
        for path, chart in skipped_charts(document)
    ]
    index = dependency_index(context)
    for edge in context.graph.edges if skipping else ():
        obj = index.objects.get(edge.after)
        is_missing = context.graph.nodes[edge.before].kind is NodeKind.EXTERNAL
        if edge.kind is not EdgeKind.DEFINITION or not is_missing or obj is None:
            continue
        if possible_crd_providers(context, obj.unit.destination.cluster, obj.ref.kind):
            continue
        for unit, document, path, chart in skipping:
            if context.catalog.is_operator_chart(chart, obj.ref.kind):
                yield Diagnostic(
                    message=(
                        f"`{unit}` skips the CRDs of chart `{chart}`, and no other unit has the"
                        f" CRD of {object_name(obj.ref)}"
                    ),
                    at=FieldRef(document, path),
                    related=(FieldRef(obj.document, ("kind",)),),
                    severity=Severity.WARNING,
                    why=(
                        "unless the CRD is created by other means, the API server rejects"
                        f" {object_name(obj.ref)}"
                    ),
                    fix="install the CRDs with the chart, or add a unit that deploys them",
                    cause=str(unit),
                )
