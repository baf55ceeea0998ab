"""Health rules and excluded kinds in `argocd-cm`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from tidegate.dialect.argo.application import IN_CLUSTER_NAME, IN_CLUSTER_SERVER
from tidegate.dialect.argo.customizing import KindFilters
from tidegate.errors import TidegateError, flatten_errors, sanitize
from tidegate.flows.discover.families import RenderedUnit, UnitTree
from tidegate.flows.rendering import RenderResult
from tidegate.health.lua import NO_RULES, LuaRules
from tidegate.health.lua.settings import lua_rules_of
from tidegate.model.config import ControllerSetting
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Kind
from tidegate.model.project import ProjectRequest
from tidegate.model.reading import get_text

MAX_NAMED_RULES = 4
APPLICATION = ("argoproj.io", "Application")


def find_health_rules(settings: Mapping[str, ControllerSetting]) -> tuple[LuaRules, list[Finding]]:
    """Return the health rules of a repository, and that they are used; none if one is invalid."""
    entries = [(setting.name, str(setting.value), setting.where) for setting in settings.values()]
    try:
        rules = lua_rules_of(entries)
    except ExceptionGroup as group:
        return NO_RULES, [_invalid_rule_finding(error) for error in flatten_errors(group)]
    return rules, [_rules_finding(rules)] if rules.named else []


def _rules_finding(rules: LuaRules) -> Finding:
    names = [f"`{sanitize(name)}`" for name in rules.named]
    more = f" and {len(names) - MAX_NAMED_RULES} more" if len(names) > MAX_NAMED_RULES else ""
    gates_children = rules.lookup(*APPLICATION) is not None
    reason = "by that for Applications, a parent waits for its children" if gates_children else ""
    return Finding(
        code="argo.rules",
        severity=Severity.NOTE,
        message=f"scripts of the repository judge {', '.join(names[:MAX_NAMED_RULES])}{more}",
        location=next(iter(rules.named.values())).where,
        reason=reason,
        fix="`--health-rules FILE` comes before them",
    )


def _invalid_rule_finding(error: TidegateError) -> Finding:
    return Finding(
        code="argo.rules",
        severity=Severity.ERROR,
        message=f"no health rule of the repository is used: {error.problem}",
        location=error.location,
        reason="Argo CD cannot read its settings then",
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
        kind = Kind.of(get_text(document.body, "apiVersion"), get_text(document.body, "kind"))
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
    reason = f"`resource.exclusions` or `resource.inclusions` at {filters.location} says so"
    return Finding(
        code="argo.excluded",
        severity=Severity.WARNING,
        message=f"objects of `{member.unit.id}` are left out: {names}",
        location=member.unit.location,
        reason=reason if filters.location else "Argo CD never looks at such kinds",
    )
