"""Units whose charts, repositories or bases are unknown, and by their names have a CRD."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.documents import Document
from tidegate.lint.context import LintContext
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import FieldPath, Kind
from tidegate.model.units.unit import UnitId


def possible_crd_providers(context: LintContext, cluster: str, kind: Kind) -> list[UnitId]:
    """Return the incomplete units that have the name of the operator of a kind.

    A unit that skips the CRDs of its chart is none of them.
    """
    return [
        unit
        for unit, names in sorted(context.unknown_sources.items())
        if unit in context.units
        and context.units[unit].destination.cluster == cluster
        and any(context.catalog.is_operator_chart(name, kind) for name in names)
        and not _skips_crds(context, unit)
    ]


def _skips_crds(context: LintContext, unit: UnitId) -> bool:
    document = context.unit_resources.get(unit)
    return document is not None and any(True for _ in skipped_charts(document))


def skipped_charts(document: Document) -> Iterator[tuple[FieldPath, str]]:
    """Yield the fields that skip CRDs, each with the name of the chart."""
    spec = get_mapping(document.body, "spec")
    if get_text(document.body, "kind") == "HelmRelease":
        if get_text(spec, "install", "crds") == "Skip":
            chart = get_text(spec, "chart", "spec", "chart") or get_text(spec, "chartRef", "name")
            yield ("spec", "install", "crds"), chart.rpartition("/")[2]
        return
    sources = [
        (("spec", "source"), get_mapping(spec, "source")),
        *(
            (("spec", "sources", at), source)
            for at, source in enumerate(get_mappings(spec, "sources"))
        ),
    ]
    for path, source in sources:
        if get_value(source, "helm", "skipCrds") is True:
            chart = get_text(source, "chart") or get_text(source, "path").rpartition("/")[2]
            yield (*path, "helm", "skipCrds"), chart
