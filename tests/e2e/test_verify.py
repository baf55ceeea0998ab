"""`tidegate verify` on a real API server: after a good rollout, and when somebody was faster."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.support.kubectl import kubectl
from tests.support.repositories import deployment, job, setting
from tests.support.typed import Typed, type_in
from tidegate.documents.dump import to_yaml
from tidegate.model.times import SECOND, parse_timestamp

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]
_numbers = itertools.count(1)


class Bay:
    """A directory of manifests for a namespace of its own: a Job, and three waves behind it."""

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

    def run(self, *words: str | Path) -> Typed:
        return type_in(*words, *self.target, HOME=str(self.folder.parent))


@pytest.fixture
def bay(plane: ControlPlane, tmp_path: Path) -> Bay:
    return Bay(plane, tmp_path)


def second(moment: str) -> int:
    return parse_timestamp(moment) // SECOND


def test_a_good_rollout_is_proven_by_its_record_and_by_the_cluster(bay: Bay) -> None:
    words = ("-n", bay.space)
    synced = bay.run("sync", bay.folder, *words, "--yes", "--record", bay.record)
    assert synced.code == 0, synced.stdout + synced.stderr

    result = bay.run("verify", "--record", bay.record)
    both = bay.run("verify", bay.folder, *words, "--record", bay.record, "-o", "json")
    alone = bay.run("verify", bay.folder, *words, "-o", "json")

    assert result.code == both.code == alone.code == 0, result.stdout + result.stderr
    assert result.lines[-1].startswith("the order was kept: 3 pairs; by the record 3 kept; ")
    document = json.loads(both.stdout)
    assert (document["verdict"], document["units"][0]["sync"]) == ("kept", "Synced")
    for pair in (*document["pairs"], *json.loads(alone.stdout)["pairs"]):
        first, then = (second(pair[side]["witness"]["at"]) for side in ("before", "after"))
        assert pair["cluster"] == ("kept" if then > first else "unproven"), pair


def test_who_wrote_out_of_order_meanwhile_is_named_with_both_times(bay: Bay) -> None:
    words = (*("sync", str(bay.folder), "-n", bay.space, "--yes", "-o", "json"), *bay.target)
    process = subprocess.Popen(
        [sys.executable, "-m", "tidegate", *words, "--record", str(bay.record)],
        env={"PATH": os.environ["PATH"], "HOME": str(bay.folder.parent)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while json.loads(process.stdout.readline())["event"] != "gate.waiting":
        pass
    bay.kubectl("create", "configmap", "second", "-n", bay.space, "--from-literal=to=1")
    process.communicate()
    assert process.returncode == 0

    ran = bay.run("verify", "--record", bay.record)
    alone = bay.run("verify", bay.folder, "-n", bay.space)

    made = bay.kubectl(
        *f"get cm second -n {bay.space} -o".split(), "jsonpath={.metadata.creationTimestamp}"
    )
    done = bay.kubectl(
        *f"get job prepare -n {bay.space} -o".split(), "jsonpath={.status.completionTime}"
    )
    assert ran.code == alone.code == 3, ran.stdout + ran.stderr
    unit = f"{bay.space}/unit"
    sentence = (
        f"broken: ConfigMap {bay.space}/second ({unit} wave 1) was made at {made}"
        f", and Job {bay.space}/prepare ({unit} wave 0) was ready at {done}, which it waits for"
    )
    assert sentence in ran.lines
    assert sentence in alone.lines
    assert ran.lines[-1].startswith("the order was not kept")


def test_what_is_not_there_proves_nothing(bay: Bay) -> None:
    ran = bay.run("verify", bay.folder, "-n", bay.space)

    assert ran.code == 4, ran.stdout + ran.stderr
    assert f"missing: Deployment {bay.space}/third is not there" in ran.lines
