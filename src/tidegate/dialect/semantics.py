"""Policies under the semantics of another engine, and with the settings of a controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from tidegate.model.config import ControllerSetting
from tidegate.model.times import parse_optional_duration
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.model.units.policy import Order, Policy, Tracking
from tidegate.model.units.semantics import FLUX, UNLIMITED, Semantics

KSTATUS = "kstatus"
ADDITIVE_CEL_GATE = "feature-gates.AdditiveCELDependencyCheck"


def with_semantics(policy: Policy, semantics: Semantics) -> Policy:
    """Return the policy under these semantics, with its own timeout and retries.

    Endless retries get the limit of these semantics if those retry single steps. A release is
    always retried as a whole: each attempt is a revision. Flux semantics use stages and kstatus
    instead of waves; Flux units keep their own order.
    """
    retry, default_retry = policy.retry, semantics.retry
    if retry and policy.release is None:
        retry = msgspec.structs.replace(
            retry,
            restarts_unit=default_retry.restarts_unit,
            retries_gates=default_retry.retries_gates,
            remediates_before_retry=default_retry.remediates_before_retry,
            backs_off_after_remediation=default_retry.backs_off_after_remediation,
        )
    if retry and not default_retry.restarts_unit and retry.limit == UNLIMITED:
        retry = msgspec.structs.replace(
            retry,
            limit=default_retry.limit,
            backoff=default_retry.backoff,
            factor=default_retry.factor,
            backoff_limit=default_retry.backoff_limit,
        )
    resolved = msgspec.structs.replace(
        semantics, deadline=policy.timeout or semantics.deadline, retry=retry or semantics.retry
    )
    if semantics.name == FLUX.name and policy.tracking is not Tracking.FLUX:
        return msgspec.structs.replace(
            policy, semantics=resolved, order=Order.STAGES, rules=KSTATUS
        )
    return msgspec.structs.replace(policy, semantics=resolved)


def with_controller_settings(
    policy: Policy, settings: Mapping[str, ControllerSetting], namespace: str
) -> Policy:
    """Return the policy of a Flux unit with the flags of its controller applied.

    `namespace` is that of the unit, where the default service account is.
    """
    if policy.tracking is not Tracking.FLUX:
        return policy

    def flag_value(name: str) -> str:
        setting = settings.get(f"{policy.manager}.{name}")
        return "" if setting is None else str(setting.value)

    interval, account = (
        parse_optional_duration(flag_value("requeue-dependency")),
        flag_value("default-service-account"),
    )
    semantics, identity = policy.semantics, policy.identity
    if interval is not None:
        semantics = msgspec.structs.replace(semantics, dependency_interval=interval)
    if (workers := flag_value("concurrent")).isdecimal() and int(workers):
        semantics = msgspec.structs.replace(semantics, max_concurrent_units=int(workers))
    if account and identity is None:
        identity = ImpersonatedUser(user=f"system:serviceaccount:{namespace}:{account}")
    return msgspec.structs.replace(
        policy,
        semantics=semantics,
        identity=identity,
        first_kinds=tuple(_parse_kinds(flag_value("custom-apply-stage-kinds"))),
        requires_ready_dependencies=flag_value(ADDITIVE_CEL_GATE).lower() == "true",
    )


def _parse_kinds(text: str) -> Iterator[tuple[str, str]]:
    """Yield group and kind of `rbac.authorization.k8s.io/Role,Secret`; core has no group."""
    for entry in text.split(","):
        group, _, kind = entry.strip().rpartition("/")
        if kind:
            yield group, kind
