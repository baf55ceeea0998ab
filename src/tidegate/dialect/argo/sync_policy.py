"""`syncPolicy` and `ignoreDifferences` of an Application as the policy of a unit."""

from __future__ import annotations

import msgspec

from tidegate.dialect.argo.finding_collector import FindingCollector
from tidegate.dialect.argo.ignore_differences import parse_ignore_differences
from tidegate.dialect.argo.options import option_problem, with_sync_options
from tidegate.dialect.argo.render_requests import is_true, string_list, string_map
from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_int, get_list, get_mapping, get_text, get_value
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.times import MINUTE, SECOND, Ms, parse_duration
from tidegate.model.units.ignore_differences import IgnoreDifference
from tidegate.model.units.policy import Policy, Tracking
from tidegate.model.units.semantics import ARGOCD, Retry

ARGO_POLICY = Policy(semantics=ARGOCD, manager="argocd-controller", tracking=Tracking.ARGO)
SYNC_POLICY_PATH = ("spec", "syncPolicy")
SECONDS_PATTERN = lazy_regex(r"[+-]?[0-9]{1,10}")
UNLIMITED = 1_000_000_000
"""Number of attempts, or milliseconds, that means no limit."""
DEFAULT_BACKOFF, DEFAULT_MAX_BACKOFF, DEFAULT_FACTOR = Ms(5 * SECOND), Ms(3 * MINUTE), 2
"""Argo CD's own pauses."""


def read_policy(spec: JsonObject, collector: FindingCollector) -> Policy:
    """Read the policy of an Application.

    Fields below `automated` count only if automated sync is enabled.
    """
    sync = get_mapping(spec, "syncPolicy")
    automated = get_mapping(sync, "automated")
    auto_sync = (
        isinstance(get_value(sync, "automated"), dict)
        and get_value(automated, "enabled") is not False
    )
    policy = msgspec.structs.replace(
        ARGO_POLICY,
        prune=auto_sync and is_true(automated, "prune"),
        auto_sync=auto_sync,
        self_heal=auto_sync and is_true(automated, "selfHeal"),
        allow_empty=auto_sync and is_true(automated, "allowEmpty"),
        retry=_retry(sync, collector),
        ignore_differences=_ignore_differences(spec, collector),
        namespace_labels=_namespace_metadata(sync, "labels"),
        namespace_annotations=_namespace_metadata(sync, "annotations"),
    )
    policy = with_sync_options(policy, _options(sync, collector))
    if get_value(sync, "managedNamespaceMetadata") and not policy.create_namespace:
        message = "`managedNamespaceMetadata` has no effect"
        why, fix = (
            "Argo CD does not create the namespace",
            "add `CreateNamespace=true` to `syncOptions`",
        )
        collector.warn(
            "argo.namespace", (*SYNC_POLICY_PATH, "managedNamespaceMetadata"), message, why, fix
        )
    return policy


def _namespace_metadata(sync: JsonObject, name: str) -> tuple[tuple[str, str], ...]:
    return tuple(string_map(sync, "managedNamespaceMetadata", name).items())


def _options(sync: JsonObject, collector: FindingCollector) -> tuple[str, ...]:
    """Return all sync options as written; unknown ones are reported and have no effect."""
    for index, option in enumerate(get_list(sync, "syncOptions")):
        problem = option_problem(option) if isinstance(option, str) else ""
        if problem:
            message = f"sync option `{sanitize(str(option))}` has no effect"
            path = (*SYNC_POLICY_PATH, "syncOptions", index)
            collector.warn("argo.option", path, message, problem, cause=str(option))
    return string_list(sync, "syncOptions")


def _retry(sync: JsonObject, collector: FindingCollector) -> Retry | None:
    """Read the retry settings; None: those of the semantics apply.

    Argo CD counts an attempt before it computes the backoff, so the first delay is already
    multiplied by the factor. Like `NextRetryAt` in `pkg/apis/application/v1alpha1/types.go` of
    Argo CD 3.6.
    """
    retry, path = get_value(sync, "retry"), (*SYNC_POLICY_PATH, "retry")
    if not isinstance(retry, dict):
        return None
    limit, factor = (
        get_int(retry, "limit"),
        get_int(retry, "backoff", "factor", default=DEFAULT_FACTOR),
    )
    if get_value(retry, "limit") is None:
        message, why = "failed syncs are not retried", "Argo CD uses 0 for a missing limit"
        collector.warn("argo.retry", (*path, "limit"), message, why, "set `limit: 5`")
    if factor < 1:
        message, why = (
            "retries have no delay",
            "Argo CD multiplies each delay by the factor, which is less than 1",
        )
        collector.warn("argo.retry", (*path, "backoff", "factor"), message, why, "set `factor: 2`")
    if limit < 0 and not is_true(retry, "refresh"):
        message = "a failed sync is retried without end, and always at the same revision"
        why = "Argo CD syncs a fix in Git only after the operation is terminated"
        fix = "set a `limit` such as 5, or `refresh: true`"
        collector.warn("argo.retry", (*path, "limit"), message, why, fix)
    first = max(0, _duration(retry, "duration", DEFAULT_BACKOFF, collector))
    cap = _duration(retry, "maxDuration", DEFAULT_MAX_BACKOFF, collector)
    return msgspec.structs.replace(
        ARGOCD.retry,
        limit=limit if limit >= 0 else UNLIMITED,
        backoff=Ms(first * max(0, factor)),
        factor=max(0, factor),
        backoff_limit=cap if cap > 0 else Ms(UNLIMITED),
        uses_current_revision=is_true(retry, "refresh"),
    )


def _duration(retry: JsonObject, field: str, default: Ms, collector: FindingCollector) -> Ms:
    """Read a duration like Argo CD does: a number without a unit is seconds."""
    value = get_text(retry, "backoff", field)
    if not value:
        return default
    if SECONDS_PATTERN.fullmatch(value):
        return Ms(int(value) * SECOND)
    try:
        return parse_duration(value)
    except ValueError as error:
        message = f"`{field}` is `{sanitize(value)}`, which is {error}"
        why, path = (
            "Argo CD stops at the first retry",
            (*SYNC_POLICY_PATH, "retry", "backoff", field),
        )
        collector.error("argo.retry", path, message, why, "set a duration such as `10s` or `3m`")
        return default


def _ignore_differences(
    spec: JsonObject, collector: FindingCollector
) -> tuple[IgnoreDifference, ...]:
    differences, problems = parse_ignore_differences(get_list(spec, "ignoreDifferences"))
    for subpath, error in problems:
        path = ("spec", "ignoreDifferences", *subpath)
        why = "the entry ignores nothing"
        collector.warn("argo.ignored", path, error.problem, why, error.hint)
    return differences
