"""Settings of the Argo CD and Flux controllers in a repository, and what they change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from tidegate.dialect.argo import settings as argo
from tidegate.dialect.argo.application import IN_CLUSTER_NAME, IN_CLUSTER_SERVER
from tidegate.dialect.argo.appset.queries import RegisteredCluster
from tidegate.dialect.argo.argocd_cm import KindFilters
from tidegate.dialect.flux import settings as flux
from tidegate.errors import Location, TidegateError, flatten_errors, sanitize
from tidegate.health.lua import NO_LUA_RULES, LuaRules
from tidegate.health.lua.argocd_cm import lua_rules_from_settings
from tidegate.model.config import ControllerSetting
from tidegate.model.display import join_limited, join_quoted
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import object_kind
from tidegate.model.text.suggest import suggest
from tidegate.model.units.chart_request import ChartRequest
from tidegate.model.units.project import ProjectRequest
from tidegate.model.units.rendering import ToolDetection
from tidegate.model.units.semantics import ARGOCD
from tidegate.model.units.unit import Unit
from tidegate.workspace.discovery.appsets import PROGRESSIVE_SYNCS_SETTING
from tidegate.workspace.discovery.projects import at_unit_field
from tidegate.workspace.discovery.scan import RepositoryScan
from tidegate.workspace.discovery.unit_tree import RenderedUnit, UnitTree
from tidegate.workspace.rendering.result import RenderResult

ARGO_CHART = "argo-cd"
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
    settings = [*scan.argocd_settings]
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
            location = member.unit.location or Location("")
            return argo.read_chart_values(dict(request.values), location)
    return ()


def settings_findings(settings: dict[str, ControllerSetting]) -> list[Finding]:
    """Return the note about the settings that are used; all others have their defaults."""
    listed = [
        setting for setting in settings.values() if not setting.name.startswith(HEALTH_RULE_PREFIX)
    ]
    if not listed:
        return []
    shown = [f"{setting.name}={_shorten(str(setting.value))}" for setting in listed]
    return [
        Finding(
            code="units.settings",
            severity=Severity.NOTE,
            message=f"controller settings in use: {join_limited(shown, MAX_NAMED_SETTINGS)}",
            location=listed[0].location,
            reason="all other settings have their defaults",
        )
    ]


def _shorten(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= MAX_VALUE_LENGTH else f"{line[:MAX_VALUE_LENGTH]}…"


MAX_NAMED_RULES = 4
APPLICATION = ("argoproj.io", "Application")


def find_health_rules(settings: Mapping[str, ControllerSetting]) -> tuple[LuaRules, list[Finding]]:
    """Return the health rules of a repository, and that they are used; none if one is invalid."""
    entries = [
        (setting.name, str(setting.value), setting.location) for setting in settings.values()
    ]
    try:
        rules = lua_rules_from_settings(entries)
    except ExceptionGroup as group:
        return NO_LUA_RULES, [_invalid_rule_finding(error) for error in flatten_errors(group)]
    return rules, [_rules_finding(rules)] if rules.named else []


def _rules_finding(rules: LuaRules) -> Finding:
    gates_children = rules.find(*APPLICATION) is not None
    reason = "so waves of a parent Application wait for its children" if gates_children else ""
    return Finding(
        code="argo.health-rules",
        severity=Severity.NOTE,
        message=f"using custom health checks for {join_quoted(rules.named, MAX_NAMED_RULES)}",
        location=next(iter(rules.named.values())).location,
        reason=reason,
        fix="override them with `--health-rules FILE`",
    )


def _invalid_rule_finding(error: TidegateError) -> Finding:
    return Finding(
        code="argo.health-rules",
        severity=Severity.ERROR,
        message=f"custom health checks of the repository are not used: {error.problem}",
        location=error.location,
        reason="Argo CD cannot load its settings either",
        fix=error.hint,
    )


def without_excluded(
    unit_trees: Iterable[UnitTree], filters: KindFilters
) -> tuple[list[UnitTree], list[Finding]]:
    """Return the trees without objects that Argo CD ignores, and findings about these."""
    findings: list[Finding] = []
    remaining = []
    for unit_tree in unit_trees:
        members = tuple(
            _without_excluded_objects(member, filters, findings) for member in unit_tree.members
        )
        remaining.append(replace(unit_tree, members=members))
    return remaining, list(dict.fromkeys(findings))


def _without_excluded_objects(
    member: RenderedUnit, filters: KindFilters, findings: list[Finding]
) -> RenderedUnit:
    result, project_request = member.result, member.unit.project_request
    if not isinstance(result, RenderResult) or project_request is None:
        return member
    server = _destination_server(project_request)
    kept_indexes, dropped = [], dict[str, int]()
    for index, document in enumerate(result.documents):
        kind = object_kind(document.body)
        if filters.excludes(kind.group, kind.name, server):
            name = f"{kind.group}/{kind.name}" if kind.group else kind.name
            dropped[name] = dropped.get(name, 0) + 1
        else:
            kept_indexes.append(index)
    if not dropped:
        return member
    findings.append(_exclusion_finding(member, dropped, filters))
    remaining = replace(
        result,
        documents=tuple(result.documents[kept_index] for kept_index in kept_indexes),
        secret_fields=tuple(result.secret_fields[kept_index] for kept_index in kept_indexes),
    )
    return replace(member, result=remaining)


def _destination_server(project_request: ProjectRequest) -> str:
    return (
        IN_CLUSTER_SERVER if project_request.cluster == IN_CLUSTER_NAME else project_request.server
    )


def _exclusion_finding(
    member: RenderedUnit, dropped: Mapping[str, int], filters: KindFilters
) -> Finding:
    names = ", ".join(f"{count} of `{sanitize(kind)}`" for kind, count in dropped.items())
    reason = f"`resource.exclusions` or `resource.inclusions` at {filters.location} excludes them"
    return Finding(
        code="argo.excluded",
        severity=Severity.WARNING,
        message=f"Argo CD ignores objects of `{member.unit.id}`: {names}",
        location=member.unit.location,
        reason=reason if filters.location else "Argo CD excludes these kinds by default",
    )


def is_rolling_sync_off(settings: Mapping[str, ControllerSetting]) -> bool:
    """Return whether progressive syncs are off.

    Without the setting they are assumed to be on: steps are written to be used.
    """
    setting = settings.get(PROGRESSIVE_SYNCS_SETTING)
    return setting is not None and str(setting.value).lower() != "true"


def rolling_sync_findings(
    unit_trees: Iterable[UnitTree], settings: Mapping[str, ControllerSetting]
) -> Iterator[Finding]:
    """Yield a finding for each ApplicationSet with steps that are assumed or not in force."""
    units = [
        member.unit
        for unit_tree in unit_trees
        for member in unit_tree.members
        if member.unit.rolling_sync_step
    ]
    if not units or (PROGRESSIVE_SYNCS_SETTING in settings and not is_rolling_sync_off(settings)):
        return
    is_disabled = is_rolling_sync_off(settings)
    reason = (
        "progressive syncs are disabled"
        if is_disabled
        else "the repository does not set whether progressive syncs are enabled"
    )
    for unit in {stepped_unit.generated_by: stepped_unit for stepped_unit in units}.values():
        yield Finding(
            code="appset.progressive",
            severity=Severity.WARNING if is_disabled else Severity.NOTE,
            message=f"Argo CD ignores the steps of `{unit.generated_by}`"
            if is_disabled
            else f"the steps of `{unit.generated_by}` are assumed to be enabled",
            location=unit.location and unit.location.with_field("spec.strategy"),
            reason=reason,
            fix=f"set `{PROGRESSIVE_SYNCS_SETTING}: true` for the controller, or in tidegate.yaml",
            semantics=(ARGOCD.name,),
        )


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
    names = join_quoted([unit.id for unit in units], 1)
    known_names = ", ".join(f"`{sanitize(cluster)}`" for cluster in known)
    finding = Finding(
        code="argo.cluster",
        severity=Severity.WARNING,
        message=f"{names}: no cluster `{sanitize(name)}` in this repository",
        reason=(
            f"known clusters: {known_names}; Argo CD rejects Applications for unregistered clusters"
        ),
        fix=suggest(name, known, f"correct the name, or register cluster `{sanitize(name)}`"),
    )
    return at_unit_field(units[0], "spec.destination.name", finding)
