"""What a plain unit is by somebody's rules: how it is ordered and judged, and at which pace."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.model.config import Switch
from tidegate.model.moment import parse_duration
from tidegate.model.policy import Order, Policy, Tracking
from tidegate.model.semantics import ENDLESS, FLUX, Semantics

KSTATUS = "kstatus"


def run_by(policy: Policy, rules: Semantics) -> Policy:
    """The policy by these rules, with its own word for how long and how often.

    Who tries for ever tries as often as by these rules, where these come to an end. Flux knows
    stages and kstatus, and no waves; what is Flux's own is ordered as it says itself.
    """
    retry = policy.retry and msgspec.structs.replace(
        policy.retry, whole=rules.retry.whole, gates=rules.retry.gates
    )
    if retry and not rules.retry.whole and retry.limit == ENDLESS:
        retry = rules.retry
    ruled = msgspec.structs.replace(
        rules, deadline=policy.timeout or rules.deadline, retry=retry or rules.retry
    )
    if rules.name == FLUX.name and policy.tracking is not Tracking.FLUX:
        return msgspec.structs.replace(policy, semantics=ruled, order=Order.STAGES, rules=KSTATUS)
    return msgspec.structs.replace(policy, semantics=ruled)


def told_policy(policy: Policy, settings: Mapping[str, Switch]) -> Policy:
    """The policy as the unit's own controller has it, by what that is told."""
    said = settings.get(f"{policy.manager}.requeue-dependency")
    if said is None or policy.tracking is not Tracking.FLUX:
        return policy
    try:
        every = parse_duration(str(said.value))
    except ValueError:
        return policy
    semantics = msgspec.structs.replace(policy.semantics, dependency_every=every)
    return msgspec.structs.replace(policy, semantics=semantics)
