"""Random objects have the health that Flux's kstatus reports.

tests/data/health/kstatus.jsonl has the results of fluxcd/cli-utils 1.2.3 and of the Job reader of
fluxcd/pkg/runtime 0.110.3; `python -m tests.conformance.oracles.kstatus` records them again.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import zip_longest

import pytest

from tests.conformance.oracles.kstatus.answers import Answer, digest_of, read_answers
from tests.conformance.oracles.kstatus.bodies import NOW, Question, questions
from tidegate.health.kstatus import judge, judge_with_pods
from tidegate.model.k8s.verdict import Health, Verdict

QUESTIONS = list(questions())
RECORDED = read_answers()
STATUSES = {
    "Current": Health.HEALTHY,
    "InProgress": Health.PROGRESSING,
    "Terminating": Health.PROGRESSING,
    "Failed": Health.DEGRADED,
    "Unknown": Health.UNKNOWN,
}


def our_verdict(question: Question) -> Verdict:
    if question.pods is None:
        return judge(question.body, NOW)
    return judge_with_pods(question.body, question.pods, NOW)


def differs(verdict: Verdict, result: Answer) -> bool:
    """Where kstatus gives no reason, or no sentence because it gave up, we have our own."""
    return (
        verdict.health is not STATUSES[result.status]
        or (result.status == "Terminating")
        != (verdict.message == "Resource scheduled for deletion")
        or verdict.reason != (result.reason or verdict.reason)
        or (result.status != "Unknown" and verdict.message != result.message)
    )


def test_the_recorded_answers_belong_to_our_objects() -> None:
    requests, messages = (
        (digest_of(question) for question in QUESTIONS),
        (digest for digest, _ in RECORDED),
    )

    assert all(item == other for item, other in zip_longest(requests, messages))


def test_our_verdict_equals_that_of_kstatus() -> None:
    differing = (
        f"{number}: {verdict} where kstatus says {result}"
        for number, (question, (_, result)) in enumerate(zip(QUESTIONS, RECORDED, strict=True))
        if differs(verdict := our_verdict(question), result)
    )

    assert next(differing, "") == ""


def test_every_verdict_has_a_reason_code() -> None:
    reasons = {our_verdict(question).reason for question in QUESTIONS}

    assert {reason for reason in reasons if not re.fullmatch(r"[A-Z][A-Za-z]+", reason)} == set()


@pytest.mark.parametrize(
    "reason",
    [
        "ContainerCrashLooping",
        "DeploymentNotAvailable",
        "ExtraPods",
        "Installing",
        "JobFailed",
        "JobInProgress",
        "JobNotStarted",
        "LatestGenerationNotObserved",
        "LessAvailable",
        "LessCurrent",
        "LessLabelled",
        "LessReady",
        "LessReplicas",
        "LessUpdated",
        "NoDesiredNumber",
        "NoGeneration",
        "NoIPAssigned",
        "NoObservedGeneration",
        "NotBound",
        "PartitionRollout",
        "PodNotObserved",
        "PodNotScheduled",
        "PodPending",
        "PodRunningNotReady",
        "PodUnschedulable",
        "ProgressDeadlineExceeded",
        "ReplicaFailure",
        "ReplicaSetNotAvailable",
        "RevisionMismatch",
    ],
)
def test_the_objects_cover_every_rule(reason: str) -> None:
    assert sum(result.reason == reason for _, result in RECORDED) >= 3


def test_the_objects_cover_every_status() -> None:
    seen = Counter(result.status for _, result in RECORDED)

    assert {status for status, times in seen.items() if times >= 20} == set(STATUSES)
