"""What the real controllers are told, as far as the repository says so; the last word counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from tidegate.dialect.argo import settings as argo
from tidegate.dialect.flux import settings as flux
from tidegate.errors import Place
from tidegate.flows.discover.families import Member
from tidegate.flows.discover.scan import Scan
from tidegate.model.config import Switch
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Json
from tidegate.model.release import Release
from tidegate.model.rendering import Detected

ARGO_CHART = "argo-cd"
ARGO_MAPS = b"argocd-cm"
"""What is in the text of every file with settings of Argo CD's."""
HEALTH_RULES = "resource.customizations.health."
"""Scripts are told by the kinds that they judge."""
MOST_NAMED = 6
LONGEST = 40


def find_settings(members: Iterable[Member], scan: Scan) -> dict[str, Switch]:
    """By name: what stands in files, over it what units render, and values of Argo CD's chart."""
    members = tuple(members)
    found = [*argo.read_settings(scan.data_with(ARGO_MAPS))]
    for member in members:
        found += argo.read_settings(member.documents)
        found += flux.read_settings(member.documents)
        found += _of_chart(member)
    return {one.name: one for one in found}


def _of_chart(member: Member) -> tuple[Switch, ...]:
    for source in member.unit.sources:
        request = source.request.chart if isinstance(source.request, Detected) else source.request
        if isinstance(request, Release) and source.place.rstrip("/").endswith(f"/{ARGO_CHART}"):
            values = cast("dict[str, Json]", dict(request.values))
            return argo.read_chart_values(values, member.unit.where or Place(""))
    return ()


def tell_settings(found: dict[str, Switch]) -> list[Finding]:
    """That they were taken; what nobody says is as the controllers have it by default."""
    told = [one for one in found.values() if not one.name.startswith(HEALTH_RULES)]
    if not told:
        return []
    shown = [f"{one.name}={_short(str(one.value))}" for one in told]
    more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
    return [
        Finding(
            code="units.settings",
            severity=Severity.NOTE,
            sentence=f"settings of the controllers: {', '.join(shown[:MOST_NAMED])}{more}",
            where=told[0].where,
            why="all other settings are taken at their defaults",
        )
    ]


def _short(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
