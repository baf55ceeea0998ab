"""Cases of Jobs."""

from __future__ import annotations

from tests.conformance.controllers.claims import says
from tests.support.trace_case import (
    Action,
    Apply,
    Case,
    Change,
    Pause,
    Remove,
    Until,
    UntilGone,
    WatchedObject,
)
from tests.support.trace_workloads import a_template
from tidegate.model.k8s.json_fields import get_int, get_mapping
from tidegate.model.k8s.kinds import JOB
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND, Ms

LOAD = WatchedObject(JOB, "load")
PASSED = Until(LOAD, says("Complete", "CompletionsReached", observed=False))


def a_job(*, outcome: str = "", run_for: str = "", exit_code: str = "", **spec: Json) -> Apply:
    notes = {"outcome": outcome, "run_for": run_for, "exit_code": exit_code}
    template = a_template(**{name: item for name, item in notes.items() if item})
    pod: Json = template["spec"]
    assert isinstance(pod, dict)
    body: JsonObject = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": LOAD.name},
        "spec": {"template": {**template, "spec": {**pod, "restartPolicy": "Never"}}, **spec},
    }
    return Apply(body)


def running(pods: int) -> Until:
    def holds(body: JsonObject) -> bool:
        status = get_mapping(body, "status")
        return get_int(status, "active") == get_int(status, "ready") == pods

    return Until(LOAD, holds)


def failed(reason: str) -> Until:
    return Until(LOAD, says("Failed", reason, observed=False))


def suspend(*, suspended: bool) -> Change:
    return Change(LOAD, {"spec": {"suspend": suspended}})


def _case(name: str, *actions: Action) -> Case:
    return Case(f"job-{name}", (LOAD,), actions)


def on_exit(action: str, *codes: int) -> Json:
    values: list[Json] = [*codes]
    return {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": values}}]}


JOBS = (
    _case("passes", a_job(run_for="2500ms"), PASSED),
    _case("passes-at-once", a_job(), PASSED),
    _case("passes-in-turns", a_job(run_for="2500ms", completions=3, parallelism=2), PASSED),
    _case("passes-as-a-queue", a_job(run_for="2500ms", parallelism=2), PASSED),
    _case("fails", a_job(outcome="fail", backoffLimit=0), failed("BackoffLimitExceeded")),
    _case("is-tried-again", a_job(outcome="fail", backoffLimit=2), failed("BackoffLimitExceeded")),
    _case(
        "takes-too-long",
        a_job(outcome="hang", activeDeadlineSeconds=4),
        failed("DeadlineExceeded"),
    ),
    _case(
        "passes-each-index",
        a_job(run_for="2500ms", completions=3, parallelism=3, completionMode="Indexed"),
        PASSED,
    ),
    _case(
        "fails-each-index",
        a_job(
            outcome="fail",
            completions=2,
            parallelism=2,
            completionMode="Indexed",
            backoffLimitPerIndex=1,
        ),
        failed("FailedIndexes"),
    ),
    _case(
        "fails-too-many-indexes",
        a_job(
            outcome="fail",
            completions=3,
            parallelism=1,
            completionMode="Indexed",
            backoffLimitPerIndex=0,
            maxFailedIndexes=1,
        ),
        failed("MaxFailedIndexesExceeded"),
    ),
    _case(
        "has-enough-indexes",
        a_job(
            run_for="2500ms",
            completions=3,
            parallelism=1,
            completionMode="Indexed",
            successPolicy={"rules": [{"succeededCount": 1}]},
        ),
        Until(LOAD, says("Complete", "SuccessPolicy", observed=False)),
    ),
    _case("is-removed-after-a-while", a_job(ttlSecondsAfterFinished=3), PASSED, UntilGone(LOAD)),
    _case(
        "is-suspended-and-resumed",
        a_job(run_for="5s"),
        running(1),
        suspend(suspended=True),
        Until(LOAD, says("Suspended", "JobSuspended", observed=False)),
        Pause(Ms(3 * SECOND)),
        suspend(suspended=False),
        PASSED,
    ),
    _case(
        "begins-suspended",
        a_job(suspend=True),
        Until(LOAD, says("Suspended", "JobSuspended", observed=False)),
        Pause(Ms(2 * SECOND)),
    ),
    _case(
        "fails-by-its-policy",
        a_job(outcome="fail", exit_code="42", podFailurePolicy=on_exit("FailJob", 42)),
        failed("PodFailurePolicy"),
    ),
    _case(
        "does-not-count-some-failures",
        a_job(
            outcome="fail", exit_code="42", backoffLimit=0, podFailurePolicy=on_exit("Ignore", 42)
        ),
        Pause(Ms(13 * SECOND)),
    ),
    _case(
        "counts-other-failures",
        a_job(
            outcome="fail", exit_code="7", backoffLimit=0, podFailurePolicy=on_exit("Ignore", 42)
        ),
        failed("BackoffLimitExceeded"),
    ),
    _case(
        "has-fewer-pods",
        a_job(outcome="hang", parallelism=3, completions=3),
        running(3),
        Change(LOAD, {"spec": {"parallelism": 1}}),
        running(1),
        Pause(Ms(2 * SECOND)),
    ),
    _case("is-deleted", a_job(outcome="hang"), running(1), Remove(LOAD), UntilGone(LOAD)),
)
