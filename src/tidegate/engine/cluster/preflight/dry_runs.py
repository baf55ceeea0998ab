"""Dry runs of objects, and what their outcomes mean.

Some objects are tried as new ones. An object whose namespace is part of the plan is tried in
the namespace `default`, where only errors about its manifest count. An object that must be
deleted and created again is tried in its place: the server reports AlreadyExists last.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import msgspec

from tidegate.engine.cluster.compare import ComparedItem
from tidegate.engine.cluster.preflight.admission_context import AdmissionContext
from tidegate.engine.cluster.preflight.probes import failing_webhook, webhook_failure
from tidegate.engine.cluster.writes import cause_messages, causes_message, failure_from_outcome
from tidegate.engine.messages import Failure
from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import ClusterRef, JsonObject, Ref
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.schema.violations import SchemaViolations
from tidegate.world import messages
from tidegate.world.requests import Verb, Write

DEFAULT_NAMESPACE = "default"
"""The namespace that every cluster has."""
SERVER_ERROR = 500
INCONCLUSIVE_OUTCOMES = (
    messages.NotFound
    | messages.NotServed
    | messages.AlreadyExists
    | messages.Conflict
    | messages.NoResponse
    | messages.TooManyRequests
)
DENIED = "denied"
NOT_FOUND_SUFFIXES = ("not found", "was found")
QUOTA = lazy_regex("(exceeded|failed) quota: ")
GroupKey: TypeAlias = tuple[object, ...]


class DryRunCandidate(NamedTuple):
    """One object to be written, with what decides about its dry run."""

    compared_item: ComparedItem
    violations: SchemaViolations
    needs_dry_run: bool
    """Whether the manifest alone is not conclusive."""
    can_dry_run: bool
    """Whether the server has everything that it needs for a conclusive dry run."""
    trial_namespace: str | None
    """The namespace in which the object is tried as a new one; None if it is not."""
    may_be_mutated: bool
    """Whether an admission rule may change the object."""
    is_admission_checked: bool
    """Whether an admission rule covers the object."""
    awaited_refs: tuple[ClusterRef, ...]
    """Planned objects that must serve before the dry run is conclusive."""
    group_key: GroupKey = ()
    """Objects with equal keys get the same answer; empty if the object needs its own dry run."""

    @property
    def should_dry_run(self) -> bool:
        """Whether a dry run is sent for the object."""
        return self.needs_dry_run and self.can_dry_run

    @property
    def is_relocated(self) -> bool:
        """Whether the object is tried in another namespace."""
        return self.trial_namespace not in (None, self.compared_item[1].ref.namespace)


def to_creation(write: Write, namespace: str) -> Write:
    """Return the write as the creation of a new object, possibly in another namespace."""
    ref, body = write.ref, write.body
    if ref.namespace != namespace:
        content: JsonObject = msgspec.json.decode(body)
        metadata: JsonObject = {**get_mapping(content, "metadata"), "namespace": namespace}
        ref, body = (
            Ref(ref.kind, namespace, ref.name),
            msgspec.json.encode(content | {"metadata": metadata}),
        )
    return msgspec.structs.replace(
        write, verb=Verb.CREATE, ref=ref, body=body, resource_version="", force=False, strict=True
    )


def is_conclusive(candidate: DryRunCandidate, outcome: messages.Outcome | None) -> bool:
    """Return whether nothing remains to be checked of an object without failures."""
    if candidate.awaited_refs or (candidate.is_relocated and candidate.is_admission_checked):
        return False
    if outcome is None:
        return not candidate.needs_dry_run
    return is_accepted(candidate, outcome)


def find_failure(
    candidate: DryRunCandidate,
    outcome: messages.Outcome | None,
    admission: AdmissionContext,
    *,
    is_last_check: bool,
) -> Failure | None:
    """Return the failure reported by the server, or that of the manifest without a dry run."""
    _, item, compared = candidate.compared_item
    invalid = () if candidate.may_be_mutated else candidate.violations.invalid
    if outcome is None:
        causes = candidate.violations.unreadable or invalid
    elif is_accepted(candidate, outcome) or not messages.is_error(outcome):
        return None
    elif is_last_check or not _is_inconclusive_for(candidate, outcome):
        return failure_from_outcome(outcome, item.ref)
    elif not candidate.is_relocated and not admission.may_be_accepted_later(
        compared.object_ref, item, outcome
    ):
        return _final_failure(outcome)
    else:
        causes = invalid if candidate.is_relocated or isinstance(outcome, messages.NotFound) else ()
    if not causes:
        return None
    field_messages = cause_messages(causes, item.ref)
    return Failure(
        "Invalid", causes_message(causes, item.ref), final=True, field_messages=field_messages
    )


def _final_failure(outcome: messages.ErrorOutcome) -> Failure:
    """Return the failure of a dry run that misses what nothing in the plan provides."""
    webhook = failing_webhook(outcome)
    failure = webhook_failure(outcome, webhook) if webhook else None
    return failure or Failure("Missing", sanitize(outcome.message), final=True)


def is_accepted(candidate: DryRunCandidate, outcome: messages.Outcome) -> bool:
    """Return whether the server accepts the object, or would if its name were not in use."""
    already_exists = candidate.trial_namespace is not None and isinstance(
        outcome, messages.AlreadyExists
    )
    return already_exists or not messages.is_error(outcome)


def _is_inconclusive_for(candidate: DryRunCandidate, outcome: messages.ErrorOutcome) -> bool:
    if isinstance(outcome, messages.Invalid):
        # A webhook of the plan may fix an object that is otherwise readable.
        return (
            candidate.may_be_mutated
            and bool(candidate.awaited_refs)
            and not candidate.violations.unreadable
        )
    return candidate.is_relocated or _is_inconclusive(outcome)


def _is_inconclusive(outcome: messages.ErrorOutcome) -> bool:
    """Return whether a dry run is not conclusive yet: what it needs may be part of the plan."""
    match outcome:
        case messages.ServerError():
            return outcome.status >= SERVER_ERROR
        case messages.Forbidden():
            # A pod is rejected while its ServiceAccount, PriorityClass or RuntimeClass is missing.
            # Quotas can change with the plan and its deletions.
            is_missing = (
                outcome.message.endswith(NOT_FOUND_SUFFIXES) and DENIED not in outcome.message
            )
            return is_missing or QUOTA.search(outcome.message) is not None
        case _:
            return isinstance(outcome, INCONCLUSIVE_OUTCOMES)
