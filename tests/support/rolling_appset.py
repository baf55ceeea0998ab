"""A repository with one set that rolls out step by step, and what its verbs tell."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.support.tidegate_runs import tidegate

URL = "https://git.example.com/shop/steps.git"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {0}}}
spec:
  selector: {{matchLabels: {{app: {0}}}}}
  template:
    metadata: {{labels: {{app: {0}}}}}
    spec: {{containers: [{{name: main, image: "registry.example/{0}:1"}}]}}
"""
TEMPLATE = """\
  template:
    metadata: {name: "{{name}}", labels: {step: "{{step}}"}}
    spec:
      project: default
      source: {repoURL: "%s", path: "apps/{{name}}"}
      destination: {name: in-cluster, namespace: default}
      syncPolicy: {%s}
"""


class Ladder:
    """A repository with one set, whose steps a test chooses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.elements: list[str] = []
        self.steps: dict[int, str] = {}
        self.more = ""
        self.sync = "automated: {}"
        self.order = ""

    def step(self, number: int, *names: str, most: object = None) -> None:
        self.elements += [f"{{name: {name}, step: '{number}'}}" for name in names]
        self.steps[number] = "" if most is None else f", maxUpdate: {most}"
        for name in names:
            (self.folder / "apps" / name).mkdir(parents=True)
            (self.folder / "apps" / name / "web.yaml").write_text(DEPLOYMENT.format(name))

    def write(self) -> Path:
        steps = "".join(
            f"        - {{matchExpressions: [{{key: step, operator: In, values: ['{number}']}}]"
            f"{self.steps.get(number, '')}}}\n"
            for number in range(1, max(self.steps) + 1)
        )
        (self.folder / "set.yaml").write_text(
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\n"
            "metadata: {name: steps, namespace: argocd}\nspec:\n"
            f"  generators:\n    - list: {{elements: [{', '.join(self.elements)}]}}\n"
            f"  strategy:\n    type: RollingSync\n    {self.order}\n"
            f"    rollingSync:\n      steps:\n{steps}"
            f"{TEMPLATE % (URL, self.sync)}{self.more}"
        )
        return self.folder

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return tidegate(*words[:1], self.write(), *words[1:], "--offline")

    def play(self, engine: str) -> dict[str, tuple[int, int]]:
        """By unit, when its first step began and its last one passed."""
        ran = self.run("simulate", "--engine", engine, "-o", "json")
        return spans([json.loads(line) for line in ran.stdout.splitlines()])


def spans(events: list[dict[str, object]]) -> dict[str, tuple[int, int]]:
    result: dict[str, tuple[int, int]] = {}
    for event in events:
        unit, at = event.get("unit"), event.get("at")
        if isinstance(unit, str) and unit.count("/") == 2 and isinstance(at, int):
            name = unit.rpartition("/")[2]
            begun, passed = result.get(name, (at, at))
            if event["event"] in {"step.applying", "step.passed"}:
                result[name] = (begun, max(passed, at))
    return result
