"""Rows of a user, from outside: they play a kind, open its gate and explain what failed."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import config_map, tidegate, write_unit

ROWS = """
rows:
- group: widgets.example.com
  kinds: [Widget]
  versions: [v1]
  source: the operator of this test
  served_by: {names: [widgets]}
  needs:
  - {kind: Secret, name: "${spec.login}"}
  stages:
  - {name: begun, writes: {phase: Begun}}
  - name: done
    after: 90s
    writes: {phase: Done}
    produces:
    - object: {apiVersion: v1, kind: Secret, metadata: {name: "${name}-key"}}
  ready_when: [{path: status.phase, values: [Done]}]
"""
OPERATOR = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.widgets.example.com
  annotations: {argocd.argoproj.io/sync-wave: "-1"}
spec:
  group: widgets.example.com
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    subresources: {status: {}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: widgets, annotations: {argocd.argoproj.io/sync-wave: "-1"}}
spec:
  selector: {matchLabels: {app: widgets}}
  template:
    metadata: {labels: {app: widgets}}
    spec: {containers: [{name: operator, image: registry.example/any:1}]}
"""


def a_widget(name: str, *, wave: str = "0", login: str = "") -> str:
    return (
        "apiVersion: widgets.example.com/v1\nkind: Widget\n"
        f'metadata: {{name: {name}, annotations: {{argocd.argoproj.io/sync-wave: "{wave}"}}}}\n'
        f"spec: {{login: '{login}'}}\n"
    )


def run(verb: tuple[str, ...], folder: Path, **files: str) -> CompletedProcess[str]:
    """Run a command on a unit with the operator in it, with one event per line."""
    rows = folder / "rows.yaml"
    rows.write_text(ROWS)
    unit = write_unit(folder / "unit", operator=OPERATOR, **files)
    return tidegate(*verb, unit, "--operator-defs", rows, "-o", "json")


@pytest.mark.parametrize("verb", [("simulate",), ("sync", "--sandbox")], ids=" ".join)
def test_a_gate_follows_the_operator_definition_of_the_user(
    verb: tuple[str, ...], tmp_path: Path
) -> None:
    files = {"widget": a_widget("it"), "later": config_map("later", wave="1")}

    ran = run(verb, tmp_path, **files)

    messages = [json.loads(line) for line in ran.stdout.splitlines()]
    written = {
        event["name"]: event["at"] for event in messages if event["event"] == "object.written"
    }
    assert ran.returncode == 0
    # Servers keep times in whole seconds, so a stage may seem to begin up to one earlier.
    assert 89_000 <= written["later"] - written["it"] <= 91_000


@pytest.mark.parametrize(
    "files",
    [{}, {"other": a_widget("other", wave="1")}],
    ids=["nothing makes it", "it is made too late"],
)
def test_a_failure_is_explained_by_what_a_row_of_the_user_needs_and_makes(
    wording: RecordedWording, files: dict[str, str], tmp_path: Path
) -> None:
    ran = run(("simulate",), tmp_path, widget=a_widget("it", login="other-key"), **files)

    last = json.loads(ran.stdout.splitlines()[-1])
    assert ran.returncode == 4
    assert last["event"] == "engine.finished"
    wording(str(line) for failure in last["failures"] for line in failure["why"])
