"""Permissions of AppProjects, decided like Argo CD; each refusal names its rule and location.

Like `IsSourcePermitted`, `IsDestinationPermitted` and `IsGroupKindNamePermitted` in
`pkg/apis/application/v1alpha1/app_project_types.go`, and `DeriveServiceAccountToImpersonate` in
`util/settings/impersonation.go` of Argo CD 3.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote

from tidegate.globs import compile_name_glob, matches_glob, matches_path
from tidegate.model.k8s.objects import Ref
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.project import (
    DestinationRule,
    KindRule,
    NameRule,
    Project,
    ProjectRequest,
    ProjectScope,
    ProjectViolation,
)
from tidegate.model.units.sync_window import SyncWindow

SSH_URL = lazy_regex(r"(ssh://)?([^/:]*?)@[^@]+")
UNESCAPED = "/!$&'()*+,;=:@[]?#%-._~"
"""Characters that Go does not escape in a URL."""
BAD_HOST = lazy_regex(r"[a-z][a-z0-9+.-]*://[^/?#]*[\s<>{}|\\^`\"]")
REPEATED_GROUP = lazy_regex(r"\)[*+{]")
"""A repeated group, with which a regular expression may take exponential time."""
FORBIDDEN_ACCOUNT_CHARS = frozenset("!*[]{}\\/")


def check_source(project: Project, url: str) -> ProjectViolation | None:
    """Return why the project does not permit a repository; None if it does."""
    normalized, is_allowed = normalize_repo_url(url), False
    for rule in project.repositories:
        is_deny = _is_deny_pattern(rule.pattern)
        pattern = normalize_repo_url(rule.pattern[1:] if is_deny else rule.pattern)
        is_match = (pattern == "*" and not is_deny) or _matches_url(pattern, normalized)
        if is_deny and is_match:
            return ProjectViolation(f"repository `{url}`", f"`{rule.pattern}`", rule.location)
        is_allowed = is_allowed or is_match is not is_deny
    if is_allowed:
        return None
    return ProjectViolation(
        f"repository `{url}`",
        _allowed_text("sourceRepos", project.repositories),
        project.location_of_list("sourceRepos"),
    )


def check_application_namespace(project: Project, namespace: str) -> ProjectViolation | None:
    """Return why an Application may not be in a namespace; None if it may.

    None also if the namespace of Argo CD is unknown.
    """
    if (
        not project.namespace
        or namespace in {"", project.namespace}
        or _is_listed(project.namespaces, namespace)
    ):
        return None
    subject = f"an Application in namespace `{namespace}`"
    rule = _allowed_text("sourceNamespaces", project.namespaces)
    return ProjectViolation(subject, rule, project.location_of_list("sourceNamespaces"))


def check_destination(scope: ProjectScope, namespace: str) -> ProjectViolation | None:
    """Return why objects may not go to this namespace of the unit's cluster; None if they may."""
    project = scope.project
    decision = _destination_decision(scope, namespace, guess=True)
    if decision is True:
        return None
    subject = f"namespace `{namespace}` of `{scope.cluster or scope.server}`"
    if isinstance(decision, DestinationRule):
        return ProjectViolation(subject, _rule_text(decision), decision.location)
    rule = "no entry of `destinations` matches" if project.destinations else "no `destinations`"
    return ProjectViolation(subject, rule, project.location_of_list("destinations"))


def is_decision_certain(scope: ProjectScope, namespace: str) -> bool:
    """Return whether the decision is the same for any unknown server or name of the cluster.

    If only project-scoped clusters are permitted, the registered clusters are also unknown.
    """
    decisions = [
        _destination_decision(scope, namespace, guess=guess) is True for guess in (True, False)
    ]
    return decisions[0] is decisions[1] and not (decisions[0] and scope.project.only_scoped)


def check_object(
    project_scope: ProjectScope, ref: Ref, *, namespaced: bool
) -> ProjectViolation | None:
    """Return why a unit may not write, prune or delete an object; None if it may."""
    project, kind = project_scope.project, ref.kind
    allowed = project.kinds if namespaced else project.cluster_kinds
    denied = project.denied_kinds if namespaced else project.denied_cluster_kinds
    scope = "namespace" if namespaced else "cluster"
    subject = (
        f"{kind.name} `{ref.name}`" if not kind.group else f"{kind.group}/{kind.name} `{ref.name}`"
    )
    denied_entry = next(
        (entry for entry in denied if matches_kind(entry, ref, named=not namespaced)), None
    )
    if denied_entry is not None:
        rule = (
            f"`{scope}ResourceBlacklist` contains `{denied_entry.group or ''}/{denied_entry.kind}`"
        )
        return ProjectViolation(subject, rule, denied_entry.location)
    if allowed is not None and not any(
        matches_kind(entry, ref, named=not namespaced) for entry in allowed
    ):
        field = f"{scope}ResourceWhitelist"
        rule = f"`{field}` does not contain the kind" if allowed else f"`{field}` is empty"
        return ProjectViolation(subject, rule, project.location_of_list(field))
    return check_destination(project_scope, ref.namespace) if namespaced else None


def sync_windows_for(
    project: Project, request: ProjectRequest, name: str
) -> tuple[SyncWindow, ...]:
    """Return the sync windows that apply to an Application."""
    windows = []
    for rule in project.windows:
        clusters = [cluster for cluster in (request.cluster, request.server) if cluster]
        matches = [
            any(_matches_pattern(pattern, value) for pattern in patterns for value in values)
            for patterns, values in (
                (rule.applications, [name]),
                (rule.clusters, clusters),
                (rule.namespaces, [request.namespace]),
            )
            if patterns
        ]
        if matches and (all(matches) if rule.all_of_them else any(matches)):
            windows.append(rule.window)
    return tuple(windows)


def service_account_for(
    scope: ProjectScope, request: ProjectRequest, application_namespace: str
) -> str | ProjectViolation:
    """Return the user that a sync impersonates, or why there is none."""
    for rule in scope.project.accounts:
        if not _matches_pattern(rule.server, scope.server, supports_deny=True):
            continue
        if not _matches_pattern(rule.namespace, request.namespace):
            continue
        account = rule.account.strip()
        if not account or set(account) & FORBIDDEN_ACCOUNT_CHARS:
            subject = f"service account `{rule.account}`"
            why = "`defaultServiceAccount` is not a service account"
            return ProjectViolation(subject, why, rule.location)
        prefix = "" if ":" in account else f"{request.namespace or application_namespace}:"
        return f"system:serviceaccount:{prefix}{account}"
    subject = f"a sync to namespace `{request.namespace}` of `{scope.cluster or scope.server}`"
    rule_text = "`destinationServiceAccounts` has no matching service account"
    return ProjectViolation(
        subject, rule_text, scope.project.location_of_list("destinationServiceAccounts")
    )


def find_slow_pattern(project: Project) -> str:
    """Return a namespace pattern that is not evaluated because it may never end; empty if none."""
    patterns = (
        rule.pattern for rule in project.namespaces if REPEATED_GROUP.search(_regex(rule.pattern))
    )
    return next(patterns, "")


@lru_cache(maxsize=4096)
def normalize_repo_url(url: str) -> str:
    """Normalize a repository URL like `NormalizeGitURL` of Argo CD; empty for an invalid one."""
    address = url.strip().lower()
    if SSH_URL.fullmatch(address) and not address.startswith("ssh://"):
        address = f"ssh://{address.replace(':', '/', 1)}"
    address = address.removesuffix(".git")
    if BAD_HOST.match(address):
        return ""
    return quote(address, safe=UNESCAPED).removeprefix("ssh://")


def _destination_decision(
    scope: ProjectScope, namespace: str, *, guess: bool
) -> bool | DestinationRule:
    """Return whether a destination is permitted, or the rule that denies it.

    `guess`: an unknown server or name matches.
    """
    is_allowed = False
    for rule in scope.project.destinations:
        name_matches = _matches_known(rule.name, scope.cluster, guess=guess)
        server_matches = _matches_known(rule.server, scope.server, guess=guess)
        namespace_matches = _matches_pattern(rule.namespace, namespace, supports_deny=True)
        if (name_matches or server_matches) and namespace_matches:
            is_allowed = True
        elif (
            (not name_matches and _is_deny_pattern(rule.name))
            or (not server_matches and _is_deny_pattern(rule.server) and namespace_matches)
            or (not namespace_matches and _is_deny_pattern(rule.namespace) and server_matches)
        ):
            return rule
    return is_allowed


def _matches_known(pattern: str, value: str, *, guess: bool) -> bool:
    if value:
        return _matches_pattern(pattern, value, supports_deny=True)
    return pattern == "*" or (guess and bool(pattern))


def _matches_pattern(pattern: str, value: str, *, supports_deny: bool = False) -> bool:
    if supports_deny and _is_deny_pattern(pattern):
        return not matches_glob(pattern[1:], value)
    return pattern == "*" or matches_glob(pattern, value)


@lru_cache(maxsize=4096)
def _matches_url(pattern: str, address: str) -> bool:
    try:
        return matches_path(pattern, address)
    except ValueError:
        return False


@lru_cache(maxsize=4096)
def _matches_name(pattern: str, name: str) -> bool:
    try:
        return compile_name_glob(pattern).fullmatch(name) is not None
    except ValueError:
        return False


def matches_kind(rule: KindRule, ref: Ref, *, named: bool) -> bool:
    """Return whether a rule matches an object; `named`: the name must match, too."""
    kind = ref.kind
    if not (_matches_name(rule.kind, kind.name) and _matches_name(rule.group, kind.group)):
        return False
    return not named or not rule.name or _matches_name(rule.name, ref.name)


def _is_listed(rules: Iterable[NameRule], name: str) -> bool:
    for rule in rules:
        regex = _regex(rule.pattern)
        if regex and (REPEATED_GROUP.search(regex) or _regex_matches(regex, name)):
            return True
        if matches_glob(rule.pattern, name):
            return True
    return False


def _regex(pattern: str) -> str:
    is_regex = len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/")
    return pattern[1:-1] if is_regex else ""


def _regex_matches(regex: str, name: str) -> bool:
    try:
        return re.search(regex, name) is not None
    except re.error:
        return False


def _is_deny_pattern(pattern: str) -> bool:
    return pattern.startswith("!")


def _allowed_text(field: str, rules: Iterable[NameRule]) -> str:
    names = [f"`{rule.pattern}`" for rule in rules]
    return f"`{field}` contains only {', '.join(names)}" if names else f"`{field}` is empty"


def _rule_text(rule: DestinationRule) -> str:
    parts = (("server", rule.server), ("name", rule.name), ("namespace", rule.namespace))
    fields = ", ".join(f"{name}: {value}" for name, value in parts if value)
    return f"`{{{fields}}}`"
