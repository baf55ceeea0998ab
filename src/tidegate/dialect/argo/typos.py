"""Typos in hooks, sync options and annotation names.

Argo CD silently ignores them: an object is neither applied nor run, or an option has no effect.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.dialect.argo.hooks import (
    CRD_INSTALL,
    DELETE_POLICIES,
    DELETE_POLICY,
    DELETION_PHASES,
    HELM_DELETE_POLICIES,
    HELM_DELETE_POLICY,
    HELM_DELETION_PHASES,
    HELM_HOOK,
    HELM_PHASES,
    HOOK,
    PHASES,
)
from tidegate.dialect.argo.options import (
    RESOURCE_POLICY,
    SYNC_OPTIONS,
    option_problem,
    split_list,
    string_annotations,
)
from tidegate.dialect.argo.waves import WAVE, WEIGHT
from tidegate.documents import Document
from tidegate.errors import Location, sanitize
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.text.suggest import closest_match, find_misspelled
from tidegate.model.units.policy import Order

ARGO_ANNOTATIONS = (HOOK, SYNC_OPTIONS, DELETE_POLICY, WAVE)
HELM_ANNOTATIONS = (HELM_HOOK, HELM_DELETE_POLICY, RESOURCE_POLICY, WEIGHT)
OTHER_HELM_HOOKS = (
    *("test", "test-success", "test-failure", "pre-rollback", "post-rollback", CRD_INSTALL),
)
"""Helm hooks that have no effect on a sync."""
OTHER_ANNOTATIONS = frozenset(
    {
        *(
            f"argocd.argoproj.io/{name}"
            for name in (
                *("application-set-refresh", "compare-options", "deletion-approved", "hydrate"),
                *("ignore-default-links", "ignore-healthcheck", "installation-id"),
                *("managed-by-url", "manifest-generate-paths", "refresh", "skip-reconcile"),
                "tracking-id",
            )
        ),
        "helm.sh/hook-output-log-policy",
    }
)
"""Known annotations that do not affect the order."""
NAME_HINTS = ("argo", "helm.sh")
"""Substrings of the names of these annotations, even if misspelt."""


def find_annotation_typos(document: Document, order: Order) -> Iterator[Finding]:
    """Find annotations of an object that have no effect because of a probable typo."""
    annotations = string_annotations(document.body)
    if order is Order.STAGES or not any(hint in key for key in annotations for hint in NAME_HINTS):
        return
    if order is Order.WAVES:
        yield from _find_value_typos(document, HOOK, (*PHASES, *DELETION_PHASES), "hook")
        yield from _find_value_typos(
            document, DELETE_POLICY, tuple(DELETE_POLICIES), "hook-delete-policy"
        )
        yield from _find_option_typos(document, annotations.get(SYNC_OPTIONS, ""))
    yield from _find_value_typos(
        document,
        HELM_HOOK,
        (*HELM_PHASES, *HELM_DELETION_PHASES, *OTHER_HELM_HOOKS),
        "Helm hook",
    )
    yield from _find_value_typos(
        document, HELM_DELETE_POLICY, tuple(HELM_DELETE_POLICIES), "Helm hook delete policy"
    )
    candidates = (
        (*ARGO_ANNOTATIONS, *HELM_ANNOTATIONS) if order is Order.WAVES else HELM_ANNOTATIONS
    )
    known = {*ARGO_ANNOTATIONS, *HELM_ANNOTATIONS, *OTHER_ANNOTATIONS}
    for key in (name for name in annotations if name not in known and _is_candidate(name)):
        suggestion = find_misspelled(key, candidates)
        if suggestion:
            message = (
                f"annotation `{sanitize(key)}` of {_object_name(document)} is unknown"
                " and has no effect"
            )
            yield _finding(document, "argo.annotation", key, message, suggestion)


def _is_candidate(key: str) -> bool:
    return any(hint in key for hint in NAME_HINTS)


def _find_value_typos(
    document: Document, key: str, known_values: tuple[str, ...], noun: str
) -> Iterator[Finding]:
    values = split_list(string_annotations(document.body).get(key, ""))
    unknown = [value for value in values if value not in known_values]
    for value in unknown:
        suggestion = closest_match(value, known_values)
        is_dropped = key in {HOOK, HELM_HOOK} and len(unknown) == len(values)
        ending = "; the object is neither applied nor run" if is_dropped else ""
        message = f"`{sanitize(value)}` of {_object_name(document)} is not a {noun}{ending}"
        yield _finding(document, "argo.hook", key, message, suggestion)


def _find_option_typos(document: Document, value: str) -> Iterator[Finding]:
    for option in split_list(value):
        if option.partition("=")[0] == "Force":
            continue
        problem = option_problem(option)
        if problem:
            message = f"`{sanitize(option)}` of {_object_name(document)} has no effect: {problem}"
            yield _finding(document, "argo.option", SYNC_OPTIONS, message, "")


def _object_name(document: Document) -> str:
    name = sanitize(get_text(document.body, "metadata", "name"))
    return f"{sanitize(get_text(document.body, 'kind'))} `{name}`"


def _finding(document: Document, code: str, key: str, message: str, suggestion: str) -> Finding:
    location = document.location
    return Finding(
        code=code,
        severity=Severity.WARNING,
        message=message,
        location=Location(location.name, location.line, field=f'metadata.annotations["{key}"]'),
        fix=f"did you mean `{suggestion}`?" if suggestion else "",
    )
