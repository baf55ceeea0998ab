"""Job and CronJob, as Argo CD judges them.

Two habits of Argo CD are kept. A condition of a Job counts by its type, whatever its status is: a
Job that was suspended and runs again is Healthy. A CronJob that is suspended is Healthy too.
"""

from __future__ import annotations

from tidegate.health.argo.verdicts import (
    DEGRADED,
    HEALTHY,
    PROGRESSING,
    SUSPENDED,
    Body,
    conditions_of,
    is_true,
    message_of,
    reason_of,
    say,
)
from tidegate.model.reading import NOTHING, listed, number, part, text
from tidegate.model.verdict import Verdict


def judge_job(body: Body) -> Verdict:
    last = {text(one, "type"): one for one in conditions_of(body)}
    failed, complete = last.get("Failed", NOTHING), last.get("Complete", NOTHING)
    if failed:
        sentence = message_of(failed) or _counts(body)
        reason = reason_of(failed, default="Failed")
        return say(body, DEGRADED, reason, sentence, condition=failed, final=is_true(failed))
    if any(one.get("type") == "Suspended" and is_true(one) for one in conditions_of(body)):
        return say(body, SUSPENDED, "JobSuspended", "the Job is suspended")
    told = [one for one in conditions_of(body) if one.get("type") in ("Complete", "Suspended")]
    if not told:
        return say(body, PROGRESSING, "Running", _counts(body))
    reason = reason_of(complete, default="Complete") if complete else "JobResumed"
    sentence = message_of(told[-1]) or _counts(body)
    return say(body, HEALTHY, reason, sentence, condition=told[-1], final=is_true(complete))


def _counts(body: Body) -> str:
    """`0 of 3 pods have succeeded, 1 is active, 2 have failed`."""
    wanted = number(body, "spec", "completions", default=1)
    parts = [f"{number(body, 'status', 'succeeded')} of {wanted} pods have succeeded"]
    active, failed = number(body, "status", "active"), number(body, "status", "failed")
    if active:
        parts.append(f"{active} {'is' if active == 1 else 'are'} active")
    if failed:
        parts.append(f"{failed} {'has' if failed == 1 else 'have'} failed")
    return ", ".join(parts)


def judge_cron_job(body: Body) -> Verdict:
    if part(body, "spec", "suspend") is True:
        return say(body, HEALTHY, "CronJobSuspended", "CronJob is Suspended")
    if part(body, "status") is None:
        return say(body, PROGRESSING, "NoStatus", "Waiting for CronJob")
    if part(body, "status", "lastScheduleTime") is None:
        return say(body, HEALTHY, "NotScheduledYet", "CronJob has not been scheduled yet")
    return _judge_last_run(body)


def _judge_last_run(body: Body) -> Verdict:
    ended = part(body, "status", "lastSuccessfulTime")
    if ended is None:
        sentence = "The CronJob never completed successfully. It may not be healthy"
        return say(body, HEALTHY, "NeverSucceeded", sentence)
    if listed(body, "status", "active"):
        sentence = "The job is running. Its last execution may not have been successful"
        return say(body, HEALTHY, "Running", sentence)
    # Both are times of one form, so their texts are in the order of the times.
    if str(ended) < text(body, "status", "lastScheduleTime"):
        sentence = "CronJob has not completed its last execution successfully"
        return say(body, DEGRADED, "LastRunFailed", sentence)
    sentence = "CronJob has completed its last execution successfully"
    return say(body, HEALTHY, "LastRunSucceeded", sentence)
