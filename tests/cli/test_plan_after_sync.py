"""`tidegate plan` after a rollout that passed: nothing is left to do, as a second `sync` says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from examples.encrypt import KEY
from tests.support.file_trees import application, config_map, write_files
from tests.support.persistent_sandbox import PersistentSandbox
from tests.support.platforms import PLATFORMS, given_objects, lay_out
from tests.support.recorded_wording import RecordedWording

HOOK = """apiVersion: batch/v1
kind: Job
metadata:
  {name}
  namespace: default
  annotations: {{{annotations}}}
spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: a, image: a:1}}]}}}}}}
"""
HOOKS = {
    "kept": ("name: kept", "argocd.argoproj.io/hook: PreSync"),
    "deleted": (
        "name: deleted",
        "argocd.argoproj.io/hook: PreSync, argocd.argoproj.io/hook-delete-policy: HookSucceeded",
    ),
    "generated": ("generateName: generated-", "argocd.argoproj.io/hook: PostSync"),
    "helm": (
        "name: helm",
        "helm.sh/hook: post-install, helm.sh/hook-delete-policy: hook-succeeded",
    ),
    "both": ("name: both", '"argocd.argoproj.io/hook": "PreSync,PostSync"'),
}
DEFINITION = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.example.com}
spec:
  group: example.com
  names: {kind: Backup, plural: backups}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              sources:
                type: array
                items:
                  type: object
                  properties:
                    name: {type: string}
                    optional: {type: boolean, default: false}
---
apiVersion: example.com/v1
kind: Backup
metadata: {name: nightly, namespace: default, annotations: {argocd.argoproj.io/sync-wave: "1"}}
spec: {sources: [{name: a}, {name: b}]}
"""


def operations(sandbox: PersistentSandbox, root: Path, *words: str) -> tuple[int, set[str]]:
    """Return the exit code of `plan --exit-code`, and what it would do."""
    ran = sandbox.reach("plan", root, "--exit-code", "-o", "json", *words)
    documents = [json.loads(line) for line in ran.stdout.splitlines()]
    assert documents, ran.stderr
    return ran.code, {entry["operation"] for document in documents for entry in document["objects"]}


@pytest.mark.parametrize("name", PLATFORMS)
def test_nothing_is_left_to_do_after_the_rollout_of_a_platform(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path, name)
    monkeypatch.chdir(tmp_path)
    if name == "layers":
        monkeypatch.setenv("SOPS_AGE_KEY_FILE", str(tmp_path / name / KEY))
    objects, names = given_objects(name)
    sandbox = PersistentSandbox.make(tmp_path, monkeypatch, *objects, names=names)
    ran = sandbox.sync(Path(name))
    assert ran.code == 0, ran.stdout + ran.stderr

    assert operations(sandbox, Path(name)) == (0, {"keep"})


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_ran_is_not_planned_again_before_something_changes(
    hook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata, annotations = HOOKS[hook]
    root = write_files(
        tmp_path / "fleet",
        {
            "web.yaml": application("web", "web"),
            "web/hook.yaml": HOOK.format(name=metadata, annotations=annotations),
            "web/settings.yaml": config_map("settings", namespace="default"),
        },
    )
    sandbox = PersistentSandbox.make(tmp_path, monkeypatch)
    assert operations(sandbox, root) == (10, {"create"})
    ran = sandbox.sync(root)
    assert ran.code == 0, ran.stdout + ran.stderr

    passed = operations(sandbox, root)
    (root / "web/settings.yaml").write_text(
        config_map("settings", namespace="default") + "data: {a: b}\n"
    )
    changed = sandbox.reach("plan", root, "--exit-code", "-o", "json")

    assert passed == (0, {"keep"})
    assert changed.code == 10
    hooks = [entry for entry in json.loads(changed.stdout)["objects"] if entry["hook"]]
    assert hooks
    assert "keep" not in {entry["operation"] for entry in hooks}


def test_a_default_inside_a_list_is_no_change_after_a_rollout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_files(tmp_path / "fleet", {"a.yaml": DEFINITION})
    sandbox = PersistentSandbox.make(tmp_path, monkeypatch)
    ran = sandbox.sync(root)
    assert ran.code == 0, ran.stdout + ran.stderr

    passed = operations(sandbox, root)
    (root / "a.yaml").write_text(DEFINITION.replace("{name: b}", "{name: c}"))

    assert passed == (0, {"keep"})
    assert operations(sandbox, root) == (10, {"keep", "change"})


def test_a_terminal_shows_many_unchanged_objects_as_a_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: RecordedWording
) -> None:
    names = [f"c{number:02}" for number in range(45)]
    root = write_files(
        tmp_path / "fleet",
        {
            "apps.yaml": application("web", "web") + "---\n" + application("few", "few"),
            "few/a.yaml": config_map("few", namespace="default"),
            **{f"web/{name}.yaml": config_map(name, namespace="default") for name in names},
        },
    )
    sandbox = PersistentSandbox.make(tmp_path, monkeypatch)
    assert sandbox.sync(root).code == 0
    (root / "web/c07.yaml").write_text(config_map("c07", namespace="default") + "data: {a: b}\n")

    folded = sandbox.reach("plan", root, room=120).stdout
    whole = sandbox.reach("plan", root, "--no-changes-only", room=120).stdout
    piped = sandbox.reach("plan", root).stdout
    piped_changes = sandbox.reach("plan", root, "--changes-only").stdout

    assert all(name in text for name in names for text in (whole, piped))
    assert not any(f"{name}\n" in text for name in names[8:] for text in (folded, piped_changes))
    wording(piped_changes)
