"""Settings of the Argo CD and Flux controllers in a repository, and what they change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from tidegate.dialect.argo import settings as argo
from tidegate.dialect.flux import settings as flux
from tidegate.errors import Location
from tidegate.flows.discover.families import RenderedUnit
from tidegate.flows.discover.scan import RepositoryScan
from tidegate.model.config import ControllerSetting
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Json
from tidegate.model.release import ChartRequest
from tidegate.model.rendering import ToolDetection

ARGO_CHART = "argo-cd"
ARGOCD_CM_MARKER = b"argocd-cm"
"""Text in every file with settings of Argo CD."""
HEALTH_RULE_PREFIX = "resource.customizations.health."
"""Settings with Lua health rules; they are reported by the kinds that they are for."""
MAX_NAMED_SETTINGS = 6
MAX_VALUE_LENGTH = 40


def find_settings(
    members: Iterable[RenderedUnit], scan: RepositoryScan
) -> dict[str, ControllerSetting]:
    """Return the settings by name; the last one counts.

    Those in files come first, then those that units render, and values of Argo CD's chart.
    """
    members = tuple(members)
    settings = [*argo.read_settings(scan.documents_containing(ARGOCD_CM_MARKER))]
    for member in members:
        settings += argo.read_settings(member.documents)
        settings += flux.read_settings(member.documents)
        settings += _chart_settings(member)
    return {setting.name: setting for setting in settings}


def _chart_settings(member: RenderedUnit) -> tuple[ControllerSetting, ...]:
    for source in member.unit.sources:
        request = (
            source.request.chart if isinstance(source.request, ToolDetection) else source.request
        )
        if isinstance(request, ChartRequest) and source.canonical_location.rstrip("/").endswith(
            f"/{ARGO_CHART}"
        ):
            values = cast("dict[str, Json]", dict(request.values))
            return argo.read_chart_values(values, member.unit.location or Location(""))
    return ()


def settings_findings(settings: dict[str, ControllerSetting]) -> list[Finding]:
    """Return the note about the settings that are used; all others have their defaults."""
    listed = [
        setting for setting in settings.values() if not setting.name.startswith(HEALTH_RULE_PREFIX)
    ]
    if not listed:
        return []
    shown = [f"{setting.name}={_shorten(str(setting.value))}" for setting in listed]
    more = f" and {len(shown) - MAX_NAMED_SETTINGS} more" if len(shown) > MAX_NAMED_SETTINGS else ""
    return [
        Finding(
            code="units.settings",
            severity=Severity.NOTE,
            message=f"settings of the controllers: {', '.join(shown[:MAX_NAMED_SETTINGS])}{more}",
            location=listed[0].where,
            reason="all other settings are taken at their defaults",
        )
    ]


def _shorten(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= MAX_VALUE_LENGTH else f"{line[:MAX_VALUE_LENGTH]}…"
