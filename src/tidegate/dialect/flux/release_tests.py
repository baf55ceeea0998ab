"""What Flux says of a HelmRelease that is tested: a condition, Events, and what each test did."""

from __future__ import annotations

from tidegate.dialect.flux.status import READY, FluxConditions, Note
from tidegate.dialect.helm import belonging, book
from tidegate.dialect.helm.hooks import TESTS
from tidegate.dialect.helm.record import ReleaseRecord, ReleaseStatus
from tidegate.model.ledger import TrialTerms
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, mappings, text

Body = dict[str, Json]
TEST = "test"
TESTED = "TestSuccess"
SUCCEEDED, FAILED, AWAITING = "TestSucceeded", "TestFailed", "AwaitingTests"


def has_failed_tests(record: ReleaseRecord) -> bool:
    return record.notes.get(belonging.TESTED) == belonging.UNFIT


def is_awaiting_tests(record: ReleaseRecord, terms: TrialTerms) -> bool:
    """Whether a revision is brought, and nobody knows yet how its tests go."""
    is_brought = record.status is ReleaseStatus.DEPLOYED and belonging.TESTED not in record.notes
    return is_brought and bool(book.tests_of(record, terms))


def await_tests(conditions: FluxConditions, release: str, chart: str) -> None:
    told = f"Helm release {release} with chart {chart} is awaiting tests"
    conditions.set(TESTED, "Unknown", AWAITING, told)


def tell_tests(
    last: ReleaseRecord, terms: TrialTerms, conditions: FluxConditions, release: str, chart: str
) -> tuple[Note, ...]:
    """How the tests of a revision went that stands; one that has none is tested all the same."""
    if not terms.runs:
        conditions.drop(TESTED)
        return ()
    if has_failed_tests(last):
        told, reason = fail_tests(conditions, f"{release} with chart {chart}", _failures(last))
        status, kind = "False", "Warning"
    elif is_awaiting_tests(last, terms):
        return ()
    else:
        told = f"Helm test succeeded for release {release} with chart {chart}: {_count(last)}"
        status, reason, kind = "True", SUCCEEDED, "Normal"
        conditions.set(TESTED, status, reason, told)
    if not terms.ignores:
        conditions.set(READY, status, reason, told)
    return ((kind, reason, told),)


def fail_tests(conditions: FluxConditions, release: str, why: str) -> tuple[str, str]:
    """Tests have failed: the sentence, and the reason."""
    told = f"Helm test failed for release {release}: {why}"
    conditions.set(TESTED, "False", FAILED, told)
    return told, FAILED


def snapshot_tests(record: ReleaseRecord) -> Body:
    """What each test did that was run, by its name."""
    return {
        text(one, "name"): {
            "lastStarted": text(one, "last_run", "started_at"),
            "lastCompleted": text(one, "last_run", "completed_at"),
            "phase": text(one, "last_run", "phase"),
        }
        for one in _tests(record)
        if text(one, "last_run", "phase")
    }


def _tests(record: ReleaseRecord) -> list[Body]:
    hooks = mappings(record.content, "hooks")
    return [one for one in hooks if not TESTS.isdisjoint(map(str, listed(one, "events")))]


def _failures(record: ReleaseRecord) -> str:
    failed = (one for one in _tests(record) if text(mapping(one, "last_run"), "phase") == "Failed")
    return "; ".join(f"{text(one, 'kind')} {text(one, 'name')} failed" for one in failed)


def _count(record: ReleaseRecord) -> str:
    many = len(_tests(record))
    if not many:
        return "no test hooks"
    return f"{many} test hook{'s' if many > 1 else ''} completed successfully"
