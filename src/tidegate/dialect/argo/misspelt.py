"""Words that nobody reads: hooks, options and annotations that are spelt almost right.

Argo CD takes them for nothing, and says nothing: an object is neither applied nor run, or an option
does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from tidegate.dialect.argo.hooks import (
    CRD_INSTALL,
    ENDS,
    HELM_ENDS,
    HELM_HOOK,
    HELM_PHASES,
    HELM_POLICIES,
    HELM_POLICY,
    HOOK,
    PHASES,
    POLICIES,
    POLICY,
)
from tidegate.dialect.argo.options import KEEP, OPTIONS, notes_of, read_list, what_is_wrong
from tidegate.dialect.argo.waves import WAVE, WEIGHT
from tidegate.documents import Document
from tidegate.errors import Place, foreign
from tidegate.model.finding import Finding, Severity
from tidegate.model.policy import Order
from tidegate.model.reading import text

ARGO_NOTES = (HOOK, OPTIONS, POLICY, WAVE)
HELM_NOTES = (HELM_HOOK, HELM_POLICY, KEEP, WEIGHT)
OTHERS = (*("test", "test-success", "test-failure", "pre-rollback", "post-rollback", CRD_INSTALL),)
"""Helm's hooks that a sync has nothing to do with."""
READ_ELSEWHERE = frozenset(
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
"""Annotations that somebody reads who has nothing to do with the order."""
SIMILAR = 0.85
HINTS = ("argo", "helm.sh")
"""What stands in the names of these annotations, however badly they are spelt."""


def find_misspelt(document: Document, order: Order) -> Iterator[Finding]:
    """What of an object's annotations is not read, though somebody seems to mean it."""
    notes = notes_of(document.body)
    if order is Order.STAGES or not any(hint in key for key in notes for hint in HINTS):
        return
    if order is Order.WAVES:
        yield from _words(document, HOOK, (*PHASES, *ENDS), "hook")
        yield from _words(document, POLICY, tuple(POLICIES), "hook-delete-policy")
        yield from _options(document, notes.get(OPTIONS, ""))
    yield from _words(document, HELM_HOOK, (*HELM_PHASES, *HELM_ENDS, *OTHERS), "hook of Helm's")
    yield from _words(document, HELM_POLICY, tuple(HELM_POLICIES), "delete policy of Helm's")
    known = (*ARGO_NOTES, *HELM_NOTES) if order is Order.WAVES else HELM_NOTES
    read = {*ARGO_NOTES, *HELM_NOTES, *READ_ELSEWHERE}
    for key in (one for one in notes if one not in read and _may_be_meant(one)):
        near = get_close_matches(key, known, n=1, cutoff=SIMILAR)
        if near:
            sentence = f"{_name(document)} has an annotation `{foreign(key)}`, which has no effect"
            yield _finding(document, "argo.annotation", key, sentence, near[0])


def _may_be_meant(key: str) -> bool:
    return any(hint in key for hint in HINTS)


def _words(document: Document, key: str, known: tuple[str, ...], what: str) -> Iterator[Finding]:
    said = read_list(notes_of(document.body).get(key, ""))
    wrong = [word for word in said if word not in known]
    for word in wrong:
        near = get_close_matches(word.lower(), [one.lower() for one in known], n=1)
        meant = next((one for one in known if near and one.lower() == near[0]), "")
        lost = key in {HOOK, HELM_HOOK} and len(wrong) == len(said)
        end = ": it is neither applied nor run" if lost else ""
        sentence = f"`{foreign(word)}` of {_name(document)} is no {what}{end}"
        yield _finding(document, "argo.hook", key, sentence, meant)


def _options(document: Document, said: str) -> Iterator[Finding]:
    for option in read_list(said):
        if option.partition("=")[0] == "Force":
            continue
        wrong = what_is_wrong(option)
        if wrong:
            sentence = f"`{foreign(option)}` of {_name(document)} does not count: {wrong}"
            yield _finding(document, "argo.option", OPTIONS, sentence, "")


def _name(document: Document) -> str:
    name = foreign(text(document.body, "metadata", "name"))
    return f"{foreign(text(document.body, 'kind'))} `{name}`"


def _finding(document: Document, code: str, key: str, sentence: str, meant: str) -> Finding:
    place = document.place
    return Finding(
        code=code,
        severity=Severity.WARNING,
        sentence=sentence,
        where=Place(place.name, place.line, field=f'metadata.annotations["{key}"]'),
        fix=f"did you mean `{meant}`?" if meant else "",
    )
