"""What a plain unit is by somebody's rules: how it is ordered and judged, and at which pace."""

from __future__ import annotations

import msgspec

from tidegate.model.policy import Order, Policy
from tidegate.model.semantics import FLUX, Semantics

KSTATUS = "kstatus"


def run_by(policy: Policy, rules: Semantics) -> Policy:
    """The policy by these rules. Flux knows stages and kstatus, and no waves."""
    if rules.name == FLUX.name:
        return msgspec.structs.replace(policy, semantics=rules, order=Order.STAGES, rules=KSTATUS)
    return msgspec.structs.replace(policy, semantics=rules)
