"""What Flux asks of a Job.

This rule stands alone: Flux asks a Job neither for its generation nor whether it is being deleted.
"""

from __future__ import annotations

import msgspec

from tidegate.health.kstatus.fields import Body, Condition, conditions_of, text_or
from tidegate.health.kstatus.verdicts import current, failed, in_progress
from tidegate.model.reading import number, part
from tidegate.model.verdict import Verdict


def judge_job(body: Body) -> Verdict:
    """Current when it is complete or suspended, failed when it gave up, else in progress."""
    if part(body, "spec", "suspend") is True:
        return current("JobSuspended", "Job is suspended")
    for condition in conditions_of(body):
        if condition.name in {"Complete", "Failed"} and condition.holds:
            return msgspec.structs.replace(_ended(body, condition), final=True)
    if not text_or(body, "status", "startTime"):
        return in_progress("JobNotStarted", f"Job not started. active: 0/{_parallelism(body)}")
    done, active, lost = (
        number(body, "status", field) for field in ("succeeded", "active", "failed")
    )
    sentence = f"Job in progress. success:{done}, active: {active}, failed: {lost}"
    return in_progress("JobInProgress", sentence)


def _ended(body: Body, condition: Condition) -> Verdict:
    completions = number(body, "spec", "completions", default=_parallelism(body))
    if condition.name == "Complete":
        done = number(body, "status", "succeeded")
        sentence = f"Job Completed. succeeded: {done}/{completions}"
        return current("JobComplete", sentence, by=condition)
    lost = number(body, "status", "failed")
    return failed("JobFailed", f"Job Failed. failed: {lost}/{completions}", by=condition)


def _parallelism(body: Body) -> int:
    return number(body, "spec", "parallelism", default=1)
