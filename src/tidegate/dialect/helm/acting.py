"""How a release is run: as an install, or as an upgrade."""

from __future__ import annotations

import msgspec

from tidegate.model.ledger import ReleaseTerms
from tidegate.model.policy import Gates, Policy


def act(policy: Policy, terms: ReleaseTerms) -> Policy:
    """The policy of a unit for what is about to be done to its release."""
    how = terms.acting
    handling = msgspec.structs.replace(policy.handling, replaces=how.replaces, checks=how.checks)
    return msgspec.structs.replace(
        policy,
        gates=Gates.ALL if how.waits else Gates.NONE,
        handling=handling,
        refuses_shared=how.refuses_others,
        timeout=how.timeout,
        retry=how.retry,
        release=terms,
    )
