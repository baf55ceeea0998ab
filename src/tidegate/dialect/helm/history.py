"""Release history: the record changes of each Helm action.

A revision is pending before the first object is written, and deployed or failed after the last
gate; the previous one is superseded then. A pending revision of Tidegate is resumed; that of
another tool becomes failed, like Flux unlocks it, and the next revision starts.

Like `install.go`, `upgrade.go`, `rollback.go` and `uninstall.go` in `pkg/action` of Helm 4, and
`internal/reconcile/unlock.go` of helm-controller 1.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tidegate.dialect.helm.hooks import is_enabled_test
from tidegate.dialect.helm.record import ReleaseRecord, ReleaseStatus
from tidegate.dialect.helm.record_owner import (
    ACTION,
    CHART,
    CONTENT_KEY,
    RELEASE_NAMESPACE,
    RENDERED,
    RESUMED_ACTIONS,
    TESTED,
    TESTS_FAILED,
    TESTS_PASSED,
    UNIT,
    manifest_refs,
    newest_record,
    records_of_release,
)
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, Ref
from tidegate.model.times import Ms, format_rfc3339
from tidegate.model.units.release_history import (
    HookRun,
    PendingRevision,
    ReleaseAction,
    ReleaseContents,
    ReleaseHook,
    ReleaseSpec,
    ReleaseTestSpec,
    RevisionOutcome,
)

APPLY_METHOD = "ssa"
PENDING_STATES = {
    ReleaseAction.INSTALL: (ReleaseStatus.PENDING_INSTALL, "Initial install underway"),
    ReleaseAction.UPGRADE: (ReleaseStatus.PENDING_UPGRADE, "Preparing upgrade"),
}
COMPLETE_MESSAGES = {
    ReleaseAction.INSTALL: "Install complete",
    ReleaseAction.UPGRADE: "Upgrade complete",
}
FAILURE_NOUNS = {ReleaseAction.UPGRADE: "Upgrade", ReleaseAction.ROLLBACK: "Rollback"}
SUCCESSFUL = frozenset({ReleaseStatus.DEPLOYED, ReleaseStatus.SUPERSEDED})
HOOK_PHASES = {True: "Succeeded", False: "Failed", None: "Running"}


class RecordChanges(msgspec.Struct, frozen=True):
    """Record changes, in the order in which they are written."""

    changed: tuple[ReleaseRecord, ...] = ()
    created: tuple[ReleaseRecord, ...] = ()
    deleted: tuple[ReleaseRecord, ...] = ()


def plan_revision(
    key: str, records: Sequence[ReleaseRecord], release_spec: ReleaseSpec, unit_tracking_id: str
) -> PendingRevision:
    """Return the action and revision for content with this key, by the existing records."""
    records = records_of_release(records, release_spec)
    last = newest_record(records)
    if last is None:
        return PendingRevision(ReleaseAction.INSTALL, 1)
    refs = tuple(manifest_refs(last, release_spec.namespace))
    if last.status is ReleaseStatus.UNINSTALLED:
        return PendingRevision(ReleaseAction.INSTALL, last.number + 1)
    is_ours = (last.annotations.get(UNIT), last.annotations.get(CONTENT_KEY)) == (
        unit_tracking_id,
        key,
    )
    if (
        is_ours
        and last.status is ReleaseStatus.DEPLOYED
        and not is_rejected_by_tests(last, release_spec)
    ):
        if (
            release_spec.test.runs
            and TESTED not in last.annotations
            and enabled_tests(last, release_spec.test)
        ):
            return PendingRevision(
                ReleaseAction.TEST, last.number, is_resumed=True, previous_objects=refs
            )
        return PendingRevision(ReleaseAction.UNCHANGED, last.number, previous_objects=refs)
    if is_ours and last.status in RESUMED_ACTIONS:
        action = RESUMED_ACTIONS[last.status]
        return PendingRevision(
            action,
            last.number,
            is_resumed=True,
            previous_objects=_released_refs(records, release_spec),
        )
    return PendingRevision(
        ReleaseAction.UPGRADE,
        last.number + 1,
        previous_objects=_released_refs(records, release_spec),
    )


def enabled_tests(record: ReleaseRecord, test_spec: ReleaseTestSpec) -> list[dict[str, Json]]:
    """Return the hooks of a revision that are enabled tests."""
    hooks = get_mappings(record.content, "hooks")
    return [
        hook
        for hook in hooks
        if is_enabled_test([*map(str, get_list(hook, "events"))], get_text(hook, "name"), test_spec)
    ]


def is_rejected_by_tests(record: ReleaseRecord, release_spec: ReleaseSpec) -> bool:
    """Return whether the tests of a revision failed, and failures are not ignored."""
    counts = release_spec.test.runs and not release_spec.action_spec.ignore_test_failures
    return counts and record.annotations.get(TESTED) == TESTS_FAILED


def start_revision(
    contents: ReleaseContents,
    records: Sequence[ReleaseRecord],
    release_spec: ReleaseSpec,
    unit_tracking_id: str,
    *,
    pending: PendingRevision,
    now: Ms,
) -> RecordChanges:
    """Return the new pending revision, unlocked records of others, and expired records."""
    records = records_of_release(records, release_spec)
    unlocked = tuple(_unlock(record) for record in records if record.is_pending)
    latest = newest_record(records)
    status, description = PENDING_STATES[pending.action]
    first_deployed = (
        get_text(latest.content, "info", "first_deployed") if latest is not None else ""
    )
    is_new = pending.action is ReleaseAction.INSTALL
    content: dict[str, Json] = {
        "name": release_spec.name,
        "info": {
            "first_deployed": format_rfc3339(now)
            if is_new or not first_deployed
            else first_deployed,
            "last_deployed": format_rfc3339(now),
            "description": description,
            "status": status.value,
            "notes": contents.notes,
        },
        "chart": contents.chart,
        "config": contents.config,
        "manifest": contents.manifest,
        "hooks": [_hook(hook) for hook in contents.hooks],
        "version": pending.number,
        "namespace": release_spec.namespace,
        "apply_method": APPLY_METHOD,
    }
    labels = {} if latest is None else latest.labels
    annotations = {
        UNIT: unit_tracking_id,
        CONTENT_KEY: contents.key,
        ACTION: pending.action.value,
        RELEASE_NAMESPACE: release_spec.namespace,
        **({CHART: release_spec.chart} if release_spec.chart else {}),
    }
    new_record = ReleaseRecord(content, labels, annotations)
    return RecordChanges(
        unlocked, (new_record,), tuple(_expired_records(records, release_spec.max_history))
    )


def finish_revision(
    records: Sequence[ReleaseRecord], *, pending: PendingRevision, outcome: RevisionOutcome, now: Ms
) -> RecordChanges:
    """Return the finished revision; if it is deployed, the previous ones are superseded first."""
    revision = next((record for record in records if record.number == pending.number), None)
    if revision is None or not revision.is_pending:
        return RecordChanges()
    revision = _with_hooks(revision, outcome.hooks)
    if not outcome.passed:
        noun = FAILURE_NOUNS.get(pending.action, "Release")
        why = f'{noun} "{revision.name}" failed: {outcome.message}'
        return RecordChanges((revision.with_status(ReleaseStatus.FAILED, why),))
    older = [
        record
        for record in records
        if record.number < revision.number and record.status is ReleaseStatus.DEPLOYED
    ]
    superseded = (
        record.with_status(
            ReleaseStatus.SUPERSEDED, get_text(record.content, "info", "description")
        )
        for record in older
    )
    description = COMPLETE_MESSAGES.get(pending.action) or get_text(
        revision.content, "info", "description"
    )
    deployed = revision.with_status(
        ReleaseStatus.DEPLOYED, description, last_deployed=format_rfc3339(now)
    )
    return RecordChanges((*superseded, deployed))


def record_tests(
    records: Sequence[ReleaseRecord],
    release_spec: ReleaseSpec,
    *,
    pending: PendingRevision,
    outcome: RevisionOutcome,
) -> RecordChanges:
    """Return the revision with its test results; if tests did not finish, they are run again later.

    The first failed test is the last one that runs.
    """
    revision = next((record for record in records if record.number == pending.number), None)
    if revision is None:
        return RecordChanges()
    tests = {
        (get_text(hook, "kind"), get_text(hook, "name"))
        for hook in enabled_tests(revision, release_spec.test)
    }
    # A test may also have run as another hook before.
    ran = (run for run in outcome.hooks if run.is_test)
    runs = [run for run in ran if (run.ref.kind.name, run.ref.name) in tests]
    if not runs:
        return RecordChanges()
    revision = _with_hooks(revision, runs)
    annotations = {**revision.annotations}
    if any(run.passed is False for run in runs):
        annotations[TESTED] = TESTS_FAILED
    elif len([run for run in runs if run.passed]) == len(tests):
        annotations[TESTED] = TESTS_PASSED
    return RecordChanges((msgspec.structs.replace(revision, annotations=annotations),))


def find_rollback_target(
    records: Iterable[ReleaseRecord], before: int, release_spec: ReleaseSpec
) -> ReleaseRecord | None:
    """Return the last successful revision before this one; None if there is none."""
    return newest_record(
        record
        for record in records
        if record.number < before
        and record.status in SUCCESSFUL
        and not is_rejected_by_tests(record, release_spec)
    )


def plan_rollback(records: Sequence[ReleaseRecord], release_spec: ReleaseSpec) -> PendingRevision:
    """Return the next revision for a rollback; no action if there is no target."""
    last = newest_record(records)
    if last is None or find_rollback_target(records, last.number, release_spec) is None:
        return PendingRevision(ReleaseAction.UNCHANGED)
    return PendingRevision(ReleaseAction.ROLLBACK, last.number + 1)


def start_rollback(
    records: Sequence[ReleaseRecord],
    release_spec: ReleaseSpec,
    *,
    pending: PendingRevision,
    now: Ms,
) -> RecordChanges:
    """Return a copy of an earlier revision with the next number, pending."""
    target = find_rollback_target(records, pending.number - 1, release_spec)
    if target is None:
        return RecordChanges()
    info = get_mapping(target.content, "info")
    new_info: dict[str, Json] = {**info, "last_deployed": format_rfc3339(now)}
    hooks: list[Json] = [
        {**hook, "last_run": {"phase": ""}} for hook in get_mappings(target.content, "hooks")
    ]
    content = {**target.content, "version": pending.number, "info": new_info, "hooks": hooks}
    annotations = {**target.annotations}
    if CONTENT_KEY in annotations:
        annotations.setdefault(RENDERED, str(target.number))
    new_record = ReleaseRecord(content, target.labels, annotations)
    pending_record = new_record.with_status(
        ReleaseStatus.PENDING_ROLLBACK, f"Rollback to {target.number}"
    )
    expired = [
        old_record
        for old_record in _expired_records(records, release_spec.max_history)
        if old_record.number != target.number
    ]
    return RecordChanges(created=(pending_record,), deleted=tuple(expired))


def plan_uninstall(records: Sequence[ReleaseRecord]) -> PendingRevision:
    """Return the uninstall action; no action if nothing is installed."""
    last = newest_record(records)
    if last is None or last.status is ReleaseStatus.UNINSTALLED:
        return PendingRevision(ReleaseAction.UNCHANGED)
    is_started = last.status is ReleaseStatus.UNINSTALLING
    return PendingRevision(ReleaseAction.UNINSTALL, last.number, is_resumed=is_started)


def start_uninstall(records: Sequence[ReleaseRecord]) -> RecordChanges:
    """Return the last revision as uninstalling."""
    last = newest_record(records)
    if last is None or last.status is ReleaseStatus.UNINSTALLING:
        return RecordChanges()
    why = "Deletion in progress (or silently failed)"
    return RecordChanges((last.with_status(ReleaseStatus.UNINSTALLING, why),))


def finish_uninstall(
    records: Sequence[ReleaseRecord],
    release_spec: ReleaseSpec,
    *,
    outcome: RevisionOutcome,
    now: Ms,
) -> RecordChanges:
    """Delete the records of an uninstalled release, or set the status if history is kept."""
    if not outcome.passed:
        return RecordChanges()
    if not release_spec.keeps_history:
        return RecordChanges(deleted=tuple(sorted(records, key=lambda record: record.number)))
    last = newest_record(records)
    if last is None or last.status is ReleaseStatus.UNINSTALLED:
        return RecordChanges()
    uninstalled = last.with_status(
        ReleaseStatus.UNINSTALLED, "Uninstallation complete", deleted=format_rfc3339(now)
    )
    return RecordChanges((uninstalled,))


def _released_refs(records: Iterable[ReleaseRecord], release_spec: ReleaseSpec) -> tuple[Ref, ...]:
    """Return the objects that may exist: of the last deployed revision and of all newer ones."""
    ordered = sorted(records, key=lambda record: record.number, reverse=True)
    refs: dict[Ref, None] = {}
    for record in ordered:
        refs |= dict.fromkeys(manifest_refs(record, release_spec.namespace))
        if record.status is ReleaseStatus.DEPLOYED:
            break
    return tuple(refs)


def _unlock(record: ReleaseRecord) -> ReleaseRecord:
    status = record.status.value
    return record.with_status(ReleaseStatus.FAILED, f"Release unlocked from stale '{status}' state")


def _expired_records(records: Sequence[ReleaseRecord], max_history: int) -> list[ReleaseRecord]:
    """Return the oldest records beyond the limit; never the deployed one.

    The limit includes the revision about to be created.
    """
    if max_history <= 0 or len(records) < max_history:
        return []
    deployed = newest_record(
        record for record in records if record.status is ReleaseStatus.DEPLOYED
    )
    ordered = sorted(
        (record for record in records if record is not deployed), key=lambda record: record.number
    )
    return ordered[: len(records) - max_history + 1]


def _hook(hook: ReleaseHook) -> Json:
    return {
        "name": hook.name,
        "kind": hook.kind,
        "path": hook.path,
        "manifest": hook.manifest,
        "events": list(hook.events),
        "last_run": {"phase": ""},
        "weight": hook.weight,
        "delete_policies": list(hook.policies),
    }


def _with_hooks(record: ReleaseRecord, runs: Iterable[HookRun]) -> ReleaseRecord:
    """Return the record with the results of its hooks; the last run of a hook counts."""
    by_name = {(run.ref.kind.name, run.ref.name): run for run in runs}
    hooks: list[Json] = [
        {**hook, "last_run": _last_run(by_name[key])}
        if (key := (get_text(hook, "kind"), get_text(hook, "name"))) in by_name
        else hook
        for hook in get_mappings(record.content, "hooks")
    ]
    if not get_list(record.content, "hooks"):
        return record
    return msgspec.structs.replace(record, content={**record.content, "hooks": hooks})


def _last_run(run: HookRun) -> Json:
    result: dict[str, Json] = {
        "started_at": format_rfc3339(run.started_at),
        "phase": HOOK_PHASES[run.passed],
    }
    if run.passed is not None:
        result["completed_at"] = format_rfc3339(run.finished_at)
    return result
