"""What a project allows, decided as Argo CD decides it; each refusal names its rule and place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote

from tidegate.globs import compile_glob, compile_name, fits_path
from tidegate.model.objects import Ref
from tidegate.model.patterns import late
from tidegate.model.project import (
    DestinationRule,
    KindRule,
    NameRule,
    Project,
    ProjectClaim,
    Reach,
    Refusal,
)
from tidegate.model.sync_window import SyncWindow

SSH = late(r"(ssh://)?([^/:]*?)@[^@]+")
UNESCAPED = "/!$&'()*+,;=:@[]?#%-._~"
"""Signs that Go leaves as they are in an address."""
BAD_HOST = late(r"[a-z][a-z0-9+.-]*://[^/?#]*[\s<>{}|\\^`\"]")
SLOW = late(r"\)[*+{]")
"""A group that is repeated can take a regular expression for ever."""
NOT_IN_ACCOUNTS = frozenset("!*[]{}\\/")


def refuse_source(project: Project, url: str) -> Refusal | None:
    """Why a repository is none that the project takes from."""
    wanted, found = normal_address(url), False
    for rule in project.repositories:
        denies = _denies(rule.pattern)
        address = normal_address(rule.pattern[1:] if denies else rule.pattern)
        fits = (address == "*" and not denies) or _fits_address(address, wanted)
        if denies and fits:
            return Refusal(f"repository `{url}`", f"`{rule.pattern}`", rule.where)
        found = found or fits is not denies
    if found:
        return None
    return Refusal(
        f"repository `{url}`",
        _only("sourceRepos", project.repositories),
        project.place_of("sourceRepos"),
    )


def refuse_home(project: Project, namespace: str) -> Refusal | None:
    """Why an Application may not stand in a namespace; where Argo CD is must be known."""
    if (
        not project.home
        or namespace in {"", project.home}
        or _is_listed(project.namespaces, namespace)
    ):
        return None
    said = f"an Application in namespace `{namespace}`"
    rule = _only("sourceNamespaces", project.namespaces)
    return Refusal(said, rule, project.place_of("sourceNamespaces"))


def refuse_destination(reach: Reach, namespace: str) -> Refusal | None:
    """Why nothing may go to the unit's cluster and this namespace."""
    project = reach.project
    denying = _verdict(reach, namespace, guess=True)
    if denying is True:
        return None
    said = f"namespace `{namespace}` of `{reach.cluster or reach.server}`"
    if isinstance(denying, DestinationRule):
        return Refusal(said, _shown(denying), denying.where)
    rule = "`destinations`, where nothing fits" if project.destinations else "no `destinations`"
    return Refusal(said, rule, project.place_of("destinations"))


def is_certain(reach: Reach, namespace: str) -> bool:
    """Whether what is not known of the cluster would not change the verdict.

    Its server or its name may be unknown; where only registered clusters count, those are.
    """
    sure = [_verdict(reach, namespace, guess=one) is True for one in (True, False)]
    return sure[0] is sure[1] and not (sure[0] and reach.project.only_scoped)


def refuse_object(reach: Reach, ref: Ref, *, namespaced: bool) -> Refusal | None:
    """Why an object may not be written, pruned or deleted by a unit."""
    project, kind = reach.project, ref.kind
    allowed = project.kinds if namespaced else project.cluster_kinds
    denied = project.denied_kinds if namespaced else project.denied_cluster_kinds
    scope = "namespace" if namespaced else "cluster"
    said = (
        f"{kind.name} `{ref.name}`" if not kind.group else f"{kind.group}/{kind.name} `{ref.name}`"
    )
    hit = next((one for one in denied if fits_kind(one, ref, named=not namespaced)), None)
    if hit is not None:
        rule = f"`{scope}ResourceBlacklist` has `{hit.group or ''}/{hit.kind}`"
        return Refusal(said, rule, hit.where)
    if allowed is not None and not any(
        fits_kind(one, ref, named=not namespaced) for one in allowed
    ):
        field = f"{scope}ResourceWhitelist"
        rule = f"`{field}` has no such kind" if allowed else f"`{field}` is empty"
        return Refusal(said, rule, project.place_of(field))
    return refuse_destination(reach, ref.namespace) if namespaced else None


def windows_for(project: Project, claim: ProjectClaim, name: str) -> tuple[SyncWindow, ...]:
    """The sync windows that are for an Application."""
    found = []
    for rule in project.windows:
        places = [one for one in (claim.cluster, claim.server) if one]
        hits = [
            any(_fits(pattern, one) for pattern in patterns for one in values)
            for patterns, values in (
                (rule.applications, [name]),
                (rule.clusters, places),
                (rule.namespaces, [claim.namespace]),
            )
            if patterns
        ]
        if hits and (all(hits) if rule.all_of_them else any(hits)):
            found.append(rule.window)
    return tuple(found)


def account_for(reach: Reach, claim: ProjectClaim, home: str) -> str | Refusal:
    """The user whose rights a sync uses, where syncs impersonate."""
    for rule in reach.project.accounts:
        if not _fits(rule.server, reach.server, denies=True):
            continue
        if not _fits(rule.namespace, claim.namespace):
            continue
        account = rule.account.strip()
        if not account or set(account) & NOT_IN_ACCOUNTS:
            said = f"the account `{rule.account}`"
            return Refusal(said, "`defaultServiceAccount` names no account", rule.where)
        where = "" if ":" in account else f"{claim.namespace or home}:"
        return f"system:serviceaccount:{where}{account}"
    said = f"a sync to namespace `{claim.namespace}` of `{reach.cluster or reach.server}`"
    rule_text = "`destinationServiceAccounts` has no account for it"
    return Refusal(said, rule_text, reach.project.place_of("destinationServiceAccounts"))


def has_slow_pattern(project: Project) -> str:
    """A pattern for namespaces that is not tried, as it may never end; empty where none is."""
    found = (one.pattern for one in project.namespaces if SLOW.search(_regex(one.pattern)))
    return next(found, "")


@lru_cache(maxsize=4096)
def normal_address(url: str) -> str:
    """An address as Argo CD compares it; empty for one that is none."""
    address = url.strip().lower()
    if SSH.fullmatch(address) and not address.startswith("ssh://"):
        address = f"ssh://{address.replace(':', '/', 1)}"
    address = address.removesuffix(".git")
    if BAD_HOST.match(address):
        return ""
    return quote(address, safe=UNESCAPED).removeprefix("ssh://")


def _verdict(reach: Reach, namespace: str, *, guess: bool) -> bool | DestinationRule:
    """Whether a destination fits, or the rule that denies it; `guess`: what nobody knows fits."""
    found = False
    for rule in reach.project.destinations:
        named = _fits_known(rule.name, reach.cluster, guess=guess)
        served = _fits_known(rule.server, reach.server, guess=guess)
        inside = _fits(rule.namespace, namespace, denies=True)
        if (named or served) and inside:
            found = True
        elif (
            (not named and _denies(rule.name))
            or (not served and _denies(rule.server) and inside)
            or (not inside and _denies(rule.namespace) and served)
        ):
            return rule
    return found


def _fits_known(pattern: str, value: str, *, guess: bool) -> bool:
    if value:
        return _fits(pattern, value, denies=True)
    return pattern == "*" or (guess and bool(pattern))


def _fits(pattern: str, value: str, *, denies: bool = False) -> bool:
    if denies and _denies(pattern):
        return not _matches(pattern[1:], value)
    return pattern == "*" or _matches(pattern, value)


@lru_cache(maxsize=4096)
def _matches(pattern: str, value: str) -> bool:
    try:
        return compile_glob(pattern).fullmatch(value) is not None
    except ValueError:
        return False


@lru_cache(maxsize=4096)
def _fits_address(pattern: str, address: str) -> bool:
    try:
        return fits_path(pattern, address)
    except ValueError:
        return False


@lru_cache(maxsize=4096)
def _fits_name(pattern: str, name: str) -> bool:
    try:
        return compile_name(pattern).fullmatch(name) is not None
    except ValueError:
        return False


def fits_kind(rule: KindRule, ref: Ref, *, named: bool) -> bool:
    """Whether a rule means an object; `named`: its name counts too."""
    kind = ref.kind
    if not (_fits_name(rule.kind, kind.name) and _fits_name(rule.group, kind.group)):
        return False
    return not named or not rule.name or _fits_name(rule.name, ref.name)


def _is_listed(rules: Iterable[NameRule], name: str) -> bool:
    for one in rules:
        regex = _regex(one.pattern)
        if regex and (SLOW.search(regex) or _found(regex, name)):
            return True
        if _matches(one.pattern, name):
            return True
    return False


def _regex(pattern: str) -> str:
    is_regex = len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/")
    return pattern[1:-1] if is_regex else ""


def _found(regex: str, name: str) -> bool:
    try:
        return re.search(regex, name) is not None
    except re.error:
        return False


def _denies(pattern: str) -> bool:
    return pattern.startswith("!")


def _only(field: str, rules: Iterable[NameRule]) -> str:
    names = [f"`{one.pattern}`" for one in rules]
    return f"`{field}` has only {', '.join(names)}" if names else f"`{field}` has nothing"


def _shown(rule: DestinationRule) -> str:
    parts = (("server", rule.server), ("name", rule.name), ("namespace", rule.namespace))
    said = ", ".join(f"{name}: {one}" for name, one in parts if one)
    return f"`{{{said}}}`"
