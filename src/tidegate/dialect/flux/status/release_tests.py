"""Status of a HelmRelease with tests: the condition, the Events and the test hooks.

Like `internal/reconcile/test.go` of helm-controller 1.6.
"""

from __future__ import annotations

from tidegate.dialect.flux.status.kustomization import READY, EventFields, FluxConditions
from tidegate.dialect.helm import history, record_owner
from tidegate.dialect.helm.hooks import TEST_EVENTS
from tidegate.dialect.helm.record import ReleaseRecord, ReleaseStatus
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.units.release_history import ReleaseTestSpec

TEST = "test"
TESTED = "TestSuccess"
SUCCEEDED, FAILED, AWAITING = "TestSucceeded", "TestFailed", "AwaitingTests"


def has_failed_tests(record: ReleaseRecord) -> bool:
    return record.annotations.get(record_owner.TESTED) == record_owner.TESTS_FAILED


def is_awaiting_tests(record: ReleaseRecord, test_spec: ReleaseTestSpec) -> bool:
    """Return whether a revision is deployed and its tests have not finished."""
    is_untested = (
        record.status is ReleaseStatus.DEPLOYED and record_owner.TESTED not in record.annotations
    )
    return is_untested and bool(history.enabled_tests(record, test_spec))


def set_awaiting_tests(conditions: FluxConditions, release: str, chart: str) -> None:
    message = f"Helm release {release} with chart {chart} is awaiting tests"
    conditions.set(TESTED, "Unknown", AWAITING, message)


def report_tests(
    last: ReleaseRecord,
    test_spec: ReleaseTestSpec,
    conditions: FluxConditions,
    release: str,
    chart: str,
) -> tuple[EventFields, ...]:
    """Set the condition for the tests of a released revision, and return the Events.

    A revision without tests counts as tested.
    """
    if not test_spec.runs:
        conditions.drop(TESTED)
        return ()
    if has_failed_tests(last):
        message, reason = set_tests_failed(
            conditions, f"{release} with chart {chart}", _failure_message(last)
        )
        status, kind = "False", "Warning"
    elif is_awaiting_tests(last, test_spec):
        return ()
    else:
        message = (
            f"Helm test succeeded for release {release} with chart {chart}:"
            f" {_success_message(last)}"
        )
        status, reason, kind = "True", SUCCEEDED, "Normal"
        conditions.set(TESTED, status, reason, message)
    if not test_spec.ignores:
        conditions.set(READY, status, reason, message)
    return ((kind, reason, message),)


def set_tests_failed(conditions: FluxConditions, release: str, why: str) -> tuple[str, str]:
    """Set the condition for failed tests, and return message and reason."""
    message = f"Helm test failed for release {release}: {why}"
    conditions.set(TESTED, "False", FAILED, message)
    return message, FAILED


def snapshot_tests(record: ReleaseRecord) -> JsonObject:
    """Return the last run of each test that was run, by name."""
    return {
        get_text(hook, "name"): {
            "lastStarted": get_text(hook, "last_run", "started_at"),
            "lastCompleted": get_text(hook, "last_run", "completed_at"),
            "phase": get_text(hook, "last_run", "phase"),
        }
        for hook in _tests(record)
        if get_text(hook, "last_run", "phase")
    }


def _tests(record: ReleaseRecord) -> list[JsonObject]:
    hooks = get_mappings(record.content, "hooks")
    return [
        hook for hook in hooks if not TEST_EVENTS.isdisjoint(map(str, get_list(hook, "events")))
    ]


def _failure_message(record: ReleaseRecord) -> str:
    failed = (
        hook
        for hook in _tests(record)
        if get_text(get_mapping(hook, "last_run"), "phase") == "Failed"
    )
    return "; ".join(f"{get_text(hook, 'kind')} {get_text(hook, 'name')} failed" for hook in failed)


def _success_message(record: ReleaseRecord) -> str:
    count = len(_tests(record))
    if not count:
        return "no test hooks"
    return f"{count} test hook{'s' if count > 1 else ''} completed successfully"
