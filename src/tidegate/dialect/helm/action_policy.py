"""Policy of a unit for the next action of its Helm release."""

from __future__ import annotations

import msgspec

from tidegate.model.units.policy import GateScope, Policy
from tidegate.model.units.release_history import ReleaseAction, ReleaseSpec


def with_action(policy: Policy, release_spec: ReleaseSpec) -> Policy:
    """Return the policy of a unit for the next action of its release."""
    action_spec = release_spec.action_spec
    remedy_spec = {
        ReleaseAction.ROLLBACK: release_spec.rollback,
        ReleaseAction.UNINSTALL: release_spec.uninstall,
    }.get(action_spec.remediation or ReleaseAction.UNCHANGED)
    handling = msgspec.structs.replace(
        policy.object_options, replace=action_spec.replaces, validate=action_spec.checks
    )
    return msgspec.structs.replace(
        policy,
        gates=GateScope.ALL if action_spec.waits else GateScope.NONE,
        object_options=handling,
        fail_on_shared_resource=action_spec.fail_on_other_owner,
        timeout=action_spec.timeout,
        remediation_timeout=remedy_spec.timeout if remedy_spec is not None else action_spec.timeout,
        test_timeout=release_spec.test.timeout,
        ignore_test_failures=action_spec.ignore_test_failures,
        remediate_test_failures=action_spec.remediation is not None,
        delete_created_on_rejection=remedy_spec is release_spec.rollback
        and release_spec.rollback.cleanup_on_fail,
        retry=action_spec.retry,
        release=release_spec,
    )
