"""`tidegate doctor`: what is here, in which version, and what is missing."""

from __future__ import annotations

import json
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_command import Tidegate


@pytest.fixture
def tidegate(tmp_path: Path) -> Tidegate:
    return Tidegate(tmp_path / "home")


def write_program(place: Path, name: str, script: str) -> None:
    place.mkdir(exist_ok=True)
    (place / name).write_text(f"#!/bin/sh\n{script}\n")
    (place / name).chmod(0o755)


async def test_doctor_lists_every_tool_that_a_repository_may_need(
    wording: RecordedWording, tidegate: Tidegate, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    write_program(programs, "git", "echo 'git version 2.47.1.windows'")
    write_program(programs, "ssh", "echo 'OpenSSH_9.2p1 Debian, OpenSSL 3.0.19' >&2")
    write_program(programs, "sops", "exit 3")

    ran = await tidegate.run("doctor", PATH=str(programs))
    in_json = await tidegate.run("doctor", "-o", "json", PATH=str(programs))

    by_name = {line.split()[0]: line for line in ran.lines}
    assert (ran.code, ran.stderr) == (0, "")
    assert [*by_name] == [
        *("kustomize", "git", "ssh", "sops", "gpg"),
        *(
            "helm-python-sdk",
            "pyrage",
            "cryptography",
            "gojsonnet",
            "cel-expr-python",
            "lupa",
            "jq",
        ),
    ]
    versions = {
        item["name"]: (item["state"], item["version"]) for item in json.loads(in_json.stdout)
    }
    assert versions["git"] == ("found", "2.47.1.windows")
    assert versions["ssh"] == ("found", "9.2p1")
    assert versions["gojsonnet"] == ("found", version("gojsonnet"))
    assert versions["gpg"] == ("missing", "")
    wording(" ".join(by_name[name].split()) for name in ("git", "ssh", "sops", "gpg"))


async def test_programs_can_read_it_and_see_which_kustomize_builds(tidegate: Tidegate) -> None:
    ran = await tidegate.run("doctor", "-o", "json", PATH="/nowhere")

    programs = {item["name"]: item for item in json.loads(ran.stdout)}
    kubectl = Path(sysconfig.get_path("scripts")) / "kubectl"
    assert programs["kustomize"]["detail"] == str(kubectl), "overlays are built with it"
    assert programs["kustomize"]["version"].startswith("5.")
    assert programs["git"]["state"] == "missing"
