"""The steps of the GitHub Action, run as a runner runs them, with a stand-in for GitHub's API."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.changed_repository import ChangedRepository, changed_repository
from tests.support.file_trees import GIT_REPOSITORY, config_map, kustomization, run_git
from tests.support.forge_server import ForgeServer, forge_server

ROOT = Path(__file__).parents[2]
WAIT = '"wait": true'
STEPS = {
    step["name"]: step
    for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    if "run" in step
}


@pytest.fixture
def forge() -> Iterator[ForgeServer]:
    with forge_server() as server:
        yield server


@pytest.fixture
def repository(tmp_path: Path) -> ChangedRepository:
    return changed_repository(
        tmp_path / "fleet",
        {
            "clusters/flux-system.yaml": GIT_REPOSITORY + kustomization("flux-system", "clusters"),
            "clusters/base.yaml": kustomization("base", "./base", more=WAIT),
            "clusters/shop.yaml": kustomization(
                "shop", "./shop", more='"dependsOn": [{"name": "base"}]'
            ),
            "base/base.yaml": config_map("base"),
            "shop/shop.yaml": config_map("shop"),
        },
    )


class Job:
    """One job of a workflow: its directory, its outputs and its summary."""

    def __init__(self, folder: Path, repository: Path, forge: ForgeServer) -> None:
        self.summary = folder / "summary.md"
        self.summary.write_text("")
        self._repository = repository
        self._outputs = folder / "outputs"
        self._outputs.write_text("")
        event = folder / "event.json"
        event.write_text(json.dumps({"pull_request": {"number": 7, "base": {"sha": "HEAD"}}}))
        programs = folder / "bin"
        programs.mkdir(exist_ok=True)
        for name, words in (("tidegate", "-m tidegate"), ("python3", "")):
            (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
            (programs / name).chmod(0o755)
        self._known = {
            "PATH": f"{programs}:/usr/bin:/bin",
            "HOME": str(folder),
            "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_API_URL": forge.url,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_OUTPUT": str(self._outputs),
            "GITHUB_REPOSITORY": "shop/fleet",
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "RUNNER_TEMP": str(folder),
        }

    @property
    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self._outputs.read_text().splitlines())

    def run(self, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the script of a step with the variables that it asks for."""
        step = STEPS[name]
        assert set(step.get("env", {})) == set(variables)
        return subprocess.run(
            ["/bin/bash", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self._repository,
            env={**self._known, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def compare(
        self, base: str, *, path: str = ".", sarif: str = "false"
    ) -> subprocess.CompletedProcess[str]:
        return self.run(
            "Compare the order", BASE=base, FAIL_ON="error", REPOSITORY_PATH=path, SARIF=sarif
        )

    def run_all(self, *, base: str = "HEAD", path: str = ".") -> int:
        """Run the steps after the installation; return the exit code of the last."""
        compared = self.compare(base, path=path)
        assert compared.returncode == 0, compared.stderr
        published = self.run("Comment", GITHUB_TOKEN="secret", REPOSITORY_PATH=path)
        assert published.returncode == 0, published.stderr
        return self.run("Result", CODE=self.outputs["code"]).returncode


@pytest.fixture
def job(tmp_path: Path, repository: ChangedRepository, forge: ForgeServer) -> Job:
    return Job(tmp_path, repository.root, forge)


def test_one_comment_is_created_edited_and_left_alone(
    job: Job, repository: ChangedRepository, forge: ForgeServer
) -> None:
    forge.comments.update(dict.fromkeys(range(1, 131), "Nice!"))
    repository.write("clusters/base.yaml", kustomization("base", "./base"))
    first = job.run_all()
    again = job.run_all()
    repository.write("clusters/base.yaml", kustomization("base", "./base", more=WAIT))
    same = job.run_all()

    assert (first, again, same) == (0, 0, 0)
    assert [method for method, _ in forge.writes] == ["POST", "PATCH"]
    assert len(forge.comments) == 131
    assert "same order" in forge.comments[131]
    assert job.outputs["same-order"] == "true"


def test_a_comment_of_another_user_is_not_taken_for_ours(
    job: Job, repository: ChangedRepository, forge: ForgeServer
) -> None:
    forge.comments[1] = "<!-- tidegate diff -->\n**Order:** same order, believe me"
    forge.authors[1] = "mallory"
    repository.write("clusters/base.yaml", kustomization("base", "./base"))
    of_job = (job.run_all(), job.run_all())
    forge.user = "deployer"
    of_user = (job.run_all(), job.run_all())

    assert (of_job, of_user) == ((0, 0), (0, 0))
    assert [method for method, _ in forge.writes] == ["POST", "POST"]
    assert "believe me" in forge.comments[1]
    assert "1 gate lost" in forge.comments[2]


def test_each_path_of_a_repository_has_its_own_comment(
    job: Job, repository: ChangedRepository, forge: ForgeServer
) -> None:
    repository.write("clusters/base.yaml", kustomization("base", "./base"))
    for path in (".", "clusters", "base", "./clusters/"):
        assert job.run_all(path=path) == 0

    assert [method for method, _ in forge.writes] == ["POST", "POST", "POST"]


def test_a_long_report_is_cut_to_the_size_of_a_comment(
    job: Job, tmp_path: Path, forge: ForgeServer
) -> None:
    (tmp_path / "tidegate.md").write_text("<!-- tidegate diff -->\n" + "- a line\n" * 20_000)

    ran = job.run("Comment", GITHUB_TOKEN="secret", REPOSITORY_PATH=".")

    assert ran.returncode == 0, ran.stderr
    assert len(forge.comments[1]) < 65_536


@pytest.mark.parametrize(
    ("version", "package"), [("", f"{ROOT}[all]"), ("1.2", "tidegate[all]==1.2")]
)
def test_the_version_to_install_is_that_of_the_action_or_a_given_one(
    job: Job, tmp_path: Path, version: str, package: str
) -> None:
    (tmp_path / "bin" / "python3").write_text('#!/bin/sh\necho "$@"\n')

    ran = job.run("Install Tidegate", VERSION=version)

    assert ran.stdout.split() == ["-m", "pip", "install", "--quiet", package]


def test_an_error_of_the_change_fails_the_job_after_the_comment(
    job: Job, repository: ChangedRepository, forge: ForgeServer
) -> None:
    repository.write(
        "clusters/base.yaml",
        kustomization("base", "./base", more='"dependsOn": [{"name": "shop"}]'),
    )

    assert job.run_all() == 3
    assert "1 new error" in forge.comments[1]


def test_the_token_of_a_fork_writes_the_summary(
    job: Job, repository: ChangedRepository, forge: ForgeServer
) -> None:
    forge.is_read_only = True
    repository.write("clusters/base.yaml", kustomization("base", "./base"))

    assert job.run_all() == 0
    assert forge.comments == {}
    assert "1 gate lost" in job.summary.read_text()


def test_what_others_merged_meanwhile_is_not_reported(
    job: Job, repository: ChangedRepository, forge: ForgeServer
) -> None:
    run_git(repository.root, "checkout", "-q", "-b", "feature")
    run_git(repository.root, "checkout", "-q", "main")
    repository.write("clusters/base.yaml", kustomization("base", "./base"))
    repository.commit()
    run_git(repository.root, "checkout", "-q", "feature")

    assert job.run_all(base="main...") == 0
    assert "same order" in forge.comments[1]


def test_a_base_that_is_not_fetched_fails_with_the_reason(job: Job) -> None:
    ran = job.compare("f" * 40)

    assert ran.returncode == 3
    assert "source.git.revision" in ran.stderr


def test_new_findings_are_written_for_code_scanning_on_request(
    job: Job, repository: ChangedRepository, tmp_path: Path
) -> None:
    repository.write(
        "clusters/base.yaml",
        kustomization("base", "./base", more='"dependsOn": [{"name": "shop"}]'),
    )
    alerts = tmp_path / "tidegate.sarif"

    assert job.compare("HEAD").returncode == 0
    assert not alerts.exists()
    assert job.compare("HEAD", sarif="true").returncode == 0
    (run,) = json.loads(alerts.read_text())["runs"]
    assert "ORD002" in {result["ruleId"] for result in run["results"]}


def test_no_step_puts_an_expression_into_a_script() -> None:
    assert [name for name, step in STEPS.items() if re.search(r"\$\{\{", step["run"])] == []
