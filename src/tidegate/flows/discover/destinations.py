"""Destinations that are none of the clusters that Git knows, where it knows some."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches

from tidegate.dialect.argo.application import OWN_CLUSTER
from tidegate.dialect.argo.sets.asking import KnownCluster
from tidegate.errors import foreign
from tidegate.flows.discover.families import Family
from tidegate.flows.discover.projects import at_field
from tidegate.model.finding import Finding, Severity
from tidegate.model.unit import Unit


def tell_strange(
    families: Iterable[Family], clusters: Collection[KnownCluster]
) -> Iterator[Finding]:
    """Each name once, with the first Application that is for it."""
    if not clusters:
        return
    known = {one.name for one in clusters} | {OWN_CLUSTER}
    strange: dict[str, list[Unit]] = {}
    for unit in (member.unit for family in families for member in family.members):
        name = unit.claim.cluster if unit.claim else ""
        if name and name not in known:
            strange.setdefault(name, []).append(unit)
    for name, units in strange.items():
        yield _strange(name, units, sorted(known))


def _strange(name: str, units: Sequence[Unit], known: list[str]) -> Finding:
    more = f" and {len(units) - 1} more" if len(units) > 1 else ""
    near = get_close_matches(name, known, n=1)
    named = ", ".join(f"`{foreign(one)}`" for one in known)
    finding = Finding(
        code="argo.cluster",
        severity=Severity.WARNING,
        sentence=f"`{units[0].id}`{more}: Git knows no cluster `{foreign(name)}`",
        why=f"it knows {named}; Argo CD refuses what is for a cluster that is not registered",
        fix=f"did you mean `{foreign(near[0])}`?" if near else "correct the name, or register it",
    )
    return at_field(units[0], "spec.destination.name", finding)
