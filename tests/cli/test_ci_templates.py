"""The template for GitLab and the hooks of pre-commit, run as their programs run them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.changed_repository import ChangedRepository, changed_repository
from tests.support.file_trees import GIT_REPOSITORY, config_map, kustomization

ROOT = Path(__file__).parents[2]
JOB = yaml.safe_load((ROOT / "ci" / "gitlab" / "tidegate.yml").read_text())["tidegate"]
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
KNOWN = '"dependsOn": [{"name": "nowhere"}]'


@pytest.fixture
def repository(tmp_path: Path) -> ChangedRepository:
    """A repository with an error that is not part of any change."""
    return changed_repository(
        tmp_path / "fleet",
        {
            "clusters/flux-system.yaml": GIT_REPOSITORY + kustomization("flux-system", "clusters"),
            "clusters/base.yaml": kustomization("base", "./base", more='"wait": true'),
            "clusters/known.yaml": kustomization("known", "./known", more=KNOWN),
            "base/base.yaml": config_map("base"),
            "known/known.yaml": config_map("known"),
        },
    )


def run_bash(script: str, root: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script with `tidegate`, and with a `pip` that installs nothing."""
    programs = root.parent / "bin"
    programs.mkdir(exist_ok=True)
    for name, text in (("tidegate", f'exec {sys.executable} -m tidegate "$@"'), ("pip", "")):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    environment = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "HOME": str(root.parent),
        "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))),
        **variables,
    }
    command = ["/bin/bash", "-eo", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )


def run_job(root: Path) -> subprocess.CompletedProcess[str]:
    """Run the job of the template as a runner does: its lines are one script."""
    variables = {name: str(value) for name, value in JOB["variables"].items()}
    variables |= {"CI_PROJECT_DIR": str(root), "CI_MERGE_REQUEST_DIFF_BASE_SHA": "HEAD"}
    variables["XDG_CACHE_HOME"] = variables["XDG_CACHE_HOME"].replace("$CI_PROJECT_DIR", str(root))
    return run_bash("\n".join(JOB["script"]), root, **variables)


def run_hook(name: str, root: Path, *files: str) -> subprocess.CompletedProcess[str]:
    """Run a hook as pre-commit does, with the changed files if it takes them."""
    hook = HOOKS[name]
    passed = files if hook.get("pass_filenames", True) else ()
    return run_bash(shlex.join((*shlex.split(hook["entry"]), *passed)), root)


def test_the_job_of_gitlab_keeps_its_report_and_fails_only_for_new_errors(
    repository: ChangedRepository,
) -> None:
    repository.write("clusters/base.yaml", kustomization("base", "./base"))
    lost = run_job(repository.root)
    repository.write("clusters/new.yaml", kustomization("new", "./base", more=KNOWN))
    new_error = run_job(repository.root)

    assert (lost.returncode, new_error.returncode) == (0, 3)
    (report,) = JOB["artifacts"]["paths"]
    assert "1 new error" in (repository.root / report).read_text()
    assert JOB["variables"]["GIT_DEPTH"] == 0


def test_a_hook_checks_the_units_of_the_changed_files(repository: ChangedRepository) -> None:
    other = run_hook("tidegate-lint", repository.root, "base/base.yaml")
    broken = run_hook("tidegate-lint", repository.root, "base/base.yaml", "known/known.yaml")

    assert (other.returncode, broken.returncode) == (0, 3), other.stdout


def test_a_hook_reports_what_the_commit_adds(repository: ChangedRepository) -> None:
    before = run_hook("tidegate-lint-changed", repository.root)
    repository.write("clusters/new.yaml", kustomization("new", "./base", more=KNOWN))
    after = run_hook("tidegate-lint-changed", repository.root)

    assert (before.returncode, after.returncode) == (0, 3), before.stdout
    assert "known.yaml" not in after.stdout
