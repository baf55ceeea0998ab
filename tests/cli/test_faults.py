"""Faults in a directory: every verb reports the same ones, each once with its location."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import config_map, tidegate, write_unit

WORKLOADS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: three
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx
        imagePullPolcy: Always
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  template:
    spec:
      containers: []
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData:
  user: shop
  pin: 271828
---
apiVersion: extensions/v1beta1
kind: Ingress
metadata: {name: old}
"""
NETWORK = """\
apiVersion: v1
kind: Service
metadata: {name: web, namespace: nowhere}
spec:
  ports:
  - port: 80
    protocl: TCP
---
apiVersion: v1
kind: Service
metadata: {name: admin}
spec:
  ports:
  - port: 99999
---
apiVersion: v1
kind: ConfigMap
metadata: {name: Shop_Settings}
"""
ANNOTATED = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: late
  annotations:
    argocd.argoproj.io/sync-wave: soon
---
apiVersion: v1
kind: ConfigMap
metadata: {name: twin}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: twin}
---
kind: ConfigMap
metadata: {name: nameless}
"""
SCHEMA_FAULTS = {
    ("preflight.invalid", "network.yaml:7:5"),  # protocl
    ("preflight.invalid", "network.yaml:14:5"),  # 99999
    ("preflight.invalid", "network.yaml:18:12"),  # Shop_Settings
    ("preflight.invalid", "workloads.yaml:5:3"),  # replicas
    ("preflight.invalid", "workloads.yaml:13:9"),  # imagePullPolcy
    ("preflight.invalid", "workloads.yaml:20:5"),  # restartPolicy
    ("preflight.invalid", "workloads.yaml:21:7"),  # containers
    ("preflight.invalid", "workloads.yaml:28:3"),  # pin
    ("preflight.not-served", "workloads.yaml:30:1"),  # extensions/v1beta1
}
ANNOTATION_FAULTS = {
    ("dialect.wave", "annotated.yaml:6:5"),
    ("dialect.duplicate", "annotated.yaml:12:1"),
    ("dialect.incomplete", "annotated.yaml:16:1"),
}
VERBS = (("plan",), ("simulate",), ("sync", "--sandbox"))


class Fault(NamedTuple):
    """An error as it is printed."""

    code: str
    location: str
    message: str


def reported_faults(stderr: str) -> list[Fault]:
    result = re.findall(r"^error\[(.+?)\]: (.*)\n  at (\S+)", stderr, re.MULTILINE)
    return [Fault(code, location, message) for code, message, location in result]


def by_location(fault: Fault) -> tuple[str, int, int]:
    name, line, column = fault.location.split(":")
    return name, int(line), int(column)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    return write_unit(tmp_path / "shop", workloads=WORKLOADS, network=NETWORK, annotated=ANNOTATED)


def test_verbs_report_the_same_twelve_faults_in_the_order_of_their_locations(broken: Path) -> None:
    ran = [tidegate(*args, broken) for args in VERBS]

    messages = [reported_faults(item.stderr) for item in ran]
    assert [item.returncode for item in ran] == [3, 3, 3]
    assert messages[0] == messages[1] == messages[2] == sorted(messages[0], key=by_location)
    assert {(item.code, item.location) for item in messages[0]} == SCHEMA_FAULTS | ANNOTATION_FAULTS
    assert len(messages[0]) == 12
    assert not any("271828" in item.stdout + item.stderr for item in ran)


def test_schema_faults_are_the_same_and_counted_in_objects(
    wording: RecordedWording, broken: Path
) -> None:
    (broken / "annotated.yaml").unlink()

    planned, simulated, synced = (tidegate(*args, broken) for args in VERBS)

    messages = [reported_faults(item.stderr) for item in (planned, simulated, synced)]
    assert messages[0] == messages[1] == messages[2] == sorted(messages[0], key=by_location)
    assert {(item.code, item.location) for item in messages[0]} == SCHEMA_FAULTS
    wording(planned.stdout.splitlines()[-2:])
    wording(simulated.stdout.splitlines()[-1])
    wording(line for line in synced.stdout.splitlines() if line.startswith("✗ "))


def test_json_output_has_the_same_faults_of_a_rollout(broken: Path) -> None:
    (broken / "annotated.yaml").unlink()

    for args in (("simulate",), ("sync", "--sandbox")):
        ran = tidegate(*args, broken, "-o", "json")
        events = [json.loads(line) for line in ran.stdout.splitlines()]
        refused = [event for event in events if event.get("event") == "object.refused"]
        assert {item["location"] for item in refused} == {
            location for _, location in SCHEMA_FAULTS
        }, args
        (field,) = [item["field"] for item in refused if item["location"] == "workloads.yaml:28:3"]
        assert field == "stringData.pin"


def test_missing_objects_are_no_faults_of_an_offline_plan(tmp_path: Path) -> None:
    database = "apiVersion: kinda.rocks/v1\nkind: Database\nmetadata: {name: shop}\n"
    files = {"web": config_map(namespace="nowhere"), "database": database}
    unit = write_unit(tmp_path / "unit", **files)

    planned, simulated = tidegate("plan", unit), tidegate("simulate", unit)

    assert (planned.returncode, planned.stderr) == (0, "")
    assert "namespaces: [nowhere]" in simulated.stdout


def test_a_removed_api_version_is_reported_with_the_served_one(
    tmp_path: Path,
) -> None:
    old = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n"

    ran = tidegate("plan", write_unit(tmp_path / "unit", old=old))

    assert ran.returncode == 3
    (fault,) = reported_faults(ran.stderr)
    assert fault.code == "preflight.not-served"
    assert "`policy/v1beta1 PodDisruptionBudget`" in fault.message
    assert "`policy/v1 PodDisruptionBudget`" in fault.message


def test_a_fault_in_a_template_is_reported_with_its_line(tmp_path: Path) -> None:
    templates = tmp_path / "web" / "templates"
    templates.mkdir(parents=True)
    (templates.parent / "Chart.yaml").write_text("{apiVersion: v2, name: web, version: 0.1.0}\n")
    (templates / "service.yaml").write_text(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\n"
        "spec:\n  ports:\n  - port: 80\n    protocl: TCP\n"
    )

    ran = tidegate("plan", templates.parent, HOME=str(tmp_path))

    (fault,) = reported_faults(ran.stderr)
    assert fault.location == "templates/service.yaml:8:5"
