"""Destinations that are none of the clusters in Git, where Git has some."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches

from tidegate.dialect.argo.application import IN_CLUSTER_NAME
from tidegate.dialect.argo.sets.asking import RegisteredCluster
from tidegate.errors import sanitize
from tidegate.flows.discover.families import UnitTree
from tidegate.flows.discover.projects import at_unit_field
from tidegate.model.finding import Finding, Severity
from tidegate.model.unit import Unit


def unknown_cluster_findings(
    unit_trees: Iterable[UnitTree], clusters: Collection[RegisteredCluster]
) -> Iterator[Finding]:
    """Yield a finding for each unknown cluster name, with the first Application that is for it."""
    if not clusters:
        return
    known = {cluster.name for cluster in clusters} | {IN_CLUSTER_NAME}
    unknown: dict[str, list[Unit]] = {}
    for unit in (member.unit for unit_tree in unit_trees for member in unit_tree.members):
        name = unit.project_request.cluster if unit.project_request else ""
        if name and name not in known:
            unknown.setdefault(name, []).append(unit)
    for name, units in unknown.items():
        yield _unknown_cluster_finding(name, units, sorted(known))


def _unknown_cluster_finding(name: str, units: Sequence[Unit], known: list[str]) -> Finding:
    more = f" and {len(units) - 1} more" if len(units) > 1 else ""
    matches = get_close_matches(name, known, n=1)
    known_names = ", ".join(f"`{sanitize(cluster)}`" for cluster in known)
    finding = Finding(
        code="argo.cluster",
        severity=Severity.WARNING,
        message=f"`{units[0].id}`{more}: Git knows no cluster `{sanitize(name)}`",
        reason=(
            f"it knows {known_names}; Argo CD refuses what is for a cluster that is not registered"
        ),
        fix=(
            f"did you mean `{sanitize(matches[0])}`?"
            if matches
            else "correct the name, or register it"
        ),
    )
    return at_unit_field(units[0], "spec.destination.name", finding)
