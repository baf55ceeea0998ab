"""Status of a HelmRelease: its conditions, failure counters and release history.

Reasons and messages are those of `internal/reconcile/atomic_release.go` in helm-controller 1.6 and
of the actions next to it. The history is built from the release records.
Digests are not computed like Flux does: when Flux takes over, it sees a change and upgrades once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from tidegate.dialect.flux.status.kustomization import (
    PROGRESSING,
    READY,
    RECONCILING,
    RETRYING,
    STALLED,
    EventFields,
    FluxConditions,
    build_inventory,
    waiting_status,
)
from tidegate.dialect.flux.status.release_drift import (
    CORRECTION,
    DRIFTED,
    report_drift,
    report_failed_correction,
)
from tidegate.dialect.flux.status.release_tests import (
    TEST,
    TESTED,
    has_failed_tests,
    is_awaiting_tests,
    report_tests,
    set_awaiting_tests,
    set_tests_failed,
    snapshot_tests,
)
from tidegate.dialect.helm.history import SUCCESSFUL, find_rollback_target, is_rejected_by_tests
from tidegate.dialect.helm.record import ReleaseRecord, ReleaseStatus, read_record
from tidegate.dialect.helm.record_owner import ACTION, newest_record
from tidegate.dialect.times import format_go_duration
from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.model.rollouts.progress import SourceRevision, StatusUpdate, UnitPhase, UnitProgress
from tidegate.model.times import format_rfc3339
from tidegate.model.units.release_history import ReleaseAction, ReleaseSpec
from tidegate.model.units.semantics import UNLIMITED

RELEASED, REMEDIATED = "Released", "Remediated"
CONDITION_ORDER = (RECONCILING, STALLED, READY, RELEASED, TESTED, REMEDIATED, DRIFTED)
MAX_SNAPSHOTS = 5
ROLLBACK_PREFIX = "Rollback to "
SNAPSHOT_VERSION = "v2"
SHORT_DIGEST_LENGTH = 12
"""Length of the digest of an OCI artifact in the version of a chart."""
NO_TARGET_MESSAGE = (
    "Failed to perform remediation: missing target release for rollback: cannot remediate failed"
    " release"
)
FAILURE_COUNTERS = {
    ReleaseAction.INSTALL: "installFailures",
    ReleaseAction.UPGRADE: "upgradeFailures",
}


def helm_release_status(
    unit_resource: JsonObject, progress: UnitProgress, sources: Sequence[SourceRevision]
) -> StatusUpdate | None:
    """Return the new status of a HelmRelease, based on its current one; None if unchanged."""
    conditions, release_spec = (
        FluxConditions(unit_resource, format_rfc3339(progress.now), CONDITION_ORDER),
        progress.release,
    )
    is_interrupted = progress.phase is UnitPhase.FINISHED and progress.result not in {
        RolloutOutcome.PASSED,
        RolloutOutcome.FAILED,
    }
    if (
        release_spec is None
        or progress.phase is UnitPhase.WAITING
        or (is_interrupted and not progress.has_operation)
    ):
        return waiting_status(unit_resource, progress, conditions)
    records = [read_record(msgspec.json.decode(entry)) for entry in progress.release_records]
    status: JsonObject = {
        **get_mapping(unit_resource, "status"),
        "storageNamespace": release_spec.storage,
    }
    events: tuple[EventFields, ...] = ()
    if progress.phase is UnitPhase.RUNNING:
        activity = _current_activity(progress, release_spec, conditions, newest_record(records))
        conditions.set(READY, "Unknown", PROGRESSING, activity)
        conditions.set(RECONCILING, "True", PROGRESSING, activity)
        conditions.drop(STALLED)
    elif progress.result == RolloutOutcome.PASSED:
        events = _set_succeeded(progress, release_spec, conditions, records)
        status = {key: value for key, value in status.items() if key not in _FAILURE_FIELDS}
        status |= _observed_generation(unit_resource)
    elif progress.has_same_revision and progress.is_valid:
        events = _set_correction_failed(progress, conditions, records)
    else:
        events = _set_failed(progress, release_spec, conditions, records)
        status |= _failure_counts(progress, release_spec)
        # Stalled: the controller does not retry, so the generation counts as observed.
        status |= (
            _observed_generation(unit_resource)
            if progress.is_valid and conditions.has(STALLED, "True")
            else {}
        )
    digest = _artifact_digest(records, sources)
    status |= (
        {}
        if progress.has_same_revision
        else _last_attempt(unit_resource, progress, records, digest)
    )
    status |= {
        "conditions": conditions.to_list(),
        "history": _history(
            records, get_mappings(unit_resource, "status", "history"), digest, release_spec
        ),
        "inventory": build_inventory(get_mapping(unit_resource, "status"), progress),
    }
    return StatusUpdate(status, events)


_FAILURE_FIELDS = frozenset({"failures", *FAILURE_COUNTERS.values()})


def _observed_generation(unit_resource: JsonObject) -> JsonObject:
    return {"observedGeneration": get_int(unit_resource, "metadata", "generation")}


def _current_activity(
    progress: UnitProgress,
    release_spec: ReleaseSpec,
    conditions: FluxConditions,
    last: ReleaseRecord | None,
) -> str:
    """Return the action in progress and its timeout."""
    action, timeout = release_spec.action.value, release_spec.action_spec.timeout
    if last is not None and is_awaiting_tests(last, release_spec.test):
        _set_released(conditions, last)
        set_awaiting_tests(conditions, _revision_name(last), _chart(last))
        action, timeout = TEST, release_spec.test.timeout
    elif progress.has_same_revision:
        action = CORRECTION
    return f"Running '{action}' action with timeout of {format_go_duration(timeout)}"


def _set_succeeded(
    progress: UnitProgress,
    release_spec: ReleaseSpec,
    conditions: FluxConditions,
    records: Sequence[ReleaseRecord],
) -> tuple[EventFields, ...]:
    last = newest_record(records)
    if last is None:
        return ()
    reason, message = _set_released(conditions, last)
    tested = report_tests(last, release_spec.test, conditions, _revision_name(last), _chart(last))
    drifted = report_drift(progress, release_spec.drift, conditions, _revision_name(last))
    if not progress.has_operation:
        return drifted
    return (
        *(() if progress.has_same_revision else (("Normal", reason, message),)),
        *tested,
        *drifted,
    )


def _set_released(conditions: FluxConditions, last: ReleaseRecord) -> tuple[str, str]:
    """Set the conditions of a released revision, and return reason and message."""
    action = (
        last.annotations.get(ACTION, ReleaseAction.UPGRADE)
        if last.number == 1
        else ReleaseAction.UPGRADE
    )
    message = (
        f"Helm {action} succeeded for release {_revision_name(last)} with chart {_chart(last)}"
    )
    reason = f"{action.capitalize()}Succeeded"
    conditions.set(RELEASED, "True", reason, message)
    conditions.set(READY, "True", reason, message)
    conditions.drop(RECONCILING, STALLED, REMEDIATED)
    return reason, message


def _set_correction_failed(
    progress: UnitProgress, conditions: FluxConditions, records: Sequence[ReleaseRecord]
) -> tuple[EventFields, ...]:
    """Set the conditions of a release whose drift could not be corrected, and return the Events."""
    last = newest_record(records)
    if last is None:
        return ()
    _set_released(conditions, last)
    why = progress.message or progress.reason
    events = report_failed_correction(progress, conditions, _revision_name(last), why)
    return events if progress.has_operation else ()


def _set_failed(
    progress: UnitProgress,
    release_spec: ReleaseSpec,
    conditions: FluxConditions,
    records: Sequence[ReleaseRecord],
) -> tuple[EventFields, ...]:
    """Set the conditions of a failed release or remediation, and return the Events."""
    action, why = release_spec.action, progress.message or progress.reason
    stopped = progress.result == RolloutOutcome.STOPPED
    if stopped:
        why = f"the rollout was stopped: {why}" if why else "the rollout was stopped"
    if not progress.is_valid:
        conditions.set(READY, "False", "ArtifactFailed", why)
        return ()
    message, reason = _set_failure_condition(progress, release_spec, conditions, records, why)
    events: list[EventFields] = [("Warning", reason, message)]
    conditions.drop(REMEDIATED)
    if (
        progress.remediation_succeeded is not None
        and release_spec.action_spec.remediation is not None
    ):
        message, reason = _remediation_message(
            release_spec, records, why, succeeded=progress.remediation_succeeded
        )
        conditions.set(
            REMEDIATED, "True" if progress.remediation_succeeded else "False", reason, message
        )
        events.append(("Normal" if progress.remediation_succeeded else "Warning", reason, message))
    conditions.set(READY, "False", reason, message)
    retry = release_spec.action_spec.retry
    if stopped or (retry is not None and retry.limit == UNLIMITED):
        delay = format_go_duration(retry.backoff) if retry is not None else ""
        retry_message = why if stopped else f"retrying after {delay}"
        conditions.set(RECONCILING, "True", RETRYING, retry_message)
        conditions.drop(STALLED)
    else:
        stall_reason, why = (
            "RetriesExceeded",
            f"Failed to {action} after {progress.retries + 1} attempt(s)",
        )
        if progress.remediation_succeeded is None and _has_no_rollback_target(
            release_spec, records
        ):
            stall_reason, why = "MissingRollbackTarget", NO_TARGET_MESSAGE
        conditions.set(STALLED, "True", stall_reason, why)
        conditions.drop(RECONCILING)
        events.append(("Warning", stall_reason, why))
    return tuple(events) if progress.has_operation else ()


def _has_no_rollback_target(release_spec: ReleaseSpec, records: Sequence[ReleaseRecord]) -> bool:
    """Return whether a rollback is the remediation, and there is no revision to roll back to."""
    last = newest_record(records)
    is_rollback = (
        release_spec.action_spec.remediation is ReleaseAction.ROLLBACK and last is not None
    )
    return (
        is_rollback
        and last is not None
        and find_rollback_target(records, last.number, release_spec) is None
    )


def _set_failure_condition(
    progress: UnitProgress,
    release_spec: ReleaseSpec,
    conditions: FluxConditions,
    records: Sequence[ReleaseRecord],
    why: str,
) -> tuple[str, str]:
    """Set the condition of a failed release or test, and return message and reason."""
    name, action = f"{release_spec.namespace}/{release_spec.name}", release_spec.action
    if progress.is_test_failure:
        tested = newest_record(record for record in records if has_failed_tests(record))
        if tested is not None:
            _set_released(conditions, tested)
            return set_tests_failed(
                conditions, f"{_revision_name(tested)} with chart {_chart(tested)}", why
            )
        return set_tests_failed(conditions, name, why)
    failed = newest_record(record for record in records if record.status is ReleaseStatus.FAILED)
    chart = f" with chart {_chart(failed)}" if failed is not None else ""
    message, reason = (
        f"Helm {action} failed for release {name}{chart}: {why}",
        f"{action.capitalize()}Failed",
    )
    conditions.set(RELEASED, "False", reason, message)
    conditions.drop(TESTED)
    return message, reason


def _remediation_message(
    release_spec: ReleaseSpec, records: Sequence[ReleaseRecord], why: str, *, succeeded: bool
) -> tuple[str, str]:
    """Return message and reason of a remediation."""
    outcome = "succeeded" if succeeded else f"failed: {why}"
    suffix = "Succeeded" if succeeded else "Failed"
    if release_spec.action_spec.remediation is not ReleaseAction.ROLLBACK:
        name = f"{release_spec.namespace}/{release_spec.name}"
        return f"Helm uninstall remediation for release {name} {outcome}", f"Uninstall{suffix}"
    last = newest_record(records)
    description = get_text(last.content, "info", "description") if last is not None else ""
    target_number = description.removeprefix(ROLLBACK_PREFIX)
    target = next((record for record in records if str(record.number) == target_number), last)
    if target is None:
        return f"Helm rollback to previous release {outcome}", f"Rollback{suffix}"
    target_name = f"{_revision_name(target)} with chart {_chart(target)}"
    return f"Helm rollback to previous release {target_name} {outcome}", f"Rollback{suffix}"


def _revision_name(record: ReleaseRecord) -> str:
    return f"{record.namespace}/{record.name}.v{record.number}"


def _chart(record: ReleaseRecord) -> str:
    return "@".join(record.chart)


def _artifact_digest(records: Sequence[ReleaseRecord], sources: Sequence[SourceRevision]) -> str:
    """Return the digest of the OCI artifact that the newest chart version names, if any."""
    attempted = newest_record(record for record in records if not _is_rollback(record))
    build = attempted.chart[1].rpartition("+")[2] if attempted is not None else ""
    digests = (source.revision.digest for source in sources)
    return next((digest for digest in digests if build and build == _short_digest(digest)), "")


def _short_digest(digest: str) -> str:
    return digest.rpartition(":")[2][:SHORT_DIGEST_LENGTH]


def _last_attempt(
    unit_resource: JsonObject, progress: UnitProgress, records: Sequence[ReleaseRecord], digest: str
) -> JsonObject:
    """Return the fields about the last attempt; empty if there was none."""
    attempted = newest_record(record for record in records if not _is_rollback(record))
    release_spec = progress.release
    if attempted is None or release_spec is None or not progress.has_operation:
        return {}
    return {
        "lastAttemptedGeneration": get_int(unit_resource, "metadata", "generation"),
        "lastAttemptedReleaseAction": release_spec.action.value,
        "lastAttemptedRevision": attempted.chart[1],
        "lastAttemptedConfigDigest": _digest(attempted.config),
        **({"lastAttemptedRevisionDigest": digest} if digest else {}),
    }


def _failure_counts(progress: UnitProgress, release_spec: ReleaseSpec) -> JsonObject:
    """Return the failure counters since the last change."""
    if (
        not progress.has_operation
        or progress.result != RolloutOutcome.FAILED
        or release_spec.action not in FAILURE_COUNTERS
    ):
        return {}
    count = progress.retries + 1
    return {"failures": count, FAILURE_COUNTERS[release_spec.action]: count}


def _is_rollback(record: ReleaseRecord) -> bool:
    return get_text(record.content, "info", "description").startswith(ROLLBACK_PREFIX)


def _history(
    records: Iterable[ReleaseRecord],
    snapshots: Sequence[JsonObject],
    digest: str,
    release_spec: ReleaseSpec,
) -> list[Json]:
    """Return the snapshots, newest first, down to the previous successful revision."""
    digests = {
        _short_digest(oci_digest): oci_digest
        for oci_digest in (get_text(old, "ociDigest") for old in snapshots)
        if oci_digest
    }
    digests |= {_short_digest(digest): digest} if digest else {}
    ordered = sorted(records, key=lambda record: record.number, reverse=True)
    if not ordered:
        return [
            {**snapshot, "status": ReleaseStatus.UNINSTALLED.value}
            for snapshot in snapshots[:1]
            if get_text(snapshot, "status") != ReleaseStatus.UNINSTALLED
        ] or [*snapshots[:1]]
    history: list[Json] = []
    for record in ordered[:MAX_SNAPSHOTS]:
        history.append(_snapshot(record, digests.get(record.chart[1].rpartition("+")[2], "")))
        if (
            len(history) > 1
            and record.status in SUCCESSFUL
            and not is_rejected_by_tests(record, release_spec)
        ):
            break
    return history


def _snapshot(record: ReleaseRecord, artifact: str) -> JsonObject:
    chart, info = (
        get_mapping(record.content, "chart", "metadata"),
        get_mapping(record.content, "info"),
    )
    snapshot: JsonObject = {
        "apiVersion": SNAPSHOT_VERSION,
        "digest": _digest({**record.content, "info": {}}),
        "name": record.name,
        "namespace": record.namespace,
        "version": record.number,
        "status": record.status.value,
        "chartName": get_text(chart, "name"),
        "chartVersion": get_text(chart, "version"),
        "configDigest": _digest(record.config),
        "firstDeployed": get_text(info, "first_deployed"),
        "lastDeployed": get_text(info, "last_deployed"),
    }
    if get_text(chart, "appVersion"):
        snapshot["appVersion"] = get_text(chart, "appVersion")
    if artifact:
        snapshot["ociDigest"] = artifact
    tests = snapshot_tests(record)
    return {**snapshot, "testHooks": tests} if tests else snapshot


def _digest(body: JsonObject) -> str:
    encoded = msgspec.json.encode(body, order="sorted")
    return f"sha256:{hashlib.sha256(encoded).hexdigest()}"
