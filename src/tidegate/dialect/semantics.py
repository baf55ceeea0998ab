"""What a plain unit is by somebody's rules: how it is ordered and judged, and at which pace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from tidegate.model.config import Switch
from tidegate.model.identity import Identity
from tidegate.model.moment import Ms, parse_duration
from tidegate.model.policy import Order, Policy, Tracking
from tidegate.model.semantics import ENDLESS, FLUX, Semantics

KSTATUS = "kstatus"
ADDITIVE = "feature-gates.AdditiveCELDependencyCheck"


def run_by(policy: Policy, rules: Semantics) -> Policy:
    """The policy by these rules, with its own word for how long and how often.

    Who tries for ever tries as often as by these rules, where these come to an end. A release is
    tried as a whole by any rules: each try is a revision. Flux knows stages and kstatus, and no
    waves; what is Flux's own is ordered as it says itself.
    """
    retry, often = policy.retry, rules.retry
    if retry and policy.release is None:
        retry = msgspec.structs.replace(retry, whole=often.whole, gates=often.gates)
    if retry and not often.whole and retry.limit == ENDLESS:
        retry = msgspec.structs.replace(
            retry, limit=often.limit, first=often.first, factor=often.factor, cap=often.cap
        )
    ruled = msgspec.structs.replace(
        rules, deadline=policy.timeout or rules.deadline, retry=retry or rules.retry
    )
    if rules.name == FLUX.name and policy.tracking is not Tracking.FLUX:
        return msgspec.structs.replace(policy, semantics=ruled, order=Order.STAGES, rules=KSTATUS)
    return msgspec.structs.replace(policy, semantics=ruled)


def told_policy(policy: Policy, settings: Mapping[str, Switch], home: str) -> Policy:
    """The policy as the unit's own controller has it, by what that is told; it is at home there."""
    if policy.tracking is not Tracking.FLUX:
        return policy

    def said(name: str) -> str:
        found = settings.get(f"{policy.manager}.{name}")
        return "" if found is None else str(found.value)

    every, account = _span(said("requeue-dependency")), said("default-service-account")
    semantics, identity = policy.semantics, policy.identity
    if every is not None:
        semantics = msgspec.structs.replace(semantics, dependency_every=every)
    if (workers := said("concurrent")).isdecimal() and int(workers):
        semantics = msgspec.structs.replace(semantics, workers=int(workers))
    if account and identity is None:
        identity = Identity(user=f"system:serviceaccount:{home}:{account}")
    return msgspec.structs.replace(
        policy,
        semantics=semantics,
        identity=identity,
        first_kinds=tuple(_kinds(said("custom-apply-stage-kinds"))),
        asks_readiness=said(ADDITIVE).lower() == "true",
    )


def _span(said: str) -> Ms | None:
    try:
        return parse_duration(said) if said else None
    except ValueError:
        return None


def _kinds(said: str) -> Iterator[tuple[str, str]]:
    """`rbac.authorization.k8s.io/Role,Secret`: of the core group the kind alone."""
    for one in said.split(","):
        group, _, kind = one.strip().rpartition("/")
        if kind:
            yield group, kind
