"""Hooks of a release: those that Helm runs for what is about to be done.

An install runs those for installs alone, and an upgrade those for upgrades; Argo CD runs both for
each sync.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from tidegate.dialect.argo.hooks import HELM_HOOK, Hook
from tidegate.model.ledger import Action, ReleaseTerms, TrialTerms
from tidegate.model.manifest import Phase
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, text

TESTS = frozenset({"test", "test-success"})
"""Events of tests; the second is how Helm 2 called them."""
TESTED = frozenset({Action.INSTALL, Action.UPGRADE})
WHEN = {"pre": Phase.PRE_SYNC, "post": Phase.POST_SYNC}


def narrowed(hook: Hook, body: dict[str, Json], terms: ReleaseTerms) -> Hook:
    """The hook with the phases that it has a turn in."""
    notes = mapping(body, "metadata", "annotations")
    events = {one.strip().lower() for one in str(notes.get(HELM_HOOK) or "").split(",")}
    phases = [phase for when, phase in WHEN.items() if f"{when}-{terms.action}" in events]
    phases = phases if terms.acting.hooks else []
    is_test = is_tested(events, text(body, "metadata", "name"), terms.test)
    if is_test and terms.action in TESTED:
        phases.append(Phase.TEST)
    ends = hook.ends if terms.uninstall.hooks else ()
    return msgspec.structs.replace(hook, phases=tuple(phases), ends=ends)


def is_tested(events: Collection[str], name: str, terms: TrialTerms) -> bool:
    """Whether a hook is a test, and is run."""
    return terms.runs and not TESTS.isdisjoint(events) and terms.takes(name)
