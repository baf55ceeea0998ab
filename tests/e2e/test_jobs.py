"""`tidegate jobs` on a real API server: what is run again, by the server's audit log."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from plane import ControlPlane
from plane.audit import read_audit
from tests.e2e.output import events_of
from tests.support.in_process_cli import CommandResult, type_in
from tests.support.kubectl import kubectl
from tests.support.repositories import deployment, job, setting
from tests.support.rollout_audit import WRITES
from tidegate.documents.dump import to_yaml

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]
_numbers = itertools.count(1)


class JobUnit:
    """A unit with Jobs in several waves and a hook after them, in a separate namespace."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane, self.folder = plane, folder / "unit"
        self.space = f"jobs-{next(_numbers)}"
        self.folder.mkdir()
        bodies = (
            *(job("prepare"), setting("early")),
            *(job("migrate", wave=1), setting("beside", wave=1)),
            *(deployment("web", wave=2), job("seed", wave=3), job("tell", hook="PostSync")),
        )
        for number, body in enumerate(bodies):
            (self.folder / f"{number}.yaml").write_text(to_yaml(body))
        kubectl(plane.kubeconfig("admin"), "create", "namespace", self.space)

    def run(self, *words: str | Path) -> CommandResult:
        target = ("--kubeconfig", self.plane.kubeconfig("tidegate"), "--context", "plane")
        user_home = str(self.folder.parent)
        return type_in(*words, "-n", self.space, *target, HOME=user_home)

    def writes(self) -> list[str]:
        """What the command did in our namespace, in order; finalizers are let go of by patches."""
        own_items = [
            (item.request_received_timestamp, item.verb, item.object_ref)
            for item in read_audit(self.plane.audit_log)
            if item.user.username == "tidegate"
            and item.verb in WRITES - {"update"}
            and item.object_ref.namespace == self.space
            and "dryRun=All" not in item.request_uri
        ]
        own_items.sort(key=lambda item: item[0])
        return [f"{verb} {target.resource}/{target.name}" for _, verb, target in own_items]


@pytest.fixture
def unit(plane: ControlPlane, tmp_path: Path) -> JobUnit:
    made = JobUnit(plane, tmp_path)
    synced = made.run("sync", made.folder, "--yes")
    assert synced.code == 0, synced.stdout + synced.stderr
    return made


def uids(unit: JobUnit) -> dict[str, str]:
    form = 'jsonpath={range .items[*]}{.metadata.name}={.metadata.uid}{"\\n"}{end}'
    args = ("get", "jobs,configmaps,deployments", "-n", unit.space, "-o", form)
    shown = kubectl(unit.plane.kubeconfig("admin"), *args)
    return dict(line.split("=") for line in shown.splitlines())


def test_a_job_runs_again_with_the_steps_that_wait_for_it(unit: JobUnit) -> None:
    before, written = uids(unit), len(unit.writes())

    ran = unit.run("jobs", "rerun", "migrate", unit.folder, "--yes")

    assert ran.code == 0, ran.stdout + ran.stderr
    after = uids(unit)
    assert {name for name in before if before[name] != after[name]} == {"migrate", "seed", "tell"}
    done = unit.writes()[written:]
    assert {item.partition("/")[2] for item in done} == {"migrate", "seed", "tell"}
    order = [item for item in done if item.startswith("delete ")]
    assert order == [f"delete jobs/{name}" for name in ("migrate", "seed", "tell")]
    twice = unit.run("jobs", "rerun", "seed", unit.folder, "--yes")
    assert twice.code == 0, twice.stdout + twice.stderr
    assert {name for name, uid in uids(unit).items() if uid != after[name]} == {"seed", "tell"}
    again = unit.run("sync", unit.folder, "--yes", "-o", "json")
    assert events_of(again.stdout, "object.written") == [], "the unit is as much done as it was"
    assert len(events_of(again.stdout, "rollout.finished")) == 1


def test_jobs_and_hooks_are_listed_in_order_with_their_status(unit: JobUnit) -> None:
    shown = unit.run("jobs", "list", unit.folder)
    rows = [json.loads(line) for line in unit.run("jobs", "list", unit.folder, "-o", "json").lines]

    assert [(row["step"], row["name"], row["hook"], row["status"]) for row in rows] == [
        ("wave 0", "prepare", False, "Complete"),
        ("wave 1", "migrate", False, "Complete"),
        ("wave 3", "seed", False, "Complete"),
        ("PostSync", "tell", True, "Complete"),
    ]
    assert shown.lines[1].split() == ["UNIT", "STEP", "OBJECT", "HOOK", "STATUS", "FINISHED"]
    assert all(row["finished"] for row in rows)
