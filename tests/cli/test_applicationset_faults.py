"""Errors of an ApplicationSet are reported at the line of the wrong key."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.tidegate_runs import tidegate

URL = "https://git.example.com/shop/steps.git"
HEAD = """\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: at-fault, namespace: argocd}
spec:
"""
LIST = "  generators:\n  - list: {elements: [{name: a}]}\n"
TEMPLATE = """\
  template:
    metadata:
      name: "{{name}}"
    spec:
      project: default
      source: {repoURL: "https://git.example.com/shop/steps.git", path: apps}
      destination: {name: in-cluster, namespace: default}
"""
STEPS = "  strategy:\n    type: RollingSync\n    rollingSync:\n      steps:\n"
GO = "  goTemplate: true\n  goTemplateOptions: [missingkey=error]\n"
FAULTS = {
    "an unknown generator": ("  generators:\n  - lists: {} # here\n" + TEMPLATE, "generator"),
    "an unknown generator inside": (
        "  generators:\n  - matrix:\n      generators:\n      - list: {elements: [{name: a}]}\n"
        "      - gits: {} # here\n" + TEMPLATE,
        "generator",
    ),
    "three in a matrix": (
        "  generators:\n  - matrix:\n      generators: # here\n"
        + "      - list: {}\n" * 3
        + TEMPLATE,
        "matrix",
    ),
    "no keys to merge by": (
        "  generators:\n  - merge:\n      mergeKeys: [] # here\n      generators:\n"
        + "      - list: {}\n" * 2
        + TEMPLATE,
        "merge",
    ),
    "an element that is no text": (
        "  generators:\n  - list:\n      elements:\n      - name: a\n        size: 3 # here\n"
        + TEMPLATE,
        "element",
    ),
    "elements that cannot be read": (
        "  generators:\n  - list:\n      elements: []\n      elementsYaml: '{' # here\n" + TEMPLATE,
        "file",
    ),
    "an operator of a selector": (
        LIST + "    selector:\n      matchExpressions:\n      - key: name\n"
        "        operator: Like # here\n" + TEMPLATE,
        "selector",
    ),
    "a parameter of values": (
        GO
        + "  generators:\n  - clusters:\n      values:\n        far: '{{ .nowhere }}' # here\n"
        + TEMPLATE.replace("{{name}}", "{{.name}}"),
        "template",
    ),
    "a missing parameter": (
        GO + LIST + TEMPLATE.replace('"{{name}}"', '"{{ .nobody }}" # here'),
        "template",
    ),
    "a function that Argo CD lacks": (
        GO + LIST + TEMPLATE.replace('"{{name}}"', '"{{ include .name }}" # here'),
        "template",
    ),
    "a missing parameter of the generator's own template": (
        GO + "  generators:\n  - list:\n      elements: [{name: a}]\n      template:\n"
        "        metadata:\n          name: '{{ .nothing }}' # here\n        spec: {}\n"
        + TEMPLATE.replace("{{name}}", "{{.name}}"),
        "template",
    ),
    "a parameter that is not closed": (
        LIST + TEMPLATE.replace('"{{name}}"', '"{{name}}-{{name" # here'),
        "template",
    ),
    "a patch that is none": (LIST + TEMPLATE + "  templatePatch: '- a' # here\n", "patch"),
    "no name": (LIST + TEMPLATE.replace('"{{name}}"', '"" # here'), "name"),
    "a name that no object can have": (
        LIST + TEMPLATE.replace('"{{name}}"', '"{{name}}_" # here'),
        "name",
    ),
    "two with one name": (
        LIST.replace("{name: a}", "{name: a}, {name: b}")
        + TEMPLATE.replace('"{{name}}"', "same # here"),
        "duplicate",
    ),
    "a glob that finds nothing": (
        "  generators:\n  - git:\n      repoURL: https://git.example.com/shop/steps.git\n"
        "      directories: # here\n      - path: nowhere/*\n" + TEMPLATE,
        "no-results",
    ),
    "a step that takes nothing": (
        LIST + TEMPLATE + STEPS + "      - matchExpressions: [] \n"
        "      - matchExpressions: # here\n        - {key: a, operator: In, values: [b]}\n",
        "steps",
    ),
    "an operator of a step": (
        LIST
        + TEMPLATE
        + STEPS
        + "      - matchExpressions:\n        - key: a\n          operator: Exists # here\n",
        "steps",
    ),
    "maxUpdate": (LIST + TEMPLATE + STEPS + "      - maxUpdate: abc # here\n", "steps"),
    "an unknown strategy": (
        LIST + TEMPLATE + "  strategy:\n    type: Rolling # here\n",
        "strategy",
    ),
    "an unknown policy": (
        LIST + TEMPLATE + "  syncPolicy:\n    applicationsSync: never # here\n",
        "policy",
    ),
}


def test_each_error_is_reported_at_its_line(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "apps").mkdir()
    for number, (text, _) in enumerate(FAULTS.values()):
        written = HEAD.replace("at-fault", f"at-fault-{number}") + text
        (tmp_path / f"{number}.yaml").write_text(written)

    here = ("--repo-map", f"{URL}={tmp_path}")
    ran = tidegate("argocd", "appset", "generate", tmp_path, "--offline", *here)

    result = re.findall(r"\[appset\.([\w-]+)\].*\n  at (\d+)\.yaml:(\d+):", ran.stderr)
    for number, (what, (text, code)) in enumerate(FAULTS.items()):
        expected = next(
            at for at, line in enumerate((HEAD + text).splitlines(), 1) if "# here" in line
        )
        assert (code, str(number), str(expected)) in result, what


def test_the_steps_of_an_appset_without_applications_are_not_reported(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    step = "      - matchExpressions:\n        - {key: a, operator: In, values: [b]}\n"
    missing = TEMPLATE.replace("{{name}}", "{{.nobody}}")
    (tmp_path / "set.yaml").write_text(HEAD + GO + LIST + missing + STEPS + step)

    ran = tidegate("argocd", "appset", "generate", tmp_path, "--offline")

    assert re.findall(r"\[appset\.([\w-]+)\]", ran.stderr) == ["template"]


PATCHES = {
    "a type": "    spec:\n      syncPolicy:\n        automated:\n          prune: maybe # here\n",
    "below a condition": "    {{- if true }}\n    spec:\n\n      syncPolicy:\n        retry:\n"
    "          # so often\n          limit: many # here\n    {{- end }}\n",
    "in an item": "    spec:\n      ignoreDifferences:\n      - group: apps\n"
    "        kind: [Deployment] # here\n",
    "what the template has, too": "    spec:\n      source:\n        path: [apps] # here\n",
}


def test_an_error_in_a_patch_is_reported_at_its_line_in_the_patch(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "apps").mkdir()
    go = TEMPLATE.replace("{{name}}", "{{.name}}")
    texts = {}
    for number, patch in enumerate(PATCHES.values()):
        head = HEAD.replace("at-fault", f"at-fault-{number}") + "  goTemplate: true\n"
        named = LIST.replace("{name: a}", f"{{name: a{number}}}")
        texts[number] = head + named + go + "  templatePatch: |\n" + patch
        (tmp_path / f"{number}.yaml").write_text(texts[number])

    ran = tidegate("units", tmp_path, "--offline", "--repo-map", f"{URL}={tmp_path}")

    result = re.findall(r"\[schema\.refused\].*\n  at (\d+)\.yaml:(\d+):", ran.stderr)
    for number, what in enumerate(PATCHES):
        lines = enumerate(texts[number].splitlines(), 1)
        expected = next(at for at, line in lines if "# here" in line)
        assert (str(number), str(expected)) in result, (what, ran.stderr)
