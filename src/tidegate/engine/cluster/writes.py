"""Writes of single objects, and failures from their outcomes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.engine.cluster.procedures import ApiCall, Procedure
from tidegate.engine.evaluator import ObjectEvaluator, WritePayload
from tidegate.engine.messages import DELETING, Failure, WrittenObject
from tidegate.errors import sanitize
from tidegate.model.display import join_limited
from tidegate.model.k8s.json_fields import get_list, get_text
from tidegate.model.k8s.kinds import SECRET
from tidegate.model.k8s.objects import (
    ClusterRef,
    JsonObject,
    LiveObject,
    Propagation,
    Ref,
    object_body,
)
from tidegate.model.plans.plan import HOOK_FINALIZER, ItemAction, PlanItem, PlannedUnit
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.world import messages
from tidegate.world.requests import Get, PatchType, Verb, Write

UNSTRUCTURED_VALUE = lazy_regex(r"&value\.valueUnstructured\{Value:(.*)\}")
"""How API servers print a value that they could not decode."""
IMMUTABLE = "Immutable"
"""Reason of a write that would change an immutable field."""
ADOPT_TRIES = 3
"""Number of tries of an adoption while others write at the same time."""
OWN_FINALIZERS = frozenset({HOOK_FINALIZER, "foregroundDeletion", "orphan"})
"""Finalizers that we, or the garbage collector of Kubernetes, remove."""
STALE_OUTCOMES = messages.Conflict | messages.AlreadyExists | messages.NotFound
ABSENT_VERSION = "1"
"""A version that no object has: an apply for it creates an absent object and changes no other."""
REPLACE_TRIES = 5
"""Number of tries of a replacement while others write at the same time."""


def apply_object(
    object_ref: ClusterRef,
    item: PlanItem,
    unit: PlannedUnit,
    *,
    live: LiveObject | None,
    evaluator: ObjectEvaluator,
    urgent: bool,
) -> Procedure[messages.Outcome]:
    """Write an object with server-side apply or as a whole, and return the outcome.

    Before an apply, fields of earlier field managers are transferred to us.
    """
    body = None if live is None else object_body(live)
    payload = evaluator.build_payload(unit, item, body)
    if payload.replaces:
        return (
            yield from _replace_object(
                object_ref, item, unit, live=live, evaluator=evaluator, urgent=urgent
            )
        )
    if body is not None:
        yield from _adopt_fields(object_ref, item, unit, body, evaluator)
    (outcome,) = yield (
        ApiCall(object_ref.cluster, build_write(item, unit, payload, live), urgent),
    )
    return outcome


def apply_unshared(
    object_ref: ClusterRef,
    item: PlanItem,
    unit: PlannedUnit,
    *,
    live: LiveObject | None,
    evaluator: ObjectEvaluator,
    urgent: bool,
) -> Procedure[messages.Outcome | Failure]:
    """Write an object, unless another unit or a Helm release has taken it in the meantime.

    The write of an object that is not ours yet is for the version that was seen, so of two units
    that write an object at the same time, one finds the other as its owner.
    """
    tries = 0
    while True:
        body = None if live is None else object_body(live)
        owner = "" if body is None else evaluator.find_other_owner(unit, item, body)
        if owner:
            return Failure("Shared", f"belongs to {owner}", final=True)
        payload = evaluator.build_payload(unit, item, body)
        if body is not None and not payload.replaces:
            yield from _adopt_fields(object_ref, item, unit, body, evaluator)
        write = build_write(item, unit, payload, live)
        is_ours = body is not None and evaluator.find_owner(body) == unit.id.tracking_id
        if not is_ours and write.verb is Verb.APPLY:
            version = ABSENT_VERSION if live is None else live.resource_version
            write = msgspec.structs.replace(write, resource_version=version)
        (outcome,) = yield (ApiCall(object_ref.cluster, write, urgent),)
        tries += 1
        is_stale = isinstance(outcome, messages.Conflict | messages.AlreadyExists)
        if tries == REPLACE_TRIES or not is_stale:
            return outcome
        live = yield from _read_again(object_ref)


def _replace_object(
    object_ref: ClusterRef,
    item: PlanItem,
    unit: PlannedUnit,
    *,
    live: LiveObject | None,
    evaluator: ObjectEvaluator,
    urgent: bool,
) -> Procedure[messages.Outcome]:
    """Replace or create an object; on a conflict, read it and try again."""
    tries = 0
    while True:
        payload = evaluator.build_payload(unit, item, None if live is None else object_body(live))
        write = build_write(item, unit, WritePayload(payload.body, replaces=True), live)
        (outcome,) = yield (ApiCall(object_ref.cluster, write, urgent),)
        tries += 1
        if tries == REPLACE_TRIES or not isinstance(outcome, STALE_OUTCOMES):
            return outcome
        live = yield from _read_again(object_ref)


def _read_again(object_ref: ClusterRef) -> Procedure[LiveObject | None]:
    (current,) = yield (ApiCall(object_ref.cluster, Get(object_ref.ref)),)
    return current.live if isinstance(current, messages.Success) else None


def build_write(
    item: PlanItem,
    unit: PlannedUnit,
    payload: WritePayload,
    live: LiveObject | None,
    *,
    dry_run: bool = False,
) -> Write:
    """Return the write request for an item."""
    verb = Verb.APPLY
    if item.action is ItemAction.CREATE or (payload.replaces and live is None):
        verb = Verb.CREATE
    elif payload.replaces:
        verb = Verb.REPLACE
    return Write(
        verb=verb,
        ref=item.ref,
        body=payload.body,
        manager=unit.policy.manager,
        force=verb is Verb.APPLY,
        resource_version=live.resource_version if live is not None and verb is Verb.REPLACE else "",
        dry_run=dry_run,
    )


def _adopt_fields(
    object_ref: ClusterRef,
    item: PlanItem,
    unit: PlannedUnit,
    live: JsonObject,
    evaluator: ObjectEvaluator,
) -> Procedure[None]:
    for _ in range(ADOPT_TRIES):
        patch = evaluator.adoption_patch(unit, item, live)
        if patch is None:
            return
        request = Write(verb=Verb.PATCH, ref=object_ref.ref, body=patch, patch_type=PatchType.JSON)
        (outcome,) = yield (ApiCall(object_ref.cluster, request),)
        if not isinstance(outcome, messages.Conflict | messages.Invalid):
            return
        (current,) = yield (ApiCall(object_ref.cluster, Get(object_ref.ref)),)
        if not isinstance(current, messages.Success) or current.live is None:
            return
        live = object_body(current.live)


def delete_object(
    object_ref: ClusterRef, uid: str, propagation: Propagation, live: LiveObject | None
) -> Procedure[messages.Outcome]:
    """Delete an object; an object that is known to be terminating is left alone."""
    if live is not None and live.uid == uid and is_terminating(live):
        return messages.Success(live)
    request = Write(verb=Verb.DELETE, ref=object_ref.ref, uid=uid, propagation=propagation)
    (outcome,) = yield (ApiCall(object_ref.cluster, request),)
    return outcome


def is_terminating(live: LiveObject) -> bool:
    """Return whether an object has a `deletionTimestamp`."""
    return bool(get_text(object_body(live), "metadata", "deletionTimestamp"))


def deletion_message(body: JsonObject) -> str:
    """Return what keeps an object that is being deleted; empty if it is not being deleted."""
    if not get_text(body, "metadata", "deletionTimestamp"):
        return ""
    names = [str(name) for name in get_list(body, "metadata", "finalizers")]
    foreign = [sanitize(name) for name in names if name not in OWN_FINALIZERS]
    if not foreign:
        return DELETING
    noun = "finalizer" if len(foreign) == 1 else "finalizers"
    verb = "is" if len(foreign) == 1 else "are"
    return f"{DELETING}; {noun} {join_limited(foreign)} {verb} not removed"


REASONS: Mapping[type[messages.ErrorOutcome], str] = {
    messages.Conflict: "Conflict",
    messages.Forbidden: "Forbidden",
    messages.NotFound: "Missing",
    messages.AlreadyExists: "Exists",
    messages.NotServed: "NotServed",
    messages.TooManyRequests: "Throttled",
    messages.Expired: "Expired",
    messages.NoResponse: "NoResponse",
}
"""The reason that events give for each error outcome; `Invalid` and `Failed` have their own."""


def failure_from_outcome(outcome: messages.Outcome, ref: Ref | None = None) -> Failure:
    """Return the failure for an error outcome, and whether a retry is pointless."""
    if not messages.is_error(outcome):
        return Failure("Unexpected", "the response is not an object")
    if isinstance(outcome, messages.Invalid):
        is_immutable = "immutable" in outcome.message
        reason = IMMUTABLE if is_immutable else "Invalid"
        field_messages = cause_messages(outcome.causes, ref)
        return Failure(
            reason,
            _error_message(outcome, ref),
            final=not is_immutable,
            field_messages=field_messages,
        )
    reason = outcome.reason if isinstance(outcome, messages.ServerError) else REASONS[type(outcome)]
    is_unknown = (
        isinstance(outcome, messages.NoResponse)
        and outcome.delivery is messages.Delivery.MAYBE_SENT
    )
    return Failure(reason or "Failed", _error_message(outcome, ref), is_unknown=is_unknown)


def _error_message(error: messages.ErrorOutcome, ref: Ref | None) -> str:
    causes = error.causes if isinstance(error, messages.Invalid) else ()
    if ref is not None and ref.kind == SECRET:
        return causes_message(causes, ref) or "the API server rejected the Secret"
    return causes_message(causes, ref) or sanitize(error.message)


def causes_message(causes: tuple[messages.Cause, ...], ref: Ref | None = None) -> str:
    """Return the causes of an error in one sentence."""
    messages = dict.fromkeys(message for _, message in cause_messages(causes, ref))
    is_secret = ref is not None and ref.kind == SECRET
    return sanitize((", " if is_secret else "; ").join(messages))


def cause_messages(
    causes: tuple[messages.Cause, ...], ref: Ref | None = None
) -> tuple[tuple[str, str], ...]:
    """Return field and message of each cause. Values are left out for Secrets."""
    if ref is not None and ref.kind == SECRET:
        return tuple((cause.field, sanitize(_redacted_message(cause))) for cause in causes)
    return tuple((cause.field, sanitize(_cause_message(cause))) for cause in causes)


def _cause_message(cause: messages.Cause) -> str:
    """Return the message of a cause, with values as written and not in Go syntax."""
    message = UNSTRUCTURED_VALUE.sub(r"\1", cause.message)
    return f"{cause.field}: {message}" if cause.field else message


def _redacted_message(cause: messages.Cause) -> str:
    """Return the message of a cause without the value."""
    field = cause.field or "a value"
    expected, got, _ = cause.message.partition(", got ")
    is_type_error = got and expected.startswith("expected ")
    return f"{field}: {expected}" if is_type_error else f"{field} is invalid"


def written_object(live: LiveObject, *, before: LiveObject | None, status: str) -> WrittenObject:
    """Return the written object that a write has returned."""
    changed = (
        before is None or before.resource_version != live.resource_version or before.uid != live.uid
    )
    return WrittenObject(live.uid, live.generation, live.resource_version, status, changed=changed)
