"""How an Application is synced: `syncPolicy` and `ignoreDifferences` as the policy of a unit."""

from __future__ import annotations

import msgspec

from tidegate.dialect.argo.ignoring import take_ignored
from tidegate.dialect.argo.options import what_is_wrong, with_options
from tidegate.dialect.argo.requests import Body, is_set, text_map, texts
from tidegate.dialect.argo.telling import Telling
from tidegate.errors import foreign
from tidegate.model.ignoring import Ignored
from tidegate.model.moment import MINUTE, SECOND, Ms, parse_duration
from tidegate.model.patterns import late
from tidegate.model.policy import Policy, Tracking
from tidegate.model.reading import listed, mapping, number, part, text
from tidegate.model.semantics import ARGOCD, Retry

ARGO = Policy(semantics=ARGOCD, manager="argocd-controller", tracking=Tracking.ARGO)
SYNC = ("spec", "syncPolicy")
SECONDS = late(r"[+-]?[0-9]{1,10}")
FOR_EVER = 1_000_000_000
"""Attempts, or milliseconds, of which nobody sees the end."""
FIRST, CAP, FACTOR = Ms(5 * SECOND), Ms(3 * MINUTE), 2
"""Argo CD's own pauses."""


def read_policy(spec: Body, telling: Telling) -> Policy:
    """The policy that an Application asks for.

    What stands under `automated` counts only where it is enabled.
    """
    sync = mapping(spec, "syncPolicy")
    automated = mapping(sync, "automated")
    starts = isinstance(part(sync, "automated"), dict) and part(automated, "enabled") is not False
    policy = msgspec.structs.replace(
        ARGO,
        prunes=starts and is_set(automated, "prune"),
        starts=starts,
        heals=starts and is_set(automated, "selfHeal"),
        allows_empty=starts and is_set(automated, "allowEmpty"),
        retry=_retry(sync, telling),
        ignores=_ignores(spec, telling),
        namespace_labels=_pairs(sync, "labels"),
        namespace_notes=_pairs(sync, "annotations"),
    )
    policy = with_options(policy, _options(sync, telling))
    if part(sync, "managedNamespaceMetadata") and not policy.creates_namespace:
        said = "`managedNamespaceMetadata` is not used"
        why, fix = "Argo CD creates no namespace here", "add `CreateNamespace=true` to syncOptions"
        telling.warn("argo.namespace", (*SYNC, "managedNamespaceMetadata"), said, why, fix)
    return policy


def _pairs(sync: Body, name: str) -> tuple[tuple[str, str], ...]:
    return tuple(text_map(sync, "managedNamespaceMetadata", name).items())


def _options(sync: Body, telling: Telling) -> tuple[str, ...]:
    """Those that are there, whatever they say: what is not known changes nothing."""
    for place, option in enumerate(listed(sync, "syncOptions")):
        wrong = what_is_wrong(option) if isinstance(option, str) else ""
        if wrong:
            said = f"the sync option `{foreign(str(option))}` does nothing"
            telling.warn("argo.option", (*SYNC, "syncOptions", place), said, wrong)
    return texts(sync, "syncOptions")


def _retry(sync: Body, telling: Telling) -> Retry | None:
    """None: by the rules of whoever runs it.

    Argo CD counts an attempt before it computes its pause: so the first one is a factor longer.
    """
    retry, path = part(sync, "retry"), (*SYNC, "retry")
    if not isinstance(retry, dict):
        return None
    limit, factor = number(retry, "limit"), number(retry, "backoff", "factor", default=FACTOR)
    if part(retry, "limit") is None:
        said, why = "nothing is tried again", "Argo CD takes a limit that is not there for 0"
        telling.warn("argo.retry", (*path, "limit"), said, why, "write `limit: 5`")
    if factor < 1:
        said, why = "there is no pause between attempts", "each is multiplied by the factor"
        telling.warn("argo.retry", (*path, "backoff", "factor"), said, why, "write `factor: 2`")
    first = max(0, _duration(retry, "duration", FIRST, telling))
    cap = _duration(retry, "maxDuration", CAP, telling)
    return msgspec.structs.replace(
        ARGOCD.retry,
        limit=limit if limit >= 0 else FOR_EVER,
        first=Ms(first * max(0, factor)),
        factor=max(0, factor),
        cap=cap if cap > 0 else Ms(FOR_EVER),
        refreshes=is_set(retry, "refresh"),
    )


def _duration(retry: Body, field: str, default: Ms, telling: Telling) -> Ms:
    """A duration as Argo CD reads it: seconds, where no unit is written."""
    said = text(retry, "backoff", field)
    if not said:
        return default
    if SECONDS.fullmatch(said):
        return Ms(int(said) * SECOND)
    try:
        return parse_duration(said)
    except ValueError as error:
        sentence = f"`{field}` is `{foreign(said)}`, which is {error}"
        why, path = "Argo CD gives up at the first retry", (*SYNC, "retry", "backoff", field)
        telling.error("argo.retry", path, sentence, why, "write it like `10s` or `3m`")
        return default


def _ignores(spec: Body, telling: Telling) -> tuple[Ignored, ...]:
    ignores, flaws = take_ignored(listed(spec, "ignoreDifferences"))
    for inside, flaw in flaws:
        path = ("spec", "ignoreDifferences", *inside)
        telling.warn("argo.ignored", path, flaw.problem, "nothing is ignored by it", flaw.hint)
    return ignores
