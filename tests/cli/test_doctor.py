"""`tidegate doctor`: what is here, in which version, and what is missing."""

from __future__ import annotations

import json
import sysconfig
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.tidegate_command import Tidegate


@pytest.fixture
def tidegate(tmp_path: Path) -> Tidegate:
    return Tidegate(tmp_path / "home")


def write_program(place: Path, name: str, says: str) -> None:
    place.mkdir(exist_ok=True)
    (place / name).write_text(f"#!/bin/sh\n{says}\n")
    (place / name).chmod(0o755)


async def test_it_names_everything_that_a_repository_may_need(
    tidegate: Tidegate, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    write_program(programs, "git", "echo 'git version 2.47.1.windows'")
    write_program(programs, "ssh", "echo 'OpenSSH_9.2p1 Debian, OpenSSL 3.0.19' >&2")
    write_program(programs, "sops", "exit 3")

    ran = await tidegate.run("doctor", PATH=str(programs))

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
    assert "found    2.47.1.windows" in by_name["git"]
    assert "found    9.2p1" in by_name["ssh"]
    assert by_name["sops"].endswith(
        f"files encrypted for PGP, cloud services or Vault: {programs}/sops"
    )
    assert "missing" in by_name["gpg"]
    assert "install gnupg" in by_name["gpg"]
    assert f"found    {version('gojsonnet')}" in by_name["gojsonnet"]


async def test_programs_can_read_it_and_see_which_kustomize_builds(tidegate: Tidegate) -> None:
    ran = await tidegate.run("doctor", "-o", "json", PATH="/nowhere")

    findings = {load["name"]: load for load in json.loads(ran.stdout)}
    unit_resource = Path(sysconfig.get_path("scripts")) / "kubectl"
    assert findings["kustomize"]["detail"] == str(unit_resource), (
        "the one that overlays are built with"
    )
    assert findings["kustomize"]["version"].startswith("5.")
    assert findings["git"]["state"] == "missing"
