"""Hooks of a Helm release that run for its next action.

An install runs install hooks only, and an upgrade upgrade hooks only; Argo CD runs both in each
sync.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from tidegate.dialect.argo.hooks import HELM_HOOK, Hook
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json
from tidegate.model.plans.manifest import Phase
from tidegate.model.units.release_history import ReleaseAction, ReleaseSpec, ReleaseTestSpec

TEST_EVENTS = frozenset({"test", "test-success"})
"""Events of tests; `test-success` is the name in Helm 2."""
TESTED_ACTIONS = frozenset({ReleaseAction.INSTALL, ReleaseAction.UPGRADE})
PHASES_BY_PREFIX = {"pre": Phase.PRE_SYNC, "post": Phase.POST_SYNC}


def narrow_hook(hook: Hook, body: dict[str, Json], release_spec: ReleaseSpec) -> Hook:
    """Return the hook with the phases in which the next action runs it."""
    annotations = get_mapping(body, "metadata", "annotations")
    events = {event.strip().lower() for event in str(annotations.get(HELM_HOOK) or "").split(",")}
    phases = [
        phase
        for when, phase in PHASES_BY_PREFIX.items()
        if f"{when}-{release_spec.action}" in events
    ]
    phases = phases if release_spec.action_spec.hooks else []
    is_test = is_enabled_test(events, get_text(body, "metadata", "name"), release_spec.test)
    if is_test and release_spec.action in TESTED_ACTIONS:
        phases.append(Phase.TEST)
    deletion_phases = hook.deletion_phases if release_spec.uninstall.hooks else ()
    return msgspec.structs.replace(hook, phases=tuple(phases), deletion_phases=deletion_phases)


def is_enabled_test(events: Collection[str], name: str, test_spec: ReleaseTestSpec) -> bool:
    """Return whether a hook is a test that is enabled."""
    return test_spec.runs and not TEST_EVENTS.isdisjoint(events) and test_spec.selects(name)
