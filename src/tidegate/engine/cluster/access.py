"""Access reviews: whether we may write and delete the objects of a plan.

Requested before the first write, if the cluster supports it: one SelfSubjectAccessReview for each
kind, namespace and verb of the planned changes. If a kind is denied, its objects are reviewed
by name, because a role may list names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from tidegate.engine.cluster.compare import ComparedItem, will_be_modified
from tidegate.engine.cluster.live_cache import LiveCache
from tidegate.engine.cluster.preflight.checks import ObjectFailure
from tidegate.engine.cluster.procedures import ApiCall, Procedure
from tidegate.engine.messages import ComparedObject, CompareResult, Failure
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.plans.plan import ItemAction, PlanItem, PlannedUnit
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.model.units.policy import Policy
from tidegate.model.units.unit import UnitId
from tidegate.world.messages import Outcome, Success
from tidegate.world.requests import Verb, Write

REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview")
"""The kind of the review request."""
CREATE = "create"


class AccessReview(NamedTuple):
    """Result of the access reviews."""

    failures: list[ObjectFailure]
    """Denied changes, reported for the first object of each kind and namespace."""
    allowed: list[ComparedItem]
    """The items that are allowed."""


def review_access(
    compared_items: list[ComparedItem], live_cache: LiveCache, units: Mapping[UnitId, PlannedUnit]
) -> Procedure[AccessReview]:
    """Review all required permissions, with the identity of each unit."""
    needed = [
        _required_permissions(compared_item, live_cache, units[compared_item[0].unit].policy)
        for compared_item in compared_items
    ]
    denied = yield from _find_denied(
        (permission for permissions in needed for permission in permissions), live_cache
    )
    named = (
        msgspec.structs.replace(permission, name=compared_item[1].ref.name)
        for compared_item, permissions in zip(compared_items, needed, strict=True)
        for permission in permissions
        if permission in denied and permission.verb != CREATE
    )
    denied |= yield from _find_denied(named, live_cache)
    review, reported = AccessReview([], []), set[_Permission]()
    for compared_item, permissions in zip(compared_items, needed, strict=True):
        name = compared_item[1].ref.name
        missing = [
            permission for permission in permissions if _is_missing(permission, name, denied)
        ]
        if not missing:
            review.allowed.append(compared_item)
        elif not reported.issuperset(missing):
            review.failures.append(_forbidden_failure(compared_item, missing, live_cache))
            reported.update(missing)
    return review


class _Permission(msgspec.Struct, frozen=True):
    """Permission for a verb on the objects of a kind in a namespace, or on one of them."""

    cluster: str
    kind: Kind
    namespace: str
    verb: str
    name: str = ""
    identity: ImpersonatedUser | None = None


def _find_denied(
    permissions: Iterable[_Permission], live_cache: LiveCache
) -> Procedure[set[_Permission]]:
    reviewed = list(dict.fromkeys(permissions))
    outcomes = yield tuple(_review_call(permission, live_cache) for permission in reviewed)
    return {
        permission
        for permission, outcome in zip(reviewed, outcomes, strict=True)
        if _is_denied(outcome)
    }


def _is_missing(permission: _Permission, name: str, denied: set[_Permission]) -> bool:
    """Return whether a permission is denied for an object.

    New objects cannot be permitted by name.
    """
    if permission not in denied:
        return False
    return permission.verb == CREATE or msgspec.structs.replace(permission, name=name) in denied


def _required_permissions(
    compared_item: ComparedItem, live_cache: LiveCache, policy: Policy
) -> list[_Permission]:
    """Return the permissions that an object needs; empty if the cluster cannot review them."""
    step, item, compared = compared_item
    if not will_be_modified(item, compared, confirmed=policy.confirmed):
        return []
    if not live_cache.is_served(compared.object_ref) or REVIEW not in live_cache.served_kinds.get(
        step.cluster, ()
    ):
        return []
    scope = (step.cluster, item.ref.kind, item.ref.namespace)
    return [_Permission(*scope, verb, identity=policy.identity) for verb in _verbs(item, compared)]


def _verbs(item: PlanItem, compared: ComparedObject) -> list[str]:
    """Return the verbs that an object needs; an apply needs patch, for new objects also create."""
    if item.action is ItemAction.DELETE:
        return ["delete"]
    only_creates = compared.replaces or item.action is ItemAction.CREATE
    match compared.result:
        case CompareResult.ABSENT:
            return [CREATE] if only_creates else [CREATE, "patch"]
        case CompareResult.RECREATE:
            return ["delete", CREATE] if only_creates else ["delete", CREATE, "patch"]
        case _:
            return ["update"] if compared.replaces else ["patch"]


def _review_call(permission: _Permission, live_cache: LiveCache) -> ApiCall:
    body = {
        "apiVersion": REVIEW.api_version,
        "kind": REVIEW.name,
        "spec": {
            "resourceAttributes": {
                "group": permission.kind.group,
                "version": permission.kind.version,
                "resource": live_cache.served_kinds[permission.cluster][permission.kind].plural,
                "namespace": permission.namespace,
                "verb": permission.verb,
                "name": permission.name,
            }
        },
    }
    review = Write(
        verb=Verb.CREATE, ref=Ref(REVIEW, "", ""), body=msgspec.json.encode(body), dry_run=True
    )
    return ApiCall(permission.cluster, review, identity=permission.identity)


class _ReviewStatus(msgspec.Struct, frozen=True):
    allowed: bool = False


class _ReviewResponse(msgspec.Struct, frozen=True):
    status: _ReviewStatus = _ReviewStatus(allowed=True)


def _is_denied(outcome: Outcome) -> bool:
    """Return whether a review was denied; a cluster that does not answer denies nothing."""
    if not isinstance(outcome, Success) or outcome.live is None:
        return False
    return not msgspec.json.decode(outcome.live.body, type=_ReviewResponse).status.allowed


def _forbidden_failure(
    compared_item: ComparedItem, permissions: list[_Permission], live_cache: LiveCache
) -> ObjectFailure:
    step, item, _ = compared_item
    verbs = " or ".join(permission.verb for permission in permissions)
    resource = live_cache.served_kinds[step.cluster][item.ref.kind].plural
    resource += f".{item.ref.kind.group}" if item.ref.kind.group else ""
    namespace_text = f" in namespace `{item.ref.namespace}`" if item.ref.namespace else ""
    message = (
        f"user is not allowed to {verbs} `{resource}`{namespace_text};"
        " request the permission, or choose another context or user"
    )
    return step, item.ref, Failure("Forbidden", message, final=True)
