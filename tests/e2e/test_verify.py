"""`tidegate verify` on a real API server, after a correct rollout and after an early write."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.output import lines_with
from tests.support.in_process_cli import CommandResult, type_in
from tests.support.kubectl import kubectl
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import deployment, job, setting
from tidegate.documents.dump import to_yaml
from tidegate.model.times import SECOND, parse_timestamp

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]
_numbers = itertools.count(1)


class VerifiedUnit:
    """A directory of manifests for a separate namespace: a Job, and three waves after it."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane, self.folder = plane, folder / "unit"
        self.space = f"verify-{next(_numbers)}"
        self.record = folder / "run.jsonl"
        self.folder.mkdir()
        prepare = job("prepare")
        prepare["spec"]["template"]["metadata"] = {  # type: ignore[index,call-overload]
            "annotations": {"test.tidegate.dev/run-for": "3s"}
        }
        waves = (prepare, setting("second", wave=1), deployment("third", wave=2))
        for number, body in enumerate((*waves, setting("last", wave=3))):
            (self.folder / f"{number}.yaml").write_text(to_yaml(body))
        self.kubectl("create", "namespace", self.space)

    def kubectl(self, *words: str) -> str:
        return kubectl(self.plane.kubeconfig("admin"), *words)

    @property
    def target(self) -> tuple[str, ...]:
        return ("--kubeconfig", str(self.plane.kubeconfig("tidegate")), "--context", "plane")

    def run(self, *words: str | Path) -> CommandResult:
        return type_in(*words, *self.target, HOME=str(self.folder.parent))


@pytest.fixture
def unit(plane: ControlPlane, tmp_path: Path) -> VerifiedUnit:
    return VerifiedUnit(plane, tmp_path)


def second(moment: str) -> int:
    return parse_timestamp(moment) // SECOND


def test_a_rollout_in_order_is_verified_by_its_record_and_by_the_cluster(
    unit: VerifiedUnit, wording: RecordedWording
) -> None:
    place = ("-n", unit.space)
    synced = unit.run("sync", unit.folder, *place, "--yes", "--record", unit.record)
    assert synced.code == 0, synced.stdout + synced.stderr

    result = unit.run("verify", "--record", unit.record)
    both = unit.run("verify", unit.folder, *place, "--record", unit.record, "-o", "json")
    alone = unit.run("verify", unit.folder, *place, "-o", "json")

    assert result.code == both.code == alone.code == 0, result.stdout + result.stderr
    wording(result.lines[-1].rpartition("; ")[0])
    document = json.loads(both.stdout)
    assert (document["verdict"], document["units"][0]["sync"]) == ("kept", "Synced")
    for pair in (*document["pairs"], *json.loads(alone.stdout)["pairs"]):
        first, then = (second(pair[side]["witness"]["at"]) for side in ("before", "after"))
        assert pair["cluster"] == ("kept" if then > first else "unproven"), pair


def test_an_object_written_out_of_order_is_named_with_both_times(
    unit: VerifiedUnit, wording: RecordedWording
) -> None:
    args = (*("sync", str(unit.folder), "-n", unit.space, "--yes", "-o", "json"), *unit.target)
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegate", *args, "--record", str(unit.record)],
        env={"PATH": os.environ["PATH"], "HOME": str(unit.folder.parent)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while json.loads(process.stdout.readline())["event"] != "gate.waiting":
        pass
    unit.kubectl("create", "configmap", "second", "-n", unit.space, "--from-literal=to=1")
    process.communicate()
    assert process.returncode == 0

    ran = unit.run("verify", "--record", unit.record)
    alone = unit.run("verify", unit.folder, "-n", unit.space)

    made = unit.kubectl(
        *f"get cm second -n {unit.space} -o".split(), "jsonpath={.metadata.creationTimestamp}"
    )
    done = unit.kubectl(
        *f"get job prepare -n {unit.space} -o".split(), "jsonpath={.status.completionTime}"
    )
    assert ran.code == alone.code == 3, ran.stdout + ran.stderr
    (line,) = lines_with(
        ran.stdout, f"ConfigMap {unit.space}/second ", f"Job {unit.space}/prepare "
    )
    assert line in alone.lines
    assert line.index(made) < line.index(done)
    wording(line.replace(made, "MADE").replace(done, "DONE").replace(unit.space, "NAMESPACE"))
    wording(ran.lines[-1].partition(":")[0])


def test_missing_objects_verify_nothing(unit: VerifiedUnit, wording: RecordedWording) -> None:
    ran = unit.run("verify", unit.folder, "-n", unit.space)

    assert ran.code == 4, ran.stdout + ran.stderr
    lines = lines_with(ran.stdout, f"Deployment {unit.space}/third ")
    wording(line.replace(unit.space, "NAMESPACE") for line in lines)
