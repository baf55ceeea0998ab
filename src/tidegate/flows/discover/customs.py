"""What `argocd-cm` says of all Applications: health rules, and kinds that are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from tidegate.dialect.argo.application import OWN_CLUSTER, OWN_SERVER
from tidegate.dialect.argo.customizing import KindFilters
from tidegate.errors import TidegateError, errors_of, foreign
from tidegate.flows.discover.families import Family, Member
from tidegate.flows.rendering import Rendered
from tidegate.health.lua import NO_RULES, LuaRules
from tidegate.health.lua.settings import lua_rules_of
from tidegate.model.config import Switch
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Kind
from tidegate.model.project import ProjectClaim
from tidegate.model.reading import text

MOST_NAMED = 4
APPLICATION = ("argoproj.io", "Application")


def find_rules(settings: Mapping[str, Switch]) -> tuple[LuaRules, list[Finding]]:
    """The scripts of a repository, and that they are used; those with a mistake are not."""
    said = [(one.name, str(one.value), one.where) for one in settings.values()]
    try:
        rules = lua_rules_of(said)
    except ExceptionGroup as group:
        return NO_RULES, [_wrong(error) for error in errors_of(group)]
    return rules, [_used(rules)] if rules.named else []


def _used(rules: LuaRules) -> Finding:
    names = [f"`{foreign(one)}`" for one in rules.named]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    gates = rules.lookup(*APPLICATION) is not None
    why = "by that for Applications, a parent waits for its children" if gates else ""
    return Finding(
        code="argo.rules",
        severity=Severity.NOTE,
        sentence=f"scripts of the repository judge {', '.join(names[:MOST_NAMED])}{more}",
        where=next(iter(rules.named.values())).where,
        why=why,
        fix="`--health-rules FILE` comes before them",
    )


def _wrong(error: TidegateError) -> Finding:
    return Finding(
        code="argo.rules",
        severity=Severity.ERROR,
        sentence=f"no health rule of the repository is used: {error.problem}",
        where=error.where,
        why="Argo CD cannot read its settings then",
        fix=error.hint,
    )


def without_excluded(
    families: Iterable[Family], filters: KindFilters
) -> tuple[list[Family], list[Finding]]:
    """The families without objects of kinds that Argo CD leaves alone, and what those are."""
    findings: list[Finding] = []
    kept = []
    for family in families:
        members = tuple(_without(member, filters, findings) for member in family.members)
        kept.append(replace(family, members=members))
    return kept, list(dict.fromkeys(findings))


def _without(member: Member, filters: KindFilters, findings: list[Finding]) -> Member:
    rendered, claim = member.rendered, member.unit.claim
    if not isinstance(rendered, Rendered) or claim is None:
        return member
    server = _server(claim)
    kept, dropped = [], dict[str, int]()
    for number, one in enumerate(rendered.documents):
        kind = Kind.of(text(one.body, "apiVersion"), text(one.body, "kind"))
        if filters.leave_out(kind.group, kind.name, server):
            name = f"{kind.group}/{kind.name}" if kind.group else kind.name
            dropped[name] = dropped.get(name, 0) + 1
        else:
            kept.append(number)
    if not dropped:
        return member
    findings.append(_excluded(member, dropped, filters))
    parts = replace(
        rendered,
        documents=tuple(rendered.documents[one] for one in kept),
        hidden=tuple(rendered.hidden[one] for one in kept),
    )
    return replace(member, rendered=parts)


def _server(claim: ProjectClaim) -> str:
    return OWN_SERVER if claim.cluster == OWN_CLUSTER else claim.server


def _excluded(member: Member, dropped: Mapping[str, int], filters: KindFilters) -> Finding:
    names = ", ".join(f"{count} of `{foreign(kind)}`" for kind, count in dropped.items())
    said = f"`resource.exclusions` or `resource.inclusions` at {filters.where} says so"
    return Finding(
        code="argo.excluded",
        severity=Severity.WARNING,
        sentence=f"objects of `{member.unit.id}` are left out: {names}",
        where=member.unit.where,
        why=said if filters.where else "Argo CD never looks at such kinds",
    )
