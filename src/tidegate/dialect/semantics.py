"""What a plain unit is by somebody's rules: how it is ordered and judged, and at which pace."""

from __future__ import annotations

import msgspec

from tidegate.model.policy import Order, Policy, Tracking
from tidegate.model.semantics import FLUX, Semantics

KSTATUS = "kstatus"
MOST = 1_000
"""Who tries more often is taken to try for ever."""


def run_by(policy: Policy, rules: Semantics) -> Policy:
    """The policy by these rules, with its own word for how long and how often.

    Who tries for ever tries as often as by these rules, where these come to an end. Flux knows
    stages and kstatus, and no waves; what is Flux's own is ordered as it says itself.
    """
    retry = policy.retry and msgspec.structs.replace(
        policy.retry, whole=rules.retry.whole, gates=rules.retry.gates
    )
    if retry and not rules.retry.whole and retry.limit > MOST:
        retry = rules.retry
    ruled = msgspec.structs.replace(
        rules, deadline=policy.timeout or rules.deadline, retry=retry or rules.retry
    )
    if rules.name == FLUX.name and policy.tracking is not Tracking.FLUX:
        return msgspec.structs.replace(policy, semantics=ruled, order=Order.STAGES, rules=KSTATUS)
    return msgspec.structs.replace(policy, semantics=ruled)
