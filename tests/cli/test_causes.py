"""The cause of a waiting gate is shown while it waits: in the live view, in lines and as JSON.

The views are kept in `tests/data/screens`; `--golden` rewrites them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from tests.cli.test_screen_run import check, text_of
from tests.support.failing_migration import MIGRATION
from tests.support.in_process_command import CommandOutput, run_in_process
from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import write_unit
from tidegate.model.rollouts.documents import EventDocument, event_from_document
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.unit import UnitId
from tidegate.report.rollout.live import ViewOptions, view_rows

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: registry.example.org/shop/web:1.2.3
"""


ACCOUNT = WEB.replace(
    "    spec:\n      containers", "    spec:\n      serviceAccountName: x\n      containers"
)


SECRET = f"{WEB}        envFrom: [{{secretRef: {{name: login}}}}]\n"


QUOTA = (
    "{apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: default},"
    " spec: {hard: {pods: '0'}}}"
)


POLICY = """{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration,
  metadata: {name: policy,
    annotations: {sandbox.tidegate.dev/denies: images must come from registry.internal}},
  webhooks: [{name: images.policy.example.org, sideEffects: None, admissionReviewVersions: [v1],
    clientConfig: {url: "https://policy.example.org/pods"},
    rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]}]}"""


SOON = 5 * SECOND
DEADLINE_SECONDS = 45


class Case(NamedTuple):
    """A unit, the effect on its containers, and the expected cause."""

    text: str
    effect: str
    cause: str
    given: str = ""


CASES = {
    "image": Case(WEB, "{effect: unpullable, when: {image: '*shop*'}}", "ImagePullBackOff: "),
    "secret": Case(SECRET, "", 'CreateContainerConfigError: secret "login" not found'),
    "account": Case(ACCOUNT, "", 'FailedCreate: Error creating: pods "web-'),
    "quota": Case(WEB, "", "is forbidden: exceeded quota: small, requested: pods=1", QUOTA),
    "webhook": Case(
        WEB,
        "",
        'FailedCreate: Error creating: admission webhook "images.policy.example.org" denied the'
        " request: images must come from registry.internal",
        POLICY,
    ),
    "node": Case(
        WEB, "{effect: unschedulable, when: {kind: Deployment}}", "FailedScheduling: 0/1 nodes"
    ),
    "crash": Case(
        MIGRATION,
        "{effect: fails, exit: 3, when: {kind: Job}}, "
        "{effect: prints, lines: [no such table], when: {kind: Job}}",
        "no such table",
    ),
}


SEEN = {
    "image": "ImagePullBackOff",
    "secret": "CreateContainerConfigError",
    "account": "FailedCreate: error looking up service",
    "quota": "FailedCreate: exceeded quota: small",
    "webhook": "FailedCreate: ",
}
"""What the narrowest picture has room for."""


def synced(case: Case, folder: Path, *args: str) -> CommandOutput:
    unit = write_unit(folder / "shop", web=case.text)
    scenario = folder / "scenario.yaml"
    given = f"given:\n  objects:\n  - {case.given}\n" if case.given else ""
    scenario.write_text(f"behaviours: [{case.effect}]\n{given}")
    more = ("--scenario", str(scenario), "--timeout", f"{DEADLINE_SECONDS}s")
    return run_in_process(folder, os.environ, ("sync", str(unit), "--sandbox", *more, *args))


def events_of(text: CommandOutput) -> list[Event]:
    lines = [line for line in text.stdout.splitlines() if "rollout.explained" not in line]
    units = {"default/shop": UnitId.plain("default", "shop")}
    return [
        event_from_document(msgspec.json.decode(line, type=EventDocument), units) for line in lines
    ]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_cause_is_printed_long_before_the_deadline(case: Case, tmp_path: Path) -> None:
    ran = synced(case, tmp_path)

    lines = [line for line in ran.stdout.splitlines() if case.cause in line]
    times = [float(match[1]) for line in lines if (match := re.match(r" +(\d+\.\d)s ", line))]
    assert times, ran.stdout
    assert times[0] < DEADLINE_SECONDS - 10
    assert ran.code == 8


@pytest.mark.parametrize("columns", [80, 160])
@pytest.mark.parametrize("name", ["image", "secret", "account", "quota", "webhook"])
def test_the_live_view_shows_the_cause_within_seconds(
    name: str, columns: int, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    events = events_of(synced(CASES[name], tmp_path, "-o", "json"))
    progress = RolloutProgress(events[0].at)
    now = Ms(events[0].at + SOON)
    for event in events:
        if event.at <= now:
            progress.add_event(event)

    rows = view_rows(progress, ViewOptions(width=columns - 1, height=12, title="default/shop"), now)

    assert SEEN[name] in text_of(rows)
    check(f"cause-{name}-{columns}.txt", text_of(rows), pytestconfig)


def test_a_rollout_passes_after_its_cause_is_fixed(tmp_path: Path) -> None:
    case = Case(WEB, "{effect: unpullable, for: 8s, when: {image: '*shop*'}}", "")

    events = events_of(synced(case, tmp_path, "-o", "json"))

    messages = [event.message for event in events if event.type is EventType.GATE_EXPLAINED]
    assert "ErrImagePull" in messages[0]
    assert events[-1].reason == "passed"


def test_a_slow_start_has_no_cause(tmp_path: Path) -> None:
    case = Case(WEB, "{effect: slow, by: 20s, when: {kind: Deployment}}", "")

    ran = synced(case, tmp_path, "-o", "json")

    assert ran.code == 0, ran.stderr
    types = {event.type for event in events_of(ran)}
    assert EventType.GATE_WAITING in types
    assert EventType.GATE_EXPLAINED not in types


def test_the_last_line_of_a_rollout_has_the_cause_with_log_and_events(
    wording: RecordedWording, tmp_path: Path
) -> None:
    failing = MIGRATION.replace("spec:\n  template", "spec:\n  backoffLimit: 0\n  template")
    case = CASES["crash"]._replace(text=failing.replace("OnFailure", "Never"))

    ran = synced(case, tmp_path, "-o", "json")

    last = msgspec.json.decode(ran.stdout.splitlines()[-1])
    (failure,) = last["failures"]
    assert ran.code == 4, ran.stderr
    assert (last["event"], last["outcome"]) == ("rollout.explained", "failed")
    assert (failure["kind"], failure["name"]) == ("Job", "migrate")
    assert (failure["unit"], failure["step"]) == ("default/shop", "default/shop/sync/0")
    wording(failure["why"][0].partition(": ")[2])
    assert failure["log"] == ["no such table"]
    assert any(event.startswith("BackoffLimitExceeded: ") for event in failure["events"])
