"""How a release is run: as an install, or as an upgrade."""

from __future__ import annotations

import msgspec

from tidegate.model.ledger import Action, ReleaseTerms
from tidegate.model.policy import Gates, Policy


def act(policy: Policy, terms: ReleaseTerms) -> Policy:
    """The policy of a unit for what is about to be done to its release."""
    how = terms.acting
    back = {Action.ROLLBACK: terms.rollback, Action.UNINSTALL: terms.uninstall}.get(
        how.remedy or Action.KEEP
    )
    handling = msgspec.structs.replace(policy.handling, replaces=how.replaces, checks=how.checks)
    return msgspec.structs.replace(
        policy,
        gates=Gates.ALL if how.waits else Gates.NONE,
        handling=handling,
        refuses_shared=how.refuses_others,
        timeout=how.timeout,
        remedy_timeout=back.timeout if back is not None else how.timeout,
        test_timeout=terms.test.timeout,
        forgives_tests=how.forgives,
        remedies_tests=how.remedy is not None,
        withdraws=back is terms.rollback and terms.rollback.cleans,
        retry=how.retry,
        release=terms,
    )
